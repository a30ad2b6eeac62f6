"""N, the noise of the paper: uniform within the ranges of the other sources.

States, actions and rewards are drawn per dimension between the smallest and the largest
value that the other sources of the mixture show. Noise comes as trajectories of the same
lengths and ends, so that neither gives it away.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pubc.trajectory import Array, Columns, Trajectory

__all__ = ["Ranges", "draw", "ranges"]


@dataclass(frozen=True, slots=True, eq=False)
class Ranges:
    """Smallest and largest values, per dimension."""

    observations: Array
    """Shape (2, observation dimensions)."""
    actions: Array
    """Shape (2, action dimensions)."""
    rewards: Array
    """Shape (2, 1)."""


def ranges(columns: Iterable[Columns]) -> Ranges:
    """The ranges over all blocks of columns, read once and one at a time."""
    found: dict[str, Array] = {}
    for block in columns:
        for name, values in (
            ("observations", block.observations),
            ("actions", block.actions),
            ("rewards", np.asarray(block.rewards)[:, None]),
        ):
            both = np.stack([values.min(axis=0), values.max(axis=0)])
            if name in found:
                low = np.minimum(found[name][0], both[0])
                both = np.stack([low, np.maximum(found[name][1], both[1])])
            found[name] = both
    return Ranges(**found)


def draw(
    within: Ranges,
    length: int,
    *,
    terminal: bool,
    source: str,
    index: int,
    rng: np.random.Generator,
) -> Trajectory:
    """One trajectory of noise.

    Args:
        within: Ranges to draw from.
        length: Its steps.
        terminal: Whether it ends as terminal; as a timeout otherwise.
        source: Its source.
        index: Which trajectory of that source.
        rng: Source of all randomness.
    """
    observations = _uniform(within.observations, length + 1, rng)
    terminals, timeouts = np.zeros((2, length), dtype=np.bool_)
    terminals[-1], timeouts[-1] = terminal, not terminal
    return Trajectory(
        id=f"{source}-{index}",
        steps=Columns(
            observations=observations[:-1],
            actions=_uniform(within.actions, length, rng),
            rewards=_uniform(within.rewards, length, rng)[:, 0],
            terminals=terminals,
            timeouts=timeouts,
        ),
        final_observation=observations[-1],
        source=source,
    )


def _uniform(between: Array, rows: int, rng: np.random.Generator) -> Array:
    low, high = between
    values = rng.random((rows, between.shape[1]), dtype=np.float32)
    # Rounding may carry low + (high - low) * u past high by one float32 step.
    return np.asarray(np.clip(low + (high - low) * values, low, high), dtype=np.float32)
