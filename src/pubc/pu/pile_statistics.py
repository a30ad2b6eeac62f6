"""One pass over a set: its ranges, its moments and its fingerprint."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.trajectory import Array, TrajectorySet

__all__ = ["Ranges", "Survey", "survey"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Smallest, largest, mean and deviation of each dimension."""

    low: Floats
    """Smallest value, shape (dimensions,)."""
    high: Floats
    """Largest value, shape (dimensions,)."""
    mean: Floats
    """Average, shape (dimensions,)."""
    deviation: Floats
    """Standard deviation, shape (dimensions,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Survey:
    """What one pass over a set found."""

    observations: Ranges
    """Of the observations."""
    actions: Ranges
    """Of the actions."""
    fingerprint: str
    """SHA-256 of lengths, observations and actions in their own dtypes."""


class _Moments:
    """Running ranges and moments; shifted by the first row, so that nothing cancels."""

    def __init__(self, size: int) -> None:
        self.low, self.high = np.full(size, np.inf), np.full(size, -np.inf)
        self.shift: Floats | None = None
        self.sum, self.squares = np.zeros(size), np.zeros(size)
        self.count = 0

    def add(self, block: Array) -> None:
        self.low = np.minimum(self.low, block.min(axis=0))
        self.high = np.maximum(self.high, block.max(axis=0))
        if self.shift is None:
            self.shift = block[0].astype(np.float64)
        centred = block - self.shift
        self.sum += centred.sum(axis=0)
        self.squares += np.einsum("ij,ij->j", centred, centred)
        self.count += len(block)

    def ranges(self) -> Ranges:
        assert self.shift is not None
        mean = self.sum / self.count
        variance = np.maximum(self.squares / self.count - mean**2, 0.0)
        return Ranges(self.low, self.high, mean + self.shift, np.sqrt(variance))


def survey(trajectories: TrajectorySet) -> Survey:
    """Stream a set once and describe it; the set must hold at least one step."""
    observations = _Moments(trajectories.observation_size)
    actions = _Moments(trajectories.action_size)
    digest = hashlib.sha256(np.ascontiguousarray(trajectories.lengths).data)
    for column in (trajectories.columns.observations, trajectories.columns.actions):
        digest.update(f"{column.dtype.str}{column.shape[1:]}".encode())
    for block in trajectories.blocks():
        observations.add(block.observations)
        actions.add(block.actions)
        digest.update(np.ascontiguousarray(block.observations).data)
        digest.update(np.ascontiguousarray(block.actions).data)
    return Survey(observations.ranges(), actions.ranges(), digest.hexdigest())
