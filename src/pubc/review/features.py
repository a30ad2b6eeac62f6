"""What a trajectory is like, in a few numbers: enough to group alike ones before any filter ran.

Means and spreads of states and actions say where a trajectory goes and how hard it acts; what is
left of the actions after a straight line from the states says how it acts at the same place. A
hundred thousand steps, evenly spaced, are read of a set of any size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.trajectory import TrajectorySet

__all__ = ["Features", "describe"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_STEPS = 100_000
"""Steps to look at in all; of more, evenly spaced ones are taken from every trajectory."""
_FEWEST = 16
"""Steps of a trajectory that are looked at however many trajectories there are."""
_RIDGE = 1e-3
"""Pull of the straight line from states to actions towards zero, in units of its data."""
_FAR = 6.0
"""Standardised numbers are cut off here, so that one wild trajectory does not hide the rest."""


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Numbers about every trajectory, each of spread one over the set."""

    style: Floats
    """How it moves and acts, shape (trajectories, features)."""
    start: Floats
    """Where it begins, shape (trajectories, observation dimensions that vary)."""


def describe(trajectories: TrajectorySet) -> Features:
    """Numbers about every trajectory of a set."""
    if not len(trajectories):
        return Features(np.zeros((0, 1)), np.zeros((0, 1)))
    sample = _sample(trajectories)
    inputs = np.concatenate([sample.states, np.ones((len(sample.states), 1))], axis=1)
    line = inputs @ _straight_line(inputs, sample.actions)
    rest = sample.actions - line
    found = []
    for values in (sample.states, sample.actions, rest):
        means = sample.means(values)
        found += [means, sample.spreads(values, means)]
    # How far along the line it goes: less than one is half-hearted, below zero the other way.
    along = sample.means((line - line.mean(axis=0)) * sample.actions)
    found += [along, sample.means(sample.changes), np.log(trajectories.lengths[:, None])]
    start = np.asarray(trajectories.columns.observations[trajectories.starts], dtype=np.float64)
    return Features(_standardised(np.concatenate(found, axis=1)), _standardised(start))


@dataclass(frozen=True, slots=True, eq=False)
class _Sample:
    """Steps of every trajectory, one trajectory after another."""

    states: Floats
    actions: Floats
    changes: Floats
    first: Integers
    counts: Integers

    def means(self, values: Floats) -> Floats:
        """Mean of each trajectory."""
        sums = np.add.reduceat(values, self.first, axis=0)
        return np.asarray(sums / self.counts[:, None])

    def spreads(self, values: Floats, means: Floats) -> Floats:
        """Standard deviation of each trajectory around the given means."""
        around = values - np.repeat(means, self.counts, axis=0)
        return np.asarray(np.sqrt(self.means(around**2)))


def _sample(trajectories: TrajectorySet) -> _Sample:
    lengths = trajectories.lengths
    most = max(_FEWEST, _STEPS // len(trajectories))
    counts = np.minimum(lengths, most)
    first = np.cumsum(counts) - counts
    within = np.arange(counts.sum()) - np.repeat(first, counts)
    steps = within * np.repeat(lengths, counts) // np.repeat(counts, counts)
    rows = np.repeat(trajectories.starts, counts) + steps
    after = np.minimum(rows + 1, np.repeat(trajectories.starts + lengths - 1, counts))
    columns = trajectories.columns
    states = np.asarray(columns.observations[rows], dtype=np.float64)
    actions = np.asarray(columns.actions[rows], dtype=np.float64)
    changes = np.abs(np.asarray(columns.actions[after], dtype=np.float64) - actions)
    trajectories.release()
    return _Sample(states, actions, changes, first, counts)


def _straight_line(inputs: Floats, actions: Floats) -> Floats:
    """Weights that guess the action from the state and a constant, over the whole set."""
    gram = inputs.T @ inputs
    pull = _RIDGE * np.diag(gram) + 1e-12
    return np.asarray(np.linalg.solve(gram + np.diag(pull), inputs.T @ actions))


def _standardised(values: Floats) -> Floats:
    """Columns of mean zero and spread one; those that never vary are left out."""
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    varies = spread > 1e-9 * (1.0 + np.abs(values).max(axis=0))
    if not varies.any():
        return np.zeros((len(values), 1))
    return np.asarray(np.clip(centred[:, varies] / spread[varies], -_FAR, _FAR))
