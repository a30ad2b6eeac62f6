"""Lapses: stretches of a trajectory in which somebody else acts than the policy it is named after.

Real demonstrations are rarely good or bad as a whole. A lapse lets another policy, noise, or the
last action over and over act for a while, then the policy takes over again from wherever that
led. Which steps were its own is recorded as `expert_steps`, so that a filter of steps can be
measured on data of which no trajectory is clean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pubc.acting.rollout import Actor, Policy
from pubc.errors import UsageError
from pubc.trajectory import Array

__all__ = ["EXPERT_STEPS", "NOISE_LAPSE", "REPEAT_LAPSE", "Lapse", "LapsingPolicy", "parse_lapse"]

EXPERT_STEPS = "expert_steps"
"""The column that says which steps are the expert's own."""
NOISE_LAPSE = "noise"
"""Actions drawn evenly from the environment's range."""
REPEAT_LAPSE = "repeat"
"""The last action, over and over."""
_SHORTEST_GAP = 5
"""Steps that a policy acts at least before it lapses again."""


@dataclass(frozen=True, slots=True)
class Lapse:
    """One kind of lapse."""

    policy: str
    """Who acts instead: a zoo name, a policy file, `noise` or `repeat`."""
    share: float
    """Share of the steps that it takes, above 0 and below 1."""
    length: int
    """Steps of a lapse on average; between half and one and a half of it."""


def parse_lapse(word: str) -> Lapse:
    """A lapse as the command line names it, POLICY:SHARE:LENGTH.

    Raises:
        UsageError: It is not of that form, or the numbers make no sense.
    """
    policy, *numbers = word.rsplit(":", 2)
    try:
        share, length = float(numbers[0]), int(numbers[1])
    except (IndexError, ValueError):
        share, length = 0.0, 0
    if not policy or not 0 < share < 1 or length < 1:
        raise UsageError(
            "--lapse takes POLICY:SHARE:LENGTH, a share between 0 and 1 and a length in steps, for "
            f"example hopper/medium:0.3:25, noise:0.2:15 or repeat:0.1:10. Got {word!r}."
        )
    return Lapse(policy, share, length)


@dataclass(frozen=True, slots=True)
class LapsingPolicy:
    """A policy that somebody else stands in for now and then."""

    policy: Policy
    """Who acts."""
    lapses: Sequence[Lapse]
    """The kinds of lapses; their shares together lie below 1."""
    others: Sequence[Policy | None]
    """Who acts in each kind; None for noise and repetition."""
    low: Array
    """Smallest action, for noise."""
    high: Array
    """Largest action, for noise."""

    def begin(self, rng: np.random.Generator) -> Actor:
        """A fresh actor, whose `expert_steps` says after each step who acted."""
        return _LapsingActor(self, rng)


class _LapsingActor:
    def __init__(self, owner: LapsingPolicy, rng: np.random.Generator) -> None:
        self.expert_steps: list[bool] = []
        self._rng, self._low, self._high = rng, owner.low, owner.high
        self._lapses = owner.lapses
        self._own = owner.policy.begin(rng)
        self._others = [None if other is None else other.begin(rng) for other in owner.others]
        shares = np.array([lapse.share for lapse in self._lapses])
        lengths = np.array([lapse.length for lapse in self._lapses], dtype=float)
        often = shares / lengths
        self._odds = often / often.sum()
        # So many steps of its own between two lapses give every kind its share.
        self._gap = (1 - shares.sum()) / often.sum()
        self._kind: int | None = None
        self._left = self._stretch()
        self._last: Array | None = None

    def __call__(self, observation: Array, reward: float) -> Array:
        if self._left == 0:
            lapsed = self._kind is not None
            self._kind = None if lapsed else int(self._rng.choice(len(self._odds), p=self._odds))
            self._left = self._stretch()
        self._left -= 1
        self.expert_steps.append(self._kind is None)
        self._last = self._act(observation, reward)
        return self._last

    def _stretch(self) -> int:
        if self._kind is None:
            beyond = max(1.0, self._gap - _SHORTEST_GAP)
            return _SHORTEST_GAP + int(self._rng.geometric(1 / beyond))
        length = self._lapses[self._kind].length
        return max(1, round(length * self._rng.uniform(0.5, 1.5)))

    def _act(self, observation: Array, reward: float) -> Array:
        if self._kind is None:
            return self._own(observation, reward)
        other = self._others[self._kind]
        if other is not None:
            return other(observation, reward)
        if self._lapses[self._kind].policy == REPEAT_LAPSE and self._last is not None:
            return self._last
        return np.asarray(self._rng.uniform(self._low, self._high), dtype=np.float32)
