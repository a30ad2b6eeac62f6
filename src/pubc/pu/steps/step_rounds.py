"""Rounds: imitators of the expert and of everybody else learn from what each explains better.

They begin with the steps of the positives. Evidence, smoothed over time, says which steps look
wrong; those lose their weight and teach the imitators of everybody else. Where trajectories of the
pile are known to be the expert's, steps elsewhere that look right gain some weight: much for
the bold half of the imitators, little for the careful half.

Where the seeds are alone, nobody else teaches what the expert does: its imitator would come to
swallow the others. So the expert's own steps in situations that no seed shows, such as those
after a lapse, look like somebody else's. In situations near the seeds' the same rounds are
almost always right, and `venture` goes on from there: both imitators learn from the near steps
alone, then step by step from the new ones, while what was found near by stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.pu.steps.step_features import Features
from pubc.pu.steps.step_imitators import Look, distance, fit_imitator, step_evidence, total
from pubc.pu.steps.step_sample import Sample
from pubc.pu.steps.step_settings import StepSettings
from pubc.pu.steps.two_state_chain import smooth
from pubc.streams import Key

__all__ = ["Lesson", "chain", "learn", "venture"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_TINY = 1e-6


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What rounds learn from, and with."""

    sample: Sample
    """The steps."""
    folds: list[Tensor]
    """The steps of each fold."""
    features: list[Features]
    """Those of each look."""
    values: list[Tensor]
    """Features of every step, for each look."""
    settings: StepSettings
    """How."""
    key: Key
    """Names all randomness."""

    def fit(self, number: int, expert: Tensor, other: Tensor | None) -> tuple[Look, ...]:
        """Both imitators of every look; a round without `other` knows of nobody else.

        Args:
            number: Of the round.
            expert: How much each step counts as the expert's.
            other: How much each step counts as somebody else's.
        """
        actions, folds, settings = self.sample.actions, self.folds, self.settings
        looks = []
        for place, (features, values) in enumerate(zip(self.features, self.values, strict=True)):
            rng = self.key.at("round", number, place).rng()
            own = fit_imitator(values, actions, expert, folds, settings.ridge, rng)
            rest = None
            if other is not None:
                rest = fit_imitator(values, actions, other, folds, settings.other_ridge, rng)
            looks.append(Look(features, own, rest))
        return tuple(looks)

    def chance(self, looks: tuple[Look, ...], unknown: float, stay_other: float) -> Tensor:
        """The chance that each step is the expert's, each judged by a fit without it."""
        evidence = torch.zeros(len(self.sample.states))
        for look, values in zip(looks, self.values, strict=True):
            for fold, rows in enumerate(self.folds):
                columns, _ = step_evidence(
                    look, values[rows], self.sample.actions[rows], fold, unknown
                )
                evidence[rows] += total(columns) / len(looks)
        lengths = self.sample.lengths
        chance = chain(evidence.double().numpy(), lengths, self.settings, stay_other)
        told = torch.from_numpy(chance).float()
        told[self.sample.barred] = 0.0
        return told

    def apart(self, looks: tuple[Look, ...]) -> Tensor:
        """How far each situation is from those that the expert's imitators know."""
        found = torch.zeros(len(self.sample.states))
        for look, values in zip(looks, self.values, strict=True):
            for fold, rows in enumerate(self.folds):
                found[rows] += distance(look.expert, values[rows], fold) / len(looks)
        return found


def chain(evidence: Floats, lengths: Integers, settings: StepSettings, stay_other: float) -> Floats:
    """Evidence of single steps as the chance that each is the expert's, smoothed over time."""
    return smooth(
        evidence * settings.temper,
        lengths,
        stay_expert=settings.stay_expert,
        stay_other=stay_other,
        prior=settings.prior,
    )


def learn(lesson: Lesson, growths: Sequence[float]) -> tuple[tuple[Look, ...], tuple[Look, ...]]:
    """The imitators that the rounds begin with, of the positives alone, and those at their end.

    Args:
        lesson: What to learn from.
        growths: Most weight of a step of a trajectory that nothing is known of; for each there
            are rounds of their own, which begin with the same imitators.
    """
    sample, settings = lesson.sample, lesson.settings
    known = sample.weights > 0
    first = lesson.fit(0, sample.weights + _TINY, None)
    begin = lesson.chance(first, settings.unknown, settings.stay_other)
    ends: list[Look] = []
    for growth in growths:
        looks, chance = first, begin
        for number in range(1, settings.rounds + 1):
            if number > 1:
                chance = lesson.chance(looks, settings.unknown, settings.stay_other)
            # What nothing is known of grows slowly: only steps that are almost sure count.
            weights = torch.where(known, sample.weights * chance, growth * chance**4)
            looks = lesson.fit(number, weights + _TINY, 1 - chance + _TINY)
        ends += looks
    return first, tuple(ends)


def venture(lesson: Lesson, first: tuple[Look, ...], looks: tuple[Look, ...]) -> tuple[Look, ...]:
    """Imitators that have learned from situations that no seed shows, too.

    Args:
        lesson: What to learn from.
        first: What `learn` began with: the imitators of the seeds.
        looks: What it ended with.
    """
    sample, settings = lesson.sample, lesson.settings
    known = sample.weights > 0
    near = ~known & (lesson.apart(first) < settings.near)
    chance = lesson.chance(looks, settings.unknown, settings.stay_other)
    found, learned_from = chance, near
    for number in range(settings.ventures + 1):
        chance = torch.where(near, found, chance)
        # As in the rounds before, what is not a seed's counts if it is almost sure; of the new
        # steps nothing is, so both sides learn from those that are rather theirs.
        own = torch.where(learned_from, chance ** torch.where(near, 4.0, 2.0), 0.0)
        rest = torch.where(learned_from, (1 - chance) ** torch.where(near, 1.0, 2.0), 0.0)
        looks = lesson.fit(
            settings.rounds + 1 + number,
            torch.where(known, sample.weights, own) + _TINY,
            rest + _TINY,
        )
        chance = lesson.chance(looks, settings.new_unknown, settings.new_stay_other)
        learned_from = ~known
    return looks
