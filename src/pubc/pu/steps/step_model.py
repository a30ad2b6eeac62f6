"""The chance that a step is the expert's, learned from a pile and judged over all of it.

Where the seeds are alone, as where no trajectory of the pile is clean, two sets of imitators judge.
The careful ones know no situation but the seeds', and what they take for the expert's is that; the
others have learned from new situations too, and say which of the remaining steps rather are. No
step is judged by a fit that saw its trajectory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.pu.second_opinion.looks.rows import Scale
from pubc.pu.steps.step_features import draw_features
from pubc.pu.steps.step_imitators import Look, step_evidence, total
from pubc.pu.steps.step_rounds import Lesson, chain, learn, venture
from pubc.pu.steps.step_sample import Known, Sample, take_sample
from pubc.pu.steps.step_settings import StepSettings
from pubc.pu.steps.two_state_chain import window_means
from pubc.streams import Key
from pubc.trajectory import TrajectorySet
from pubc.trajectory.arrays import give_back

__all__ = ["JudgedSteps", "StepModel", "calibrated", "learn_steps"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_CHUNK = 16_384
"""Steps that are judged at a time."""
_ODDS = 12.0
"""Largest log-odds of the chain."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgedSteps:
    """What was found of some steps in a row."""

    trajectory: int
    """Position of their trajectory."""
    first: int
    """Which step of it the first of them is."""
    confidence: NDArray[np.float32]
    """The chance that each step is the expert's."""
    columns: NDArray[np.float32]
    """Evidence of each action column, shape (steps, action columns)."""
    known: NDArray[np.float32]
    """How well each situation is known, from 0 to 1."""
    numbers: NDArray[np.float32]
    """What the calibration weighs: chain and window, shape (steps, 2)."""


@dataclass(frozen=True, slots=True, eq=False)
class StepModel:
    """Judges steps; learned by `learn_steps`."""

    looks: tuple[Look, ...]
    """Looks of all kinds of growth; those of one kind are independent, others share features."""
    scale: Scale
    """How states and actions become numbers."""
    folds: dict[int, int]
    """For trajectories that were learned from: the fold whose fit did not see them."""
    settings: StepSettings
    """How."""
    ventured: tuple[Look, ...] = ()
    """Where only seeds from elsewhere say what the expert does: looks that know new situations."""

    def judge(self, pile: TrajectorySet) -> Iterator[JudgedSteps]:
        """Every step in order, a trajectory at a time; a few thousand steps are in memory.

        Args:
            pile: The trajectories; those of the model's own pile are judged out of fold.
        """
        for some in _portions(pile.lengths):
            yield from self._judge(pile, some)
            for column in (pile.columns.observations, pile.columns.actions):
                give_back(column, _ranges(pile, some))

    def _judge(self, pile: TrajectorySet, some: list[_Stretch]) -> Iterator[JudgedSteps]:
        states, actions = _numbers(self.scale, pile, _ranges(pile, some))
        lengths = np.array([stretch.length for stretch in some])
        place = np.repeat([self._fold(stretch.trajectory) for stretch in some], lengths)
        how = self.settings
        shared = dict.fromkeys(look.features for look in self.looks)
        made = {features: features.of(states) for features in shared}
        values = [made[look.features] for look in self.looks]
        found = self._weigh(
            self.looks, values, actions, place, lengths, how.unknown, how.stay_other
        )
        confidence = calibrated(found.numbers, self._heard(found.known), how)
        if self.ventured:
            new = self._weigh(
                self.ventured, values, actions, place, lengths, how.new_unknown, how.new_stay_other
            )
            rather = calibrated(new.numbers, self._heard(new.known), how)
            confidence = np.where(confidence < 0.5, 0.5 * rather, confidence)
        for stretch, end in zip(some, np.cumsum(lengths), strict=True):
            own = slice(int(end) - stretch.length, int(end))
            yield JudgedSteps(
                stretch.trajectory,
                stretch.first,
                confidence[own],
                found.columns[own].numpy(),
                found.known[own].numpy(),
                found.numbers[own].astype(np.float32),
            )

    def _weigh(
        self,
        looks: tuple[Look, ...],
        values: list[Tensor],
        actions: Tensor,
        place: Integers,
        lengths: Integers,
        unknown: float,
        stay_other: float,
    ) -> _Weighed:
        columns = torch.empty_like(actions)
        known = torch.empty(len(actions))
        for fold in range(self.settings.folds):
            rows = torch.from_numpy(np.flatnonzero(place == fold))
            if len(rows):
                some = [each[rows] for each in values]
                columns[rows], known[rows] = _evidence(looks, some, actions[rows], fold, unknown)
        evidence = total(columns).double().numpy()
        odds = _log_odds(chain(evidence, lengths, self.settings, stay_other))
        numbers = np.stack([odds, window_means(evidence, lengths)], axis=1)
        return _Weighed(columns, known, numbers)

    def _heard(self, known: Tensor) -> Floats:
        """How much of what speaks against each step counts: less, the less its situation is known.

        Only where the seeds are alone; elsewhere being somewhere new is itself a sign of a fault.
        """
        return np.sqrt(known.numpy()) if self.ventured else np.ones(len(known))

    def _fold(self, position: int) -> int:
        return self.folds.get(position, position % self.settings.folds)


