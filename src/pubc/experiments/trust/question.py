"""A question of the suite: a pile, its seeds, and the answer that is known by construction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.trajectory import TrajectorySet

__all__ = ["Build", "Draft", "Flags", "Question", "QuestionSpec"]

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """One run of the suite."""

    family: str
    """What kind of situation it is."""
    name: str
    """Which one of that kind."""
    mixed: TrajectorySet
    """The pile."""
    seeds: tuple[int, ...]
    """Positions that the user calls the expert's; one may stand there twice."""
    truth: Flags
    """The expert's trajectories, shape (trajectories,); all of them for one policy only."""
    answerable: bool
    """Whether the expert differs from the rest in how it acts, and the seeds show how."""
    bad: tuple[int, ...] = ()
    """Positions that the user knows to be bad."""
    wrong_seeds: tuple[int, ...] = ()
    """Seeds that are not the expert's."""
    expert_steps: Flags | None = None
    """Which steps are the expert's own, shape (steps,), where that is known."""

    def __post_init__(self) -> None:
        count = len(self.mixed)
        if self.truth.shape != (count,):
            raise DataError(
                f"{self.family}, {self.name}: {count} trajectories, truth {self.truth.shape}.",
                code="bad_shape",
                field="truth",
            )
        if self.expert_steps is not None and self.expert_steps.shape != (self.mixed.steps,):
            raise DataError(
                f"{self.family}, {self.name}: {self.mixed.steps} steps, "
                f"expert_steps {self.expert_steps.shape}.",
                code="bad_shape",
                field="expert_steps",
            )
        wrong = tuple(seed for seed in self.seeds if not self.truth[seed])
        if set(wrong) != set(self.wrong_seeds) or any(self.truth[list(self.bad)]):
            raise DataError(
                f"{self.family}, {self.name}: seeds or known-bad ones contradict the truth.",
                code="bad_seeds",
                field="seeds",
            )


Build = Callable[[str, str], Question]
"""Makes a question from its family and name, always the same one."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A kind of question, to be drawn several times with other trajectories and seeds."""

    family: str
    """What kind of situation it is."""
    name: str
    """Which one of that kind."""
    build: Build
    """Makes the question; plain data, so that it travels to other processes."""
    once: bool = False
    """Whether one draw is enough."""


@dataclass(frozen=True, slots=True)
class QuestionSpec:
    """A question before it is made; it travels to other processes."""

    family: str
    """What kind of situation it is."""
    name: str
    """Which one of that kind, with its draw."""
    build: Build
    """Makes it."""

    def make(self) -> Question:
        """The question, made anew; the same bytes every time."""
        return self.build(self.family, self.name)
