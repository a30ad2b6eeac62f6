"""Which entries of the cache are ours: a cache may be set to a folder that holds other things.

An entry carries a marker with its own name, its files, and a digest of the marker.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from pubc.errors import PubcError
from pubc.storage.disk import is_temporary, temporary
from pubc.storage.manifest import MANIFEST, read_sealed, write_sealed

__all__ = ["ENTRY", "entry_files", "mark_entry", "remove_entry"]

ENTRY = "cache-entry.json"
"""The marker inside an entry of the cache."""
_ENTRY_KIND = "cache-entry"


def mark_entry(folder: Path, name: str, files: Collection[str]) -> None:
    """Mark a folder as an entry of the cache, before its files are written.

    Args:
        folder: The folder, under whatever name it has until it is whole.
        name: The name that it will have.
        files: Every file that it will hold.
    """
    write_sealed(folder / ENTRY, {"kind": _ENTRY_KIND, "entry": name, "files": sorted(files)})


def entry_files(path: Path) -> list[str] | None:
    """The files of a cache entry, or None where not everything there is provably ours.

    A moved or copied entry is not one: its marker names another place. Neither is one that
    somebody has put something into.
    """
    try:
        if path.is_symlink() or not path.is_dir():
            return None
        found = sorted(item.name for item in path.iterdir())
        if not found and is_temporary(path.name):
            return []  # killed before its marker; removing an empty folder loses nothing
        document = read_sealed(path / ENTRY)
        listed = document.get("files")
        if document.get("kind") != _ENTRY_KIND or not isinstance(listed, list):
            return None
        entry = str(document.get("entry"))
        if path.name != entry and not is_temporary(path.name, of=entry):
            return None
        ours = {ENTRY, MANIFEST, *map(str, listed)}
        plain = all(_is_plain(path / name) for name in found)
        known = all(name in ours or is_temporary(name, of=MANIFEST) for name in found)
        return found if plain and known else None
    except (PubcError, OSError):
        return None


def remove_entry(path: Path) -> bool:
    """Remove a cache entry file by file, if it proves to be one; whether it did.

    It goes under a hidden name first, so that nobody opens half of it; the marker goes last, so
    that what a kill leaves of it is still known as ours.

    Raises:
        OSError: It may not be removed.
    """
    if entry_files(path) is None:
        return False
    retired = path
    if not is_temporary(path.name):
        retired = temporary(path, tidy=False)
        os.rename(path, retired)
    # Looked at again under the name that nobody else knows.
    files = entry_files(retired)
    if files is None:
        os.rename(retired, path)
        return False
    for name in sorted(files, key=lambda name: name == ENTRY):
        (retired / name).unlink()
    retired.rmdir()
    return True


def _is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
