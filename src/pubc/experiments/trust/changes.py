"""What recording does to trajectories: absolute targets, offsets, dimensions that stand still."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pubc.experiments.trust.pile import with_columns
from pubc.trajectory import TrajectorySet

__all__ = [
    "Change",
    "absolute_actions",
    "add_action_dimension",
    "add_still_dimensions",
    "sensor_offset",
]

Change = Callable[[TrajectorySet, np.random.Generator], TrajectorySet]
"""Makes other trajectories of some; partial functions of this module travel to processes."""


def absolute_actions(
    trajectories: TrajectorySet,
    rng: np.random.Generator,
    *,
    state: tuple[int, ...],
    reach: float,
) -> TrajectorySet:
    """Actions as the position that they lead to, as many robots record them.

    Args:
        trajectories: Their first actions are moves of the given states, as shares of the reach.
        rng: Not used.
        state: For each of the first action dimensions, the state that it moves.
        reach: How far an action of 1 moves it.
    """
    flat = trajectories.flat()
    actions = np.array(flat.actions)
    moved = slice(0, len(state))
    actions[:, moved] = flat.observations[:, list(state)] + reach * actions[:, moved]
    return with_columns(trajectories, actions=actions)


def sensor_offset(
    trajectories: TrajectorySet,
    rng: np.random.Generator,
    *,
    state: tuple[int, ...],
    size: float,
    share: float = 1.0,
) -> TrajectorySet:
    """Some trajectories of another session: its sensors are off by a constant, its actors are not.

    Args:
        trajectories: What was recorded.
        rng: Draws which ones.
        state: The dimensions that are off.
        size: By how much.
        share: Of the trajectories.
    """
    other = rng.permutation(len(trajectories)) < share * len(trajectories)
    observations = np.array(trajectories.flat().observations)
    rows = np.repeat(other, trajectories.lengths)
    observations[:, state] += np.float32(size) * rows[:, None]
    return with_columns(trajectories, observations)


def add_action_dimension(
    trajectories: TrajectorySet, rng: np.random.Generator, *, spread: float = 0.0
) -> TrajectorySet:
    """One more action dimension: it stands still, or wanders where `spread` is above 0."""
    actions = trajectories.flat().actions
    extra = _wander(trajectories, rng, spread)
    return with_columns(trajectories, actions=np.concatenate([actions, extra], axis=1))


def add_still_dimensions(
    trajectories: TrajectorySet, rng: np.random.Generator, *, spread: float = 0.0
) -> TrajectorySet:
    """Two more state dimensions: one never moves, the other one where `spread` is above 0."""
    observations = trajectories.flat().observations
    still = np.full((len(observations), 1), 0.5, np.float32)
    parts = [observations, still, _wander(trajectories, rng, spread)]
    return with_columns(trajectories, np.concatenate(parts, axis=1))


def _wander(
    trajectories: TrajectorySet, rng: np.random.Generator, spread: float
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """A value that wanders slowly, another way in every trajectory; shape (steps, 1)."""
    steps = trajectories.steps
    shocks = rng.normal(0.0, spread, (steps, 1)) if spread else np.zeros((steps, 1))
    for start, stop in zip(trajectories.offsets[:-1], trajectories.offsets[1:], strict=True):
        for row in range(int(start) + 1, int(stop)):
            shocks[row] = 0.9 * shocks[row - 1] + 0.44 * shocks[row]
    return shocks.astype(np.float32)
