"""Where a written dataset came from, for its manifest."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from pubc.formats.core.options import ReadOptions
from pubc.trajectory import TrajectorySet

__all__ = ["SEGMENTS", "fingerprint", "provenance", "segment_facts"]

SEGMENTS = "segments"
"""Metadata of a set of segments: source id, first step and last step + 1 of each."""

_ENDS = 64 << 10


def provenance(source: Path, options: ReadOptions) -> dict[str, Any]:
    """The source of a conversion, how it was read, and by which pubc."""
    from pubc.version import __version__

    return {
        "source": {"path": str(source.resolve()), "fingerprint": fingerprint(source)},
        "options": dataclasses.asdict(options),
        "pubc": __version__,
    }


def fingerprint(path: Path) -> str:
    """SHA-256 over name, size, first and last 64 KiB of every file of a dataset.

    Reading all of a video dataset to name it would take longer than converting it; what
    this misses, the manifest of the source itself finds.
    """
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.is_file())
    for file in files:
        name = file.name if path.is_file() else file.relative_to(path).as_posix()
        size = file.stat().st_size
        digest.update(f"{name}\0{size}\0".encode())
        with file.open("rb") as handle:
            digest.update(handle.read(_ENDS))
            handle.seek(max(0, size - _ENDS))
            digest.update(handle.read(_ENDS))
    return digest.hexdigest()


def segment_facts(trajectories: TrajectorySet) -> list[dict[str, Any]]:
    """What formats with facts per trajectory note of each segment; empty for other sets."""
    table = trajectories.metadata.get(SEGMENTS)
    if not isinstance(table, list) or len(table) != len(trajectories):
        return []
    try:
        return [
            {
                "pubc_source_id": str(name),
                "pubc_first_step": int(first),
                "pubc_end_step": int(end),
            }
            for name, first, end in table
        ]
    except (TypeError, ValueError):
        return []
