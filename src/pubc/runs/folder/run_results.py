"""How results come into the folder of a run, so that none is taken for somebody else's or lost.

They are made in a hidden folder inside it. Before any of them gets its name, `coming.json` lists
the size and SHA-256 of each. A kill leaves results that the list proves; whoever goes on removes
those and makes them anew. The last list has every file of the run, and becomes the manifest.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pubc.errors import UsageError
from pubc.runs.folder.run_files import COMING, FILES, KIND, RESULTS, listed_results
from pubc.storage import (
    MANIFEST,
    agrees,
    content_of,
    file_entry,
    fits,
    write_sealed,
)
from pubc.storage.disk import disk_words, flush, flush_folders, remove, sweep, temporary

__all__ = ["clear_results", "seal_run", "staged_results"]


@contextlib.contextmanager
def staged_results(folder: Path) -> Iterator[Path]:
    """Give a hidden folder to make results in, and put them in place when they are made.

    Args:
        folder: The folder of the run.

    Raises:
        UsageError: Somebody put something where they go.
        EnvironmentFailure: The disk said no.
    """
    with disk_words(folder):
        stage = temporary(folder / "results")
        stage.mkdir()
        try:
            yield stage
            _put(stage, folder)
        finally:
            remove(stage)


def _put(stage: Path, folder: Path) -> None:
    tops = sorted(os.listdir(stage))
    for top in tops:
        if os.path.lexists(folder / top):
            raise UsageError(
                f"{folder / top} came there while the run was at work, and a result is to go "
                "there. Move it away, and go on with --resume."
            )
    entries = {name: file_entry(stage / name) for name in sorted(content_of(stage))}
    listed = {**listed_results(folder), **entries}
    write_sealed(folder / COMING, {"kind": KIND, "version": 1, "files": listed})
    flush_folders(stage)
    for top in tops:
        os.rename(stage / top, folder / top)
    flush(folder)


def clear_results(folder: Path) -> None:
    """Remove what a killed process has put in place of results, so that they can be made anew.

    Raises:
        UsageError: One was changed since; it stays, and so do the others.
        EnvironmentFailure: The disk said no.
    """
    listed = listed_results(folder)
    ours = [name for name in content_of(folder) if name in listed and fits(name, RESULTS)]
    for name in ours:
        if not agrees(folder / name, listed[name]):
            raise UsageError(f"{folder / name} is not as pubc wrote it, so it stays. Move it away.")
    with disk_words(folder):
        for name in ours:
            (folder / name).unlink()
            for parent in (folder / name).parents:
                if parent == folder or any(parent.iterdir()):
                    break
                parent.rmdir()
        (folder / COMING).unlink(missing_ok=True)


def seal_run(folder: Path, about: Mapping[str, Any]) -> None:
    """Write the manifest of a run whose files are complete.

    Somebody may have put something there meanwhile: it is not ours to vouch for, or to remove.

    Raises:
        EnvironmentFailure: The disk said no.
    """
    with disk_words(folder):
        # What a process left that was killed here is no part of the folder.
        sweep(folder / MANIFEST)
    known = listed_results(folder)
    files = {
        # As it was written: what was changed since is not sealed as if it were ours.
        name: known.get(name) or file_entry(folder / name)
        for name in sorted(content_of(folder))
        if (name in known if fits(name, RESULTS) else fits(name, FILES))
    }
    write_sealed(folder / COMING, {"kind": KIND, "version": 1, **about, "files": files})
    with disk_words(folder):
        os.replace(folder / COMING, folder / MANIFEST)
        flush(folder)
