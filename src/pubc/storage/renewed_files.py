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
from pubc.storage.disk import disk_words, flush, place_of, remove, temporary
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
