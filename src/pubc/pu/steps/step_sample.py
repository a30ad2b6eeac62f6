"""The steps that are learned from: stretches of some trajectories, with what is known of each.

A pile of any size costs the same to learn from. Every trajectory lends one stretch of steps in
a row, because evidence is smoothed over time; seeds lend all of theirs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.pu.second_opinion.looks.rows import Scale
from pubc.pu.steps.step_settings import StepSettings
from pubc.trajectory import TrajectorySet

__all__ = ["Known", "Sample", "take_sample"]

Mask = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """What is known of a pile before its steps are judged."""

    seeds: Mask
    """Which trajectories are seeds, shape (trajectories,)."""
    kept: Mask
    """Which trajectories the filter keeps."""
    bad: Mask
    """Which trajectories are known not to be the expert's."""
    elsewhere: TrajectorySet | None = None
    """Seeds that are no part of the pile."""
    seed_steps: Mask | None = None
    """Which steps are seeds, where that was said of steps, shape (steps,)."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """Stretches of trajectories, one after another."""

    states: Tensor
    """Shape (rows, state dimensions)."""
    actions: Tensor
    """Shape (rows, action columns)."""
    lengths: Integers
    """Rows of each stretch."""
    positions: Integers
    """Which trajectory of the pile each is; -1 for seeds from elsewhere."""
    weights: Tensor
    """How much each row counts as the expert's beforehand; 0 where nothing is known."""
    barred: Tensor
    """Rows that never count as the expert's."""
    scale: Scale
    """How the numbers were made."""


def take_sample(
    pile: TrajectorySet, known: Known, settings: StepSettings, rng: np.random.Generator
) -> Sample:
    """Choose trajectories and stretches of them."""
    chosen = _choose(known, settings.trajectories, rng)
    seeds = known.seeds[chosen]
    if known.seed_steps is not None:
        seeds = np.logical_or.reduceat(known.seed_steps, pile.offsets[:-1])[chosen]
    given = int(pile.lengths[chosen][seeds].sum())
    each = max(64, (settings.rows - min(given, settings.rows // 2)) // max(1, len(chosen)))
    most = np.where(seeds, max(each, settings.rows // (2 * max(1, int(seeds.sum())))), each)
    lengths = np.minimum(pile.lengths[chosen], most)
    room = pile.lengths[chosen] - lengths
    firsts = (rng.random(len(chosen)) * (room + 1)).astype(np.int64)
    rows = _ranges(pile.starts[chosen] + firsts, lengths)
    observations = _flat(pile.columns.observations[rows])
    actions = _flat(pile.columns.actions[rows])
    pile.release()
    weights, barred = _weights(pile, known, chosen, firsts, lengths, settings)
    positions = chosen
    if known.elsewhere is not None and len(known.elsewhere):
        own = known.elsewhere.flat()
        observations = np.concatenate([observations, _flat(own.observations)])
        actions = np.concatenate([actions, _flat(own.actions)])
        lengths = np.concatenate([lengths, known.elsewhere.lengths])
        positions = np.concatenate([positions, np.full(len(known.elsewhere), -1)])
        extra = np.full(known.elsewhere.steps, settings.seed_weight)
        weights = np.concatenate([weights, extra])
        barred = np.concatenate([barred, np.zeros(len(extra), dtype=np.bool_)])
    scale = Scale.of(observations, actions)
    return Sample(
        scale.state(observations),
        scale.action(observations, actions),
        lengths.astype(np.int64),
        positions.astype(np.int64),
        torch.from_numpy(weights.astype(np.float32)),
        torch.from_numpy(barred),
        scale,
    )


def _choose(known: Known, most: int, rng: np.random.Generator) -> Integers:
    """Seeds first, then kept and others by halves, in the order of the pile."""
    first = np.flatnonzero(known.seeds)[: max(1, most // 2)]
    kept = rng.permutation(np.flatnonzero(known.kept & ~known.seeds))
    rest = rng.permutation(np.flatnonzero(~known.kept & ~known.seeds))
    room = most - len(first)
    half = min(len(kept), max(room // 2, room - len(rest)))
    return np.sort(np.concatenate([first, kept[:half], rest[: room - half]])).astype(np.int64)


def _weights(
    pile: TrajectorySet,
    known: Known,
    chosen: Integers,
    firsts: Integers,
    lengths: Integers,
    settings: StepSettings,
) -> tuple[NDArray[np.float64], Mask]:
    trajectory = np.where(known.seeds, settings.seed_weight, known.kept * 1.0)
    if known.seed_steps is not None:
        # What was said of steps is more than what follows for their trajectories.
        trajectory = known.kept * 1.0
    weights = np.repeat(np.where(known.bad, 0.0, trajectory)[chosen], lengths)
    if known.seed_steps is not None:
        marked = known.seed_steps[_ranges(pile.offsets[:-1][chosen] + firsts, lengths)]
        weights = np.where(marked, settings.seed_weight, weights)
    return weights, np.repeat(known.bad[chosen], lengths)


def _ranges(firsts: Integers, lengths: Integers) -> Integers:
    ends = np.cumsum(lengths)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(
        firsts - ends + lengths, lengths
    )


def _flat(values: NDArray[np.generic]) -> NDArray[np.float32]:
    return np.asarray(values, dtype=np.float32).reshape(len(values), -1)