@dataclass(frozen=True, slots=True, eq=False)
class _Weighed:
    """What some looks make of steps; `JudgedSteps` says what each is."""

    columns: Tensor
    known: Tensor
    numbers: Floats


def _evidence(
    looks: tuple[Look, ...], values: list[Tensor], actions: Tensor, fold: int, unknown: float
) -> tuple[Tensor, Tensor]:
    columns, known = [], []
    for look, features in zip(looks, values, strict=True):
        made = step_evidence(look, features, actions, fold, unknown)
        columns.append(made[0])
        known.append(made[1])
    return torch.stack(columns).mean(0), torch.stack(known).mean(0)


def calibrated(numbers: Floats, heard: Floats, settings: StepSettings) -> NDArray[np.float32]:
    """The chance that each step is the expert's, as the calibration has it.

    Args:
        numbers: Chain and window, shape (steps, 2).
        heard: How much of what speaks against each step counts, from 0 to 1.
        settings: The calibration.
    """
    odds = settings.intercept + numbers @ np.array((settings.by_chain, settings.by_window))
    odds = np.where(odds < 0, heard * odds, odds)
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -30, 30))), dtype=np.float32)


def learn_steps(
    pile: TrajectorySet, known: Known, key: Key, settings: StepSettings | None = None
) -> StepModel:
    """Learn to judge the steps of a pile.

    Args:
        pile: Observations and actions.
        known: Seeds, what the filter keeps, and what is known to be bad.
        key: Names all randomness.
        settings: How.
    """
    settings = settings or StepSettings()
    key = key.at("steps")
    kept = pile.lengths[known.kept].sum() / max(1, pile.steps)
    # Seeds that are trajectories of the pile show that some of it is clean.
    alone = bool(kept < settings.alone and not known.seeds.any())
    if alone:
        settings = settings.lone()
    sample = take_sample(pile, known, settings, key.at("sample").rng())
    folds = _fold_of(sample, settings.folds, key.at("folds").rng())
    by_row = np.repeat(folds, sample.lengths)
    rows = [torch.from_numpy(np.flatnonzero(by_row == fold)) for fold in range(settings.folds)]
    features = [
        draw_features(
            sample.states,
            sample.actions,
            sample.weights + settings.growth,
            settings,
            key.at("look", number).rng(),
        )
        for number in range(settings.looks)
    ]
    values = [each.of(sample.states) for each in features]
    lesson = Lesson(sample, rows, features, values, settings, key)
    ventured: tuple[Look, ...] = ()
    if alone:
        first, looks = learn(lesson, (0.0,))
        ventured = venture(lesson, first, looks) if settings.ventures else ()
    else:
        _, looks = learn(lesson, (settings.growth, settings.careful))
    places = zip(sample.positions.tolist(), folds.tolist(), strict=True)
    by_place = {place: fold for place, fold in places if place >= 0}
    return StepModel(looks, sample.scale, by_place, settings, ventured)


def _log_odds(chance: Floats) -> Floats:
    sure = 1 / (1 + np.exp(-_ODDS))
    safe = np.clip(chance, 1 - sure, sure)
    return np.asarray(np.log(safe / (1 - safe)))


def _fold_of(sample: Sample, folds: int, rng: np.random.Generator) -> Integers:
    """A fold for each stretch, such that seeds and others are spread over all folds."""
    starts = np.cumsum(sample.lengths) - sample.lengths
    weight = np.add.reduceat(sample.weights.numpy(), starts) / sample.lengths
    order = np.lexsort((rng.random(len(starts)), -weight))
    fold = np.empty(len(starts), dtype=np.int64)
    fold[order] = np.arange(len(starts)) % folds
    return fold


@dataclass(frozen=True, slots=True)
class _Stretch:
    """Steps of one trajectory in a row: all of it, unless it is very long."""

    trajectory: int
    first: int
    length: int


def _portions(lengths: Integers) -> Iterator[list[_Stretch]]:
    """Every step in order, about `_CHUNK` of them at a time."""
    some: list[_Stretch] = []
    steps = 0
    for trajectory, length in enumerate(lengths.tolist()):
        for first in range(0, length, _CHUNK):
            some.append(_Stretch(trajectory, first, min(_CHUNK, length - first)))
            steps += some[-1].length
            if steps >= _CHUNK:
                yield some
                some, steps = [], 0
    if some:
        yield some


def _ranges(pile: TrajectorySet, some: list[_Stretch]) -> Integers:
    """The rows of some stretches."""
    parts = [
        np.arange(stretch.length) + int(pile.starts[stretch.trajectory]) + stretch.first
        for stretch in some
    ]
    return np.concatenate(parts).astype(np.int64)


def _numbers(scale: Scale, pile: TrajectorySet, rows: Integers) -> tuple[Tensor, Tensor]:
    columns = pile.columns
    observations = np.asarray(columns.observations[rows], dtype=np.float32)
    actions = np.asarray(columns.actions[rows], dtype=np.float32)
    observations = observations.reshape(len(observations), -1)
    return scale.state(observations), scale.action(observations, actions.reshape(len(actions), -1))
