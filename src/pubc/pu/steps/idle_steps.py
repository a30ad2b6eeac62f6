"""Stretches in which nothing moves although the expert would have moved on.

Deleting everything that stands still breaks data: a task may consist of waiting, and an expert
may pause. So a stretch counts as idle only where the seeds were in such a situation, moved on
there, and never stood still there; and never most of a trajectory.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pubc.trajectory import TrajectorySet

__all__ = ["IdleRule", "learn_idle_rule"]

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

_STILL = 0.05
"""A step is still that moves less than this share of what the seeds' steps usually move."""
_SHORTEST = 5
"""Steps that a stretch has to stand still for."""
_SEEN = 4000
"""At most so many states of the seeds are looked at."""
_NEAR = 0.9
"""Quantile of the seeds' distances from one another within which a situation is theirs."""
_MOST = 0.5
"""More of a trajectory than this is never idle: then waiting is the task."""


class IdleRule:
    """Says which steps of a trajectory may go."""

    def __init__(
        self, spread: Floats, pace: float, states: Floats, still: Mask, near: float
    ) -> None:
        self._spread, self._pace, self._states = spread, pace, states
        self._still, self._near = still, near

    def idle(self, observations: NDArray[np.generic]) -> Mask:
        """Which steps of one trajectory stand still where the expert would not."""
        states = _scaled(observations, self._spread)
        found = _long_enough(_speeds(states) < _STILL * self._pace)
        if not found.any() or found.mean() > _MOST:
            return np.zeros(len(states), dtype=np.bool_)
        for first, end in _stretches(found):
            away = _distances(states[first:end], self._states)
            theirs = away <= self._near
            moved_on = (theirs & ~self._still).any()
            if not moved_on or (theirs & self._still).any():
                found[first:end] = False
        return found


def learn_idle_rule(seeds: TrajectorySet, rng: np.random.Generator) -> IdleRule | None:
    """The rule that some seeds imply; None where they never move.

    Args:
        seeds: Trajectories of the expert.
        rng: Draws the states to look at where there are very many.
    """
    flat = np.asarray(seeds.flat().observations, dtype=np.float64).reshape(seeds.steps, -1)
    spread = flat.std(axis=0)
    parts = np.split(_scaled(flat, spread), seeds.offsets[1:-1])
    speeds = [_speeds(part) for part in parts]
    moving = np.concatenate(speeds)
    moving = moving[moving > 0]
    if not len(moving):
        return None
    pace = float(np.median(moving))
    still = np.concatenate([_long_enough(speed < _STILL * pace) for speed in speeds])
    states = np.concatenate(parts)
    if len(states) > _SEEN:
        chosen = np.sort(rng.choice(len(states), _SEEN, replace=False))
        states, still = states[chosen], still[chosen]
        owner = np.repeat(np.arange(len(parts)), seeds.lengths)[chosen]
    else:
        owner = np.repeat(np.arange(len(parts)), seeds.lengths)
    return IdleRule(spread, pace, states, still, _usual_distance(states, owner, pace))


def _usual_distance(states: Floats, owner: NDArray[np.int64], pace: float) -> float:
    """How far a state of a seed usually lies from the nearest one of another seed."""
    if owner.max() == 0:
        return 3 * pace
    nearest = []
    for number in range(int(owner.max()) + 1):
        mine = states[owner == number][::7]
        if len(mine) and (owner != number).any():
            nearest.append(_distances(mine, states[owner != number]).min(axis=1))
    return float(np.quantile(np.concatenate(nearest), _NEAR)) if nearest else 3 * pace


def _scaled(observations: NDArray[np.generic], spread: Floats) -> Floats:
    flat = np.asarray(observations, dtype=np.float64).reshape(len(observations), -1)
    used = spread > 1e-6
    return np.asarray(flat[:, used] / spread[used])


def _speeds(states: Floats) -> Floats:
    """How far each state moves to the next; the last one as the one before it."""
    moved = np.linalg.norm(np.diff(states, axis=0), axis=1)
    return np.append(moved, moved[-1:]) if len(moved) else np.zeros(len(states))


def _distances(some: Floats, others: Floats) -> Floats:
    squares = (some**2).sum(1)[:, None] + (others**2).sum(1) - 2 * some @ others.T
    return np.asarray(np.sqrt(np.maximum(squares, 0)))


def _stretches(flags: Mask) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _long_enough(flags: Mask) -> Mask:
    kept = np.zeros(len(flags), dtype=np.bool_)
    for first, end in _stretches(flags):
        if end - first >= _SHORTEST:
            kept[first:end] = True
    return kept
