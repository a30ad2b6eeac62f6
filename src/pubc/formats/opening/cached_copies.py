"""The cache as a place with an end: what lies in it, how large it may grow, what goes first.

Copies are removed when a new one brings all of them above the limit, the one that was not used
for the longest time first. Who has mapped a copy that goes keeps reading it; who comes later
reads the dataset again.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path

from pubc.errors import EnvironmentFailure, UsageError
from pubc.storage import discard

__all__ = ["LIMIT", "Copy", "clear", "copies", "folder", "limit", "touch", "trim"]

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
    if not math.isfinite(gibibytes) or gibibytes < 0:
        raise UsageError(
            f"PUBC_CACHE_GIB must be the GiB that cached copies may take, such as 2.5, or 0 for "
            f"no cache. Got {given!r}."
        )
    return int(gibibytes * 2**30)


def copies() -> list[Copy]:
    """Every copy in the cache, the one that was not used for the longest time first."""
    found = []
    for path in folder().glob("[!.]*.store"):
        with contextlib.suppress(OSError):  # another process may be removing it
            size = sum(file.stat().st_size for file in path.iterdir())
            found.append(Copy(path, size, path.stat().st_mtime))
    return sorted(found, key=lambda copy: copy.used)


def touch(path: Path) -> None:
    """Note that a copy was used just now."""
    with contextlib.suppress(OSError):  # somebody else's cache can still be read
        os.utime(path)


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
    for path in folder().glob(".*"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _DAY:
                _remove(path)


def clear() -> None:
    """Remove all copies, and what killed processes left of others.

    Raises:
        EnvironmentFailure: Something could not be removed.
    """
    place = folder()
    for path in list(place.iterdir()) if place.is_dir() else []:
        _remove(path)
    left = sum(1 for _ in place.iterdir()) if place.is_dir() else 0
    if left:
        raise EnvironmentFailure(
            f"{place}: {left:,} of its entries could not be removed; who owns them?"
        )


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        discard(path)
