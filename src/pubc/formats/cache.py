"""A flat copy of slow formats, so that the second opening takes milliseconds.

The key is the path, size and modification time of every file of the dataset and every
option that changes what is read; a changed dataset is a different key. The copy is a store
(see `pubc.formats.store`) below $PUBC_CACHE, or ~/.cache/pubc.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

from pubc.errors import PubcError
from pubc.formats import store
from pubc.formats.findings import Findings
from pubc.formats.options import ReadOptions
from pubc.trajectory import TrajectorySet

__all__ = ["cache_folder", "cached"]

Reader = Callable[[Path, ReadOptions, Findings], TrajectorySet]


def cache_folder() -> Path:
    """Where cached copies live: $PUBC_CACHE, or ~/.cache/pubc."""
    given = os.environ.get("PUBC_CACHE")
    return Path(given) if given else Path.home() / ".cache" / "pubc"


def cached(
    path: Path, name: str, options: ReadOptions, *, slow: bool, read: Reader
) -> TrajectorySet:
    """Read through the cache where that pays off, else straight from the file."""
    findings = Findings(path, strict=options.strict)
    if not (slow and options.cache):
        return read(path, options, findings)
    copy = cache_folder() / "datasets" / f"{_key(path, name, options)}.store"
    try:
        return store.read(copy, ReadOptions(), Findings(copy))
    except PubcError:
        pass  # absent, or damaged: the source is still there, so read it again
    trajectories = read(path, options, findings)
    try:
        store.write(copy, trajectories, overwrite=True)
    except PubcError:
        return trajectories  # a cache that cannot be written costs time, not the result
    return trajectories


def _key(path: Path, name: str, options: ReadOptions) -> str:
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [
        (file.relative_to(path).as_posix(), stat.st_size, stat.st_mtime_ns)
        for file in files
        if (stat := file.stat()) and file.is_file()
    ]
    chosen = dataclasses.asdict(options) | {
        "format": name,
        "cache": True,
        "isolate": False,
    }
    text = json.dumps([str(path.resolve()), stats, chosen], default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
