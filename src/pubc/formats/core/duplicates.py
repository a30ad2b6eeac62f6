"""Trajectories that occur twice: a demonstration that was copied counts double."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from pubc.formats.core.findings import Findings, plural, verb
from pubc.trajectory import TrajectorySet

__all__ = ["check_duplicates"]


def check_duplicates(trajectories: TrajectorySet, findings: Findings) -> None:
    """Find identical trajectories; only those alike at both ends are hashed whole."""
    alike = defaultdict(list)
    for index, key in enumerate(_ends(trajectories)):
        alike[key].append(index)
    copies = []
    for group in alike.values() if len(alike) < len(trajectories) else ():
        seen: set[bytes] = set()
        for index in group if len(group) > 1 else ():
            content = _content_hash(trajectories, index)
            if content in seen:
                copies.append(index)
            seen.add(content)
    if copies:
        first = min(copies)
        findings.warn(
            "duplicates",
            f"{plural(len(copies), 'trajectory')} that {verb(len(copies), 'repeats', 'repeat')} "
            f"an earlier one exactly (first: trajectory {trajectories.ids[first]}).",
            field="observations",
            count=len(copies),
            first=first,
        )


def _ends(trajectories: TrajectorySet) -> Iterator[bytes]:
    """Length, first observation and last action of each trajectory."""
    columns, starts = trajectories.columns, trajectories.starts
    last = starts + trajectories.lengths - 1
    parts = (trajectories.lengths[:, None], columns.observations[starts], columns.actions[last])
    lines = np.hstack([np.ascontiguousarray(part).view(np.uint8) for part in parts])
    size, content = lines.shape[1], lines.tobytes()
    return (content[at : at + size] for at in range(0, len(content), size))


def _content_hash(trajectories: TrajectorySet, index: int) -> bytes:
    steps = trajectories[index].steps
    digest = hashlib.blake2b(digest_size=16)
    digest.update(np.ascontiguousarray(steps.observations).tobytes())
    digest.update(np.ascontiguousarray(steps.actions).tobytes())
    return digest.digest()
