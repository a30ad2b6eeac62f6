"""Curves that fit a card: the states and actions that vary most, at a few dozen points.

Nothing is computed ahead: a chunk of cards is sampled from the columns when the browser asks for
it, so a set of any size opens at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.report.payload import pack
from pubc.trajectory import TrajectorySet

__all__ = ["CHUNK", "POINTS", "Plots", "plots_of"]

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

CHUNK = 200
"""Trajectories whose curves travel together."""
POINTS = 48
"""Points of a small curve."""
_CLOSE_POINTS = 500
"""Points of a curve in the closer look."""
_SMALL, _LARGE = 2, 6
"""States, and as many actions, on a card and in the closer look."""
_SAMPLE = 20_000
"""Steps that the choice of dimensions and their scales are read from."""
_ALIKE = 0.97
"""A dimension correlated with a chosen one by more than this shows nothing new."""
_NONE = 255
"""Stands for a value that is not a number; the others are 0 to 254."""


@dataclass(frozen=True, slots=True, eq=False)
class Plots:
    """Which curves are drawn of every trajectory, and how high they reach."""

    trajectories: TrajectorySet
    """What is drawn."""
    states: tuple[int, ...]
    """Observation dimensions, those that vary most first."""
    actions: tuple[int, ...]
    """Action dimensions, likewise."""
    low: Floats
    """Lower end of the scale of each curve, states first."""
    high: Floats
    """Upper end."""

    @property
    def small(self) -> list[int]:
        """Places of the curves on a card among all curves."""
        first = range(min(_SMALL, len(self.states)))
        second = range(len(self.states), len(self.states) + min(_SMALL, len(self.actions)))
        return [*first, *second]

    def names(self) -> list[str]:
        """What the curves are called, states first."""
        return [f"state {at}" for at in self.states] + [f"action {at}" for at in self.actions]

    def chunk(self, number: int) -> bytes:
        """Curves of one chunk as bytes, in the order (trajectory, curve, point)."""
        first = number * CHUNK
        chosen = self.trajectories[first : first + CHUNK]
        if number < 0 or not len(chosen):
            return b""
        steps = np.arange(POINTS) * (chosen.lengths[:, None] - 1) // (POINTS - 1)
        values = self._values(chosen.starts[:, None] + steps)[..., self.small]
        low, high = self.low[self.small], self.high[self.small]
        scaled = np.clip((values - low) / (high - low), 0.0, 1.0) * (_NONE - 1)
        whole = np.where(np.isfinite(scaled), np.rint(scaled), _NONE).astype(np.uint8)
        return np.ascontiguousarray(whole.transpose(0, 2, 1)).tobytes()

    def close(self, at: int) -> dict[str, Any]:
        """All curves of one trajectory, as the page unpacks them."""
        start, length = int(self.trajectories.starts[at]), int(self.trajectories.lengths[at])
        points = min(length, _CLOSE_POINTS)
        steps = np.arange(points) * max(length - 1, 0) // max(points - 1, 1)
        values = self._values(start + steps)
        return {
            "steps": pack(steps, "i4"),
            "curves": [pack(values[:, curve], "f4") for curve in range(values.shape[1])],
        }

    def _values(self, rows: Integers) -> Floats:
        columns = self.trajectories.columns
        states = columns.observations[rows.reshape(-1)][:, list(self.states)]
        actions = columns.actions[rows.reshape(-1)][:, list(self.actions)]
        both = np.concatenate([states, actions], axis=1, dtype=np.float64)
        return both.reshape(*rows.shape, both.shape[1])


def plots_of(trajectories: TrajectorySet) -> Plots:
    """Choose what to draw of every trajectory of a set."""
    total = trajectories.steps
    positions = np.unique(np.linspace(0, max(total - 1, 0), min(total, _SAMPLE)).astype(np.int64))
    rows = trajectories.take_steps(positions)
    states = np.asarray(rows.observations, dtype=np.float64)
    actions = np.asarray(rows.actions, dtype=np.float64)
    first, second = _most_varied(states), _most_varied(actions)
    chosen = np.concatenate([states[:, first], actions[:, second]], axis=1)
    if len(chosen):
        low, high = np.nanpercentile(chosen, [0.5, 99.5], axis=0)
    else:
        low, high = np.zeros(chosen.shape[1]), np.ones(chosen.shape[1])
    flat = ~(high > low)
    low, high = np.where(flat, low - 0.5, low), np.where(flat, low + 0.5, high)
    room = 0.04 * (high - low)
    return Plots(trajectories, tuple(first), tuple(second), low - room, high + room)


def _most_varied(values: Floats) -> list[int]:
    """Columns with the highest variance that do not repeat each other."""
    finite = np.where(np.isfinite(values), values, 0.0)
    spread = finite.std(axis=0) if len(finite) else np.zeros(finite.shape[1])
    unit = (
        (finite - finite.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        if len(finite)
        else finite
    )
    chosen: list[int] = []
    for at in np.argsort(-spread, kind="stable").tolist():
        same = [
            abs(float((unit[:, at] * unit[:, other]).mean())) for other in chosen if spread[at] > 0
        ]
        if len(chosen) < _LARGE and not any(value > _ALIKE for value in same):
            chosen.append(at)
    return chosen
