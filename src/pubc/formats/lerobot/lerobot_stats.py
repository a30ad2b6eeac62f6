"""The statistics that LeRobot keeps per episode and for a whole dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.trajectory import Array

__all__ = ["QUANTILES", "episode_stats", "join_stats"]

Floats = NDArray[np.float64]
Stats = dict[str, dict[str, Any]]
QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}


def episode_stats(columns: dict[str, Array]) -> Stats:
    """Statistics of every feature over the frames of one episode, in float64."""
    return {name: _feature(column) for name, column in columns.items()}


def _feature(column: Array) -> dict[str, Any]:
    ordered = np.sort(column.reshape(len(column), -1).astype(np.float64), axis=0)
    shape = column.shape[1:] or (1,)
    values = {
        "min": ordered[0],
        "max": ordered[-1],
        "mean": ordered.mean(axis=0),
        "std": ordered.std(axis=0),
        **{name: _quantile(ordered, share) for name, share in QUANTILES.items()},
    }
    stats: dict[str, Any] = {name: value.reshape(shape) for name, value in values.items()}
    stats["count"] = np.array([len(column)], dtype=np.int64)
    return stats


def _quantile(ordered: Floats, share: float) -> Floats:
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    mixed = ordered[low] + (place - low) * (ordered[high] - ordered[low])
    return np.asarray(mixed, dtype=np.float64)


def join_stats(episodes: Sequence[Stats]) -> Stats:
    """Statistics of the whole from those of its episodes, the way lerobot joins them.

    Smallest, largest, mean and spread are exact; quantiles are means over the frames of the
    episodes' quantiles.
    """
    return {name: _join([stats[name] for stats in episodes]) for name in episodes[0]}


def _join(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    counts = np.array([int(np.asarray(part["count"]).reshape(-1)[0]) for part in parts])
    weights = counts / counts.sum()

    def stack(name: str) -> Floats:
        return np.array([part[name] for part in parts], dtype=np.float64)

    def average(values: Floats) -> Floats:
        return np.asarray(np.tensordot(weights, values, axes=1), dtype=np.float64)

    mean = average(stack("mean"))
    variance = average(stack("std") ** 2 + (stack("mean") - mean) ** 2)
    joined: dict[str, Any] = {
        "min": stack("min").min(axis=0),
        "max": stack("max").max(axis=0),
        "mean": mean,
        "std": np.sqrt(variance),
        "count": np.array([counts.sum()]),
    }
    known = [name for name in QUANTILES if all(name in part for part in parts)]
    return joined | {name: average(stack(name)) for name in known}
