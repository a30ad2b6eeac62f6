"""The cache as a place with an end: what lies in it, how large it may grow, what goes first.

Copies are removed when a new one brings all of them above the limit, the one that was not used
for the longest time first. Who has mapped a copy that goes keeps reading it; who comes later
reads the dataset again. Only entries with our marker go, one by one, and links are not followed:
whatever else lies in the folder is somebody's.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

from pubc.errors import EnvironmentFailure, UsageError
from pubc.formats import store
from pubc.formats.opening.trusted_copies import WHOLE, block_digests
from pubc.storage import entry_files, remove_entry
from pubc.trajectory import TrajectorySet

__all__ = [
    "LIMIT",
    "Copy",
    "clear",
    "copies",
    "folder",
    "limit",
    "others",
    "touch",
    "trim",
    "write",
]

LIMIT = 10.0
"""GiB that all copies together may take, unless $PUBC_CACHE_GIB says otherwise."""
_DAY = 86_400
"""Seconds after which a copy that nobody finished was left behind by a killed process."""


@dataclass(frozen=True, slots=True)
class Copy:
    """One flat copy of a dataset."""

    path: Path
    """Its store."""
    size: int
    """Bytes on the disk."""
    used: float
    """When it was last opened, in seconds since 1970."""


def folder() -> Path:
    """Where copies lie: below $PUBC_CACHE, or ~/.cache/pubc."""
    given = os.environ.get("PUBC_CACHE")
    return (Path(given) if given else Path.home() / ".cache" / "pubc") / "datasets"


def limit() -> int:
    """Bytes that all copies together may take; at 0 none is made.

    Raises:
        UsageError: $PUBC_CACHE_GIB is not a number of GiB.
    """
    given = os.environ.get("PUBC_CACHE_GIB", "").strip()
    try:
        gibibytes = float(given) if given else LIMIT
    except ValueError:
        gibibytes = -1.0
    if not math.isfinite(gibibytes * 2**30) or gibibytes < 0:
        raise UsageError(
            f"PUBC_CACHE_GIB must be the GiB that cached copies may take, such as 2.5, or 0 for "
            f"no cache. Got {given!r}."
        )
    return int(gibibytes * 2**30)


def write(path: Path, trajectories: TrajectorySet, source: Path, origin: str) -> None:
    """Write the copy of a dataset, in place of a damaged one.

    Raises:
        UsageError: Something is there that is not provably a copy of ours.
        EnvironmentFailure: The disk said no.
    """
    _remove(path)
    store.write(path, trajectories, overwrite=False, copy_of=(source, origin), blocks=_blocks)


def _blocks(copy: Path) -> dict[str, dict[str, str]]:
    """Digests of the parts of large files, for who looks at some of them only."""
    large = [path for path in sorted(copy.iterdir()) if path.stat().st_size > WHOLE]
    return {path.name: block_digests(path) for path in large}


def copies() -> list[Copy]:
    """Every copy in the cache, the one that was not used for the longest time first.

    Only what carries the marker of a copy counts: $PUBC_CACHE may name a folder that has other
    things in it, and they are neither counted nor ever removed.
    """
    found = []
    for path in _entries():
        files = entry_files(path)
        if files is None or path.name.startswith("."):
            continue
        with contextlib.suppress(OSError):  # another process may be removing it
            size = sum((path / name).lstat().st_size for name in files)
            found.append(Copy(path, size, path.lstat().st_mtime))
    return sorted(found, key=lambda copy: copy.used)


def others() -> int:
    """How many things lie beside the copies that are not provably ours."""
    return sum(entry_files(path) is None for path in _entries())


def touch(path: Path) -> None:
    """Note that a copy was used just now."""
    with contextlib.suppress(OSError):  # a cache on a read-only disk can still be read
        os.utime(path, follow_symlinks=False)


def trim(newest: Path) -> None:
    """Remove copies until the rest is within the limit; the newest stays, however large."""
    found = copies()
    excess = sum(copy.size for copy in found) - limit()
    for copy in found:
        if excess <= 0:
            break
        if copy.path != newest:
            excess -= copy.size
            _remove(copy.path)
    for path in _entries():
        with contextlib.suppress(OSError):
            if path.name.startswith(".") and time.time() - path.lstat().st_mtime > _DAY:
                _remove(path)


def clear() -> None:
    """Remove all copies, and what killed processes left of others; nothing else.

    Raises:
        EnvironmentFailure: A copy could not be removed.
    """
    for path in _entries():
        _remove(path)
    left = sum(entry_files(path) is not None for path in _entries())
    if left:
        raise EnvironmentFailure(
            f"{folder()}: {left:,} of its copies could not be removed; who owns them?"
        )


def _entries() -> list[Path]:
    """What lies in the cache; nothing where the folder is a link to somewhere else."""
    place = folder()
    if place.is_symlink() or not place.is_dir():
        return []
    with contextlib.suppress(OSError):
        return list(place.iterdir())
    return []


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        remove_entry(path)
