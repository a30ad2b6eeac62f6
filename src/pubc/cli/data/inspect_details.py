"""What a user needs to know of a dataset before filtering it: its keys, its ids, ways to seed."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.named_parts import PARTS, read_parts
from pubc.select import top_count
from pubc.trajectory import TrajectorySet
from pubc.trajectory.numbered_ids import numbered

__all__ = ["describe_ids", "describe_keys", "suggest_seeds"]

_SHARE = 0.05
"""Share of highest returns that is suggested as seeds; the user sees how many that is."""
_DRAWN = 2
"""Seeds that `pubc filter --seed-source` draws of a source."""
_NAMED = 5
"""Sources that are named where nothing says which one is good."""


def describe_keys(trajectories: TrajectorySet) -> list[dict[str, Any]]:
    """Every array with one row per step: its name in the file, its use, shape and dtype."""
    metadata = trajectories.metadata
    keys: list[dict[str, Any]] = []
    for name, column in trajectories.columns.named():
        shape, use = list(column.shape[1:]), name.rstrip("s")
        if name == "observations" and (parts := read_parts(metadata.get(PARTS), column.shape[1])):
            keys += [
                {"key": p.key, "shape": list(p.shape), "dtype": str(p.dtype), "use": "observation"}
                for p in parts
            ]
            continue
        if name == "actions" and isinstance(metadata.get("action_key"), str):
            name = metadata["action_key"]
        if name.startswith("extras/"):
            name, use = name.removeprefix("extras/"), "extra"
        keys.append({"key": name, "shape": shape, "dtype": str(column.dtype), "use": use})
    return keys


def describe_ids(trajectories: TrajectorySet) -> dict[str, Any]:
    """The first and the last id, and the pattern that all of them follow, if there is one.

    Example:
        Ids demo_0, demo_1 and demo_2 follow `demo_N`, N from 0 to 2.
    """
    ids = [str(name) for name in trajectories.ids]
    if not ids:
        return {"first": None, "last": None, "pattern": None}
    places = [place for name in ids if (place := numbered(name))]
    pattern = None
    if len(places) == len(ids) and len({start for start, _ in places}) == 1:
        numbers = [number for _, number in places]
        gaps = "" if len(set(numbers)) == max(numbers) - min(numbers) + 1 else ", with gaps"
        pattern = f"{places[0][0]}N, N from {min(numbers)} to {max(numbers)}{gaps}"
    return {"first": ids[0], "last": ids[-1], "pattern": pattern}


def suggest_seeds(path: Path, trajectories: TrajectorySet) -> list[dict[str, str]]:
    """Flags of `pubc filter` that could name seeds here, each with what it would take."""
    found: list[dict[str, str]] = []
    if not len(trajectories):
        return found
    ids = [str(name) for name in trajectories.ids]
    if not any("," in name for name in ids):
        some = ",".join(dict.fromkeys([ids[0], ids[len(ids) // 2]]))
        told = "an example of how to write ids: name ones you know to be good"
        found.append(_way(path, ["--seed-episodes", some], told))
    returns = trajectories.total_rewards()
    known = trajectories.columns.rewards is not None and bool(np.isfinite(returns).all())
    telling = known and np.ptp(returns) > 0
    if trajectories.sources is not None:
        by_source = _sources(trajectories.sources, returns if telling else None)
        found += [_way(path, ["--seed-source", name], told) for name, told in by_source]
    if telling and len(trajectories) >= 4:
        best = top_count(len(trajectories), _SHARE, 2)
        told = f"the {best:,} with the highest returns, if the expert earns the most"
        found.append(_way(path, ["--seed-top", f"{_SHARE:g}"], told))
    return found


def _sources(
    sources: NDArray[np.str_], returns: NDArray[np.float64] | None
) -> list[tuple[str, str]]:
    """Sources to draw seeds from: the one that earns most, or any where returns do not tell."""
    counts = {name: count for name, count in Counter(sources.tolist()).items() if count >= _DRAWN}
    if returns is None or len(counts) < 2:
        some = sorted(counts, key=lambda name: -counts[name])[:_NAMED]
        return [(name, f"two of the {counts[name]:,} by {name}, if it is good") for name in some]
    best = max(counts, key=lambda name: float(returns[sources == name].mean()))
    return [(best, f"two of the {counts[best]:,} by {best}, the source that earns most")]


def _way(path: Path, flags: list[str], told: str) -> dict[str, str]:
    line = shlex.join(["pubc", "filter", str(path), *flags, "--out", "run"])
    return {"flags": shlex.join(flags), "takes": told, "command": line}
