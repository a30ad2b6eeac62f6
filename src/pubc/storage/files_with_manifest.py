"""Files and their manifest as one step: beside a single file, or inside a sealed folder.

Two names cannot be renamed at once, so the manifest goes first and speaks for both: it is the
earlier one, with the coming one inside it as `next`. Whichever of the two files stands there, the
manifest that is read fits it (`pubc.storage.manifest.read_manifest` decides by the bytes). Then
comes the file, and last the manifest that knows no other. Where no file was before, the manifest
of the new one comes first: a manifest without its file is in nobody's way, a file without its
manifest could not be told from a stranger's. Files of a sealed folder are renewed in the same way.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pubc.errors import EnvironmentFailure, PubcError
from pubc.storage.disk import disk_words, flush, place_of, remove, temporary
from pubc.storage.manifest import (
    MANIFEST,
    NEXT,
    file_manifest,
    read_manifest,
    sidecar,
    write_sealed,
)
from pubc.storage.ownership import claim

__all__ = ["renew_files", "sealed_file"]


@contextlib.contextmanager
def sealed_file(
    path: Path,
    *,
    kind: str,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
) -> Iterator[Path]:
    """Give a place to write a file to, and put it and its manifest into place on success.

    Args:
        path: Final place.
        kind: What the file is.
        overwrite: Replace an earlier file of that kind; without it any is refused.
        about: Further facts for the manifest; may be filled while the file is written.

    Yields:
        Where to write: the same name in a hidden folder.

    Raises:
        UsageError: `path` exists and `overwrite` is off, or it is not pubc's to replace.
        EnvironmentFailure: The disk said no; the old file stands with its manifest, or none does.
    """
    with disk_words(path):
        claim(path, kind, force=overwrite, file=True)
        stage = temporary(path)
        stage.mkdir()
        try:
            yield stage / path.name
            document = file_manifest(stage / path.name, kind=kind, about=about)
            # Writing may have taken hours: what is there now may be somebody else's.
            claim(path, kind, force=overwrite, file=True)
            _put(stage / path.name, path, document)
        finally:
            remove(stage)


def renew_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files of a sealed folder anew; what its manifest says of the others stays.

    Args:
        folder: The folder.
        files: Contents by name, directly in the folder.

    Raises:
        DataError: The manifest was changed.
        EnvironmentFailure: The disk said no; the folder is as it was, or as it should be.
    """
    before = read_manifest(folder)
    with disk_words(folder):
        # Beside the folder: whatever a kill leaves inside it would not be in its manifest.
        stage = temporary(place_of(folder))
        stage.mkdir()
        try:
            entries = dict(before["files"])
            for name, content in files.items():
                (stage / name).write_bytes(content)
                entries |= file_manifest(stage / name, kind="")["files"]
            coming = {**before, "files": entries}
            write_sealed(stage / MANIFEST, {**before, NEXT: coming})
            os.replace(stage / MANIFEST, folder / MANIFEST)
            flush(folder)
            for name in files:
                os.replace(stage / name, folder / name)
            flush(folder)
            with contextlib.suppress(EnvironmentFailure, OSError):
                # All is in place; the manifest for both fits as well as the one that follows it.
                write_sealed(stage / MANIFEST, coming)
                os.replace(stage / MANIFEST, folder / MANIFEST)
        finally:
            remove(stage)


def _put(new: Path, path: Path, document: dict[str, Any]) -> None:
    beside = sidecar(path)
    before = None
    with contextlib.suppress(PubcError):
        before = read_manifest(path) if os.path.lexists(path) else None
    try:
        write_sealed(beside, document if before is None else {**before, NEXT: document})
        flush(path.parent)
        os.replace(new, path)
    except BaseException:
        if os.path.lexists(new):  # else Ctrl-C came just after the file had moved
            _back(beside, before)
        raise
    # From here on the result is whole: what follows only tidies, and may fail.
    with contextlib.suppress(EnvironmentFailure, OSError):
        flush(path.parent)
        if before is not None:
            write_sealed(beside, document)


def _back(beside: Path, before: dict[str, Any] | None) -> None:
    """Leave the manifest as it was, as far as the disk lets us: the one for both fits as well."""
    with contextlib.suppress(EnvironmentFailure, OSError):
        if before is None:
            remove(beside)
        else:
            write_sealed(beside, before)
