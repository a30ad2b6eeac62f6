"""A pile as a judge of residuals looks at it: a few telling steps of every trajectory.

Steps at rest repeat one state hundreds of times and say nothing about a policy, so steps are
chosen in proportion to how much the state moves. States and actions are brought to the scale
of the seeds. The chosen steps lie in memory; the pile itself may be larger than memory.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, from_numpy

from pubc.errors import InterruptedRun
from pubc.pu.judge import Bench
from pubc.trajectory import Columns, TrajectorySet

__all__ = ["Scale", "View", "look"]

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

SAMPLE = 20_000
"""Rows from which the spread of the states is estimated."""
MEMORY = 256 << 20
"""Bytes that the chosen steps may take."""
HALF_WINDOW = 5
"""Motion is averaged over this many steps to either side."""
CHUNK = 32
"""Trajectories looked at as one piece of work."""
AT_ONCE = 8192
"""Steps looked at together; a longer trajectory alone."""
STILL = 1e-6
"""Dimensions that vary less than this, relative to their size, are left out."""


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """How states and actions are brought to one scale; stored with the networks."""

    state_kept: Integers
    """Observation dimensions that are used."""
    state_mean: Floats
    """Of the seeds."""
    state_spread: Floats
    """Of the pile, without its extremes."""
    action_kept: Integers
    """Action dimensions that are used."""
    action_mean: Floats
    """Of the seeds."""
    action_spread: Floats
    """Of the seeds."""
    pace: Floats
    """Shape (1,): how fast the seeds move when they move fast."""

    def states(self, rows: NDArray[Any]) -> Floats:
        """Standardised states, cut off at five spreads."""
        kept = np.asarray(rows[:, self.state_kept], dtype=np.float32)
        scaled = (kept - self.state_mean) / self.state_spread
        return np.asarray(np.clip(scaled, -5.0, 5.0), dtype=np.float32)

    def actions(self, rows: NDArray[Any]) -> Floats:
        """Standardised actions."""
        kept = np.asarray(rows[:, self.action_kept], dtype=np.float32)
        return (kept - self.action_mean) / self.action_spread

    def speed(self, observations: NDArray[Any], lengths: Integers) -> NDArray[np.float64]:
        """How fast the states of trajectories one after another move, smoothed, per step."""
        rows = np.asarray(observations[:, self.state_kept], dtype=np.float32) / self.state_spread
        moved = np.ones(len(rows))
        squares = np.clip(np.square(np.diff(rows, axis=0)), 0, 100)
        moved[1:] = np.sqrt(squares.sum(axis=1, dtype=np.float64))
        ends = np.cumsum(lengths)
        return np.concatenate([_smooth(part) for part in np.split(moved, ends[:-1])])

    def weights(self, observations: NDArray[Any], lengths: Integers) -> Floats:
        """How telling each step of trajectories one after another is, 0 to 1."""
        cube = self.speed(observations, lengths) ** 3
        return np.asarray(cube / (cube + float(self.pace[0]) ** 3 + 1e-30), dtype=np.float32)

    def tensors(self) -> dict[str, Tensor]:
        """For a file of weights."""
        names = [f"scale.{name}" for name in self.__slots__]
        arrays = [np.ascontiguousarray(getattr(self, name)) for name in self.__slots__]
        return {name: from_numpy(array) for name, array in zip(names, arrays, strict=True)}

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor]) -> Scale:
        """From a file of weights."""
        return cls(**{name: tensors[f"scale.{name}"].numpy() for name in cls.__slots__})


class View:
    """Every trajectory of a pile as a fixed number of telling steps.

    Trajectories are numbered through: first those of the pile, then the seeds that are not
    part of it.
    """

    def __init__(
        self,
        mixed: TrajectorySet,
        seed_positives: TrajectorySet,
        places: Integers,
        steps: int,
        bench: Bench,
    ) -> None:
        """Look at a pile.

        Args:
            mixed: The pile.
            seed_positives: The seeds.
            places: Where each seed lies in the pile, -1 where it does not.
            steps: Steps chosen of each trajectory.
            bench: Where to work.
        """
        outside = seed_positives[np.flatnonzero(places < 0)]
        self.parts: Sequence[TrajectorySet] = (mixed, outside)
        self.mixed = len(mixed)
        self.count = len(mixed) + len(outside)
        self.lengths = np.concatenate([mixed.lengths, outside.lengths])
        self.seeds = np.where(places >= 0, places, 0)
        self.seeds[places < 0] = len(mixed) + np.arange(len(outside))
        self.is_seed = np.zeros(self.count, dtype=np.bool_)
        self.is_seed[self.seeds] = True
        self.scale = self._measure()
        self.steps = self._affordable(steps)
        self.weights: list[Floats] = [np.zeros(0, np.float32)] * self.count
        self.chosen = np.empty((self.count, self.steps), np.int64)
        self.states = np.empty(
            (self.count, self.steps, len(self.scale.state_kept)), dtype=np.float32
        )
        self.actions = np.empty(
            (self.count, self.steps, len(self.scale.action_kept)), dtype=np.float32
        )
        self._look(bench)

    def pick(self, trajectory: int, count: int) -> Integers:
        """Steps of a trajectory in proportion to their weight, evenly spaced in their sum."""
        return pick(self.weights[trajectory], count)

    def take(self, trajectory: int, steps: Integers) -> tuple[Floats, Floats]:
        """Standardised states and actions of some steps of a trajectory."""
        columns = self._columns(trajectory)
        scale = self.scale
        return scale.states(columns.observations[steps]), scale.actions(columns.actions[steps])

    def pool(self, trajectories: Integers, rows: int) -> tuple[Floats, Floats]:
        """About so many rows of some trajectories together, to train an imitator on."""
        each = max(32, rows // len(trajectories))
        taken = []
        for number, trajectory in enumerate(trajectories, 1):
            taken.append(self.take(int(trajectory), self.pick(int(trajectory), each)))
            if number % CHUNK == 0 or number == len(trajectories):
                self.parts[0].release()
        return np.concatenate([s for s, _ in taken]), np.concatenate([a for _, a in taken])

    def _columns(self, trajectory: int) -> Columns:
        part = self.parts[0] if trajectory < self.mixed else self.parts[1]
        local = trajectory if trajectory < self.mixed else trajectory - self.mixed
        start = int(part.starts[local])
        return part.columns.take(slice(start, start + int(part.lengths[local])))

    def _measure(self) -> Scale:
        """Spread of the pile's states, mean of the seeds' states, scale of their actions."""
        mixed = self.parts[0]
        every = max(1, mixed.steps // SAMPLE)
        sample = _observations(mixed, np.arange(0, mixed.steps, every))
        low, high = np.quantile(sample, [0.0005, 0.9995], axis=0)
        sample = np.clip(sample, low, high)
        spread = sample.std(axis=0)
        kept = np.flatnonzero(spread > STILL * (STILL + np.abs(sample).mean(axis=0)))
        seeds = [self._columns(int(t)) for t in self.seeds]
        states = np.concatenate([np.asarray(c.observations, np.float64) for c in seeds])
        acts = np.concatenate([np.asarray(c.actions, np.float64) for c in seeds])
        moving = acts.std(axis=0)
        used = np.flatnonzero(moving > STILL * (STILL + np.abs(acts).max(axis=0)))
        if not len(used):
            used = np.arange(acts.shape[1])
        scale = Scale(
            kept,
            states.mean(axis=0)[kept].astype(np.float32),
            spread[kept].astype(np.float32),
            used,
            acts.mean(axis=0)[used].astype(np.float32),
            np.where(moving > 0, moving, 1.0)[used].astype(np.float32),
            np.zeros(1, np.float32),
        )
        speed = scale.speed(states, np.array([len(c.observations) for c in seeds]))
        pace = np.quantile(speed, 0.95)
        scale.pace[0] = pace
        return scale

    def _affordable(self, steps: int) -> int:
        row = 4 * (len(self.scale.state_kept) + len(self.scale.action_kept))
        return int(max(16, min(steps, MEMORY // (row * self.count))))

    def _look(self, bench: Bench) -> None:
        """One pass over everything: weigh the steps, choose, and keep the chosen."""
        first = 0
        if bench.shards is not None:
            work = functools.partial(look, self.scale, self.steps)
            for found in bench.shards.map(work, "view", self.parts[0]):
                first = self._keep(first, found)

        def some(first: int) -> None:
            if bench.stopped.is_set():
                raise InterruptedRun("Stopped while looking at the data.")
            inside = first < self.mixed
            local = first if inside else first - self.mixed
            part = self.parts[0] if inside else self.parts[1]
            self._keep(first, look(self.scale, self.steps, part[local : local + CHUNK]))

        bench.map(some, [*range(first, self.mixed, CHUNK), *range(self.mixed, self.count, CHUNK)])

    def _keep(self, first: int, found: Mapping[str, NDArray[Any]]) -> int:
        """Put what was found of some trajectories in its place; where the next ones go."""
        last = first + len(found["chosen"])
        self.chosen[first:last] = found["chosen"]
        self.states[first:last] = found["states"]
        self.actions[first:last] = found["actions"]
        ends = np.cumsum(self.lengths[first:last])
        self.weights[first:last] = np.split(found["weights"], ends[:-1])
        return last


def look(scale: Scale, steps: int, trajectories: TrajectorySet) -> Mapping[str, NDArray[Any]]:
    """Choose the telling steps of some trajectories.

    Returns:
        `chosen`, `states` and `actions` of shape (trajectories, steps, ...), and the `weights`
        of all steps one after another.
    """
    count = len(trajectories)
    chosen = np.empty((count, steps), np.int64)
    states = np.empty((count, steps, len(scale.state_kept)), np.float32)
    actions = np.empty((count, steps, len(scale.action_kept)), np.float32)
    weights = np.empty(trajectories.steps, np.float32)
    offsets, first = trajectories.offsets, 0
    while first < count:
        # Numpy is slow in the small: so many trajectories at once as fit into little memory.
        last = max(first + 1, int(np.searchsorted(offsets, offsets[first] + AT_ONCE, "right")) - 1)
        some = trajectories[first:last]
        columns, lengths = some.flat(), some.lengths
        found = scale.weights(columns.observations, lengths)
        weights[offsets[first] : offsets[last]] = found
        parts = np.split(found, np.cumsum(lengths)[:-1])
        chosen[first:last] = [pick(part, steps) for part in parts]
        rows = (chosen[first:last] + (offsets[first:last] - offsets[first])[:, None]).ravel()
        states[first:last] = scale.states(columns.observations[rows]).reshape(-1, *states.shape[1:])
        actions[first:last] = scale.actions(columns.actions[rows]).reshape(-1, *actions.shape[1:])
        trajectories.release()
        first = last
    return {"chosen": chosen, "states": states, "actions": actions, "weights": weights}


def pick(weights: Floats, count: int) -> Integers:
    """Steps in proportion to their weight, evenly spaced in the sum of weights."""
    wide = weights.astype(np.float64)
    total = np.cumsum(wide + 1e-3 * wide.mean() + 1e-30)
    places = np.searchsorted(total, (np.arange(count) + 0.5) / count * total[-1])
    return np.asarray(np.minimum(places, len(wide) - 1), dtype=np.int64)


def _smooth(moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean over a window; nobody moved before the first step, so it counts as the second."""
    if len(moved) > 1:
        moved[0] = moved[1]
    else:
        moved[:] = 1.0
    ahead, behind = np.full(HALF_WINDOW + 1, moved[0]), np.full(HALF_WINDOW, moved[-1])
    ahead[0] = 0.0
    total = np.cumsum(np.concatenate([ahead, moved, behind]))
    width = 2 * HALF_WINDOW + 1
    return np.asarray((total[width:] - total[:-width]) / width)


def _observations(trajectories: TrajectorySet, positions: Integers) -> NDArray[np.float64]:
    """Observations at some positions, a few at a time so that a mapped file stays small."""
    rows = np.empty((len(positions), trajectories.observation_size))
    for start in range(0, len(positions), 2048):
        part = slice(start, start + 2048)
        rows[part] = trajectories.take_steps(positions[part]).observations
        trajectories.release()
    return rows
