"""A folder that takes hours to make, and takes the place of an earlier one in one step at its end.

It is made beside the earlier one under a hidden name that a kill does not make worthless: whoever
made it can go on there. When it is whole, the two names are exchanged and the earlier one goes. A
kill just after the exchange leaves the earlier one under the hidden name, so the manifest of the
new one says which one it replaced.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pubc.errors import PubcError
from pubc.storage.disk import (
    LOCK,
    disk_words,
    exchange,
    flush,
    is_lock,
    is_temporary,
    place_of,
    remove,
    temporary,
)
from pubc.storage.manifest import read_manifest

__all__ = [
    "final_name",
    "has_replaced",
    "replaced_mark",
    "retire",
    "said_to_replace",
    "successor",
    "take_place",
]

_END = ".next"
_REPLACES = "replaces"


def successor(path: Path) -> Path:
    """Where the folder is made that is to take the place of the one at `path`."""
    place = place_of(path)
    return place.with_name(f".{place.name}{_END}")


def final_name(path: Path) -> str:
    """The name of a folder, or the one that it is to have when it is whole."""
    name = path.resolve().name
    if is_temporary(name):
        return name[1:].rpartition(".")[0]
    if name.startswith(".") and name.endswith(_END):
        return name[1 : -len(_END)]
    return name


def replaced_mark(path: Path, file: str) -> dict[str, str]:
    """What the manifest of a successor says about the folder that it replaces.

    Args:
        path: The folder to be replaced.
        file: A file in it that no other folder has the same of, such as one with its times.
    """
    if not (path / file).is_file():
        return {}
    return {_REPLACES: hashlib.sha256((path / file).read_bytes()).hexdigest()}


def said_to_replace(document: Mapping[str, Any]) -> dict[str, str]:
    """The mark of the folder that a successor replaces, where its document has one."""
    told = document.get(_REPLACES)
    return {_REPLACES: told} if isinstance(told, str) else {}


def has_replaced(path: Path, other: Path, file: str) -> bool:
    """Whether the folder at `path` is the one that took the place of `other`."""
    with contextlib.suppress(PubcError, OSError):
        told = said_to_replace(read_manifest(path))
        return told != {} and told == replaced_mark(other, file)
    return False


def take_place(new: Path, path: Path) -> None:
    """Put a whole folder where it belongs; what was there goes. See first whose that is.

    Raises:
        EnvironmentFailure: The disk said no, and the old one is still there.
    """
    path, retired = place_of(path), None
    with disk_words(path):
        if os.path.lexists(path):
            retired = exchange(new, path)
        else:
            os.rename(new, path)
        flush(path.parent)
    # From here on the result is whole: what follows only tidies, and may fail.
    with contextlib.suppress(OSError):
        if is_lock(path / LOCK):
            (path / LOCK).unlink()
        if retired is not None:
            retire(retired, path)


def retire(old: Path, path: Path) -> None:
    """Remove a folder by way of a name that the next write to `path` knows as a leftover."""
    gone = temporary(place_of(path))
    os.rename(old, gone)
    remove(gone)
