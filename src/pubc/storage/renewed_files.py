"""Some files of a sealed folder written anew, with its manifest, as one step.

As for a file with its manifest beside it (`pubc.storage.file_with_manifest`), the manifest goes
first and speaks for both: the earlier one with the coming one inside it. Whichever of the two
stands under a name, the manifest that is read fits it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from pubc.errors import EnvironmentFailure
from pubc.storage.disk import disk_words, flush, remove, temporary
from pubc.storage.manifest import MANIFEST, NEXT, file_manifest, read_manifest, write_sealed

__all__ = ["renew_files"]


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
    staged: dict[str, Path] = {}
    with disk_words(folder):
        try:
            entries = dict(before["files"])
            for name, content in files.items():
                staged[name] = temporary(folder / name)
                staged[name].write_bytes(content)
                (entry,) = file_manifest(staged[name], kind="")["files"].values()
                entries[name] = entry
            coming = {**before, "files": entries}
            write_sealed(folder / MANIFEST, {**before, NEXT: coming})
            flush(folder)
            for name, new in staged.items():
                os.replace(new, folder / name)
            flush(folder)
            with contextlib.suppress(EnvironmentFailure, OSError):
                # All is in place; the manifest for both fits as well as the one that follows it.
                write_sealed(folder / MANIFEST, coming)
        finally:
            for new in staged.values():
                remove(new)
