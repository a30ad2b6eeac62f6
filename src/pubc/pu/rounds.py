"""What a recipe is given and what it yields: a pile of trajectories, and rounds over it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pubc.pu.judge import Bench, Cut, Standing, Task, Verdict, mean_confidence
from pubc.pu.pile_statistics import Survey, survey
from pubc.select import locate
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

__all__ = ["Pile", "Round"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Pile:
    """What every round of a run has in common."""

    mixed: TrajectorySet
    """The unlabelled trajectories."""
    seed_positives: TrajectorySet
    """A few trajectories of the target expert."""
    known: Mask
    """Which mixed trajectories are seeds."""
    facts: Survey
    """A survey of the mixed set."""
    bench: Bench
    """Where to work."""
    done: Sequence[Round] = ()
    """Rounds of an interrupted run, taken as they are."""
    known_bad: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    """Which mixed trajectories are known not to be the expert's, shape (trajectories,); none
    where nobody said so."""

    def __post_init__(self) -> None:
        if not self.known_bad.size:
            nobody = np.zeros(len(self.mixed), dtype=np.bool_)
            object.__setattr__(self, "known_bad", nobody)

    @classmethod
    def of(
        cls,
        mixed: TrajectorySet,
        seed_positives: TrajectorySet,
        *,
        facts: Survey | None = None,
        bench: Bench | None = None,
        done: Sequence[Round] = (),
    ) -> Pile:
        """Look at a mixed set and its seeds."""
        places = locate(mixed, seed_positives)
        known = np.zeros(len(mixed), dtype=np.bool_)
        known[places[places >= 0]] = True
        facts = facts or survey(mixed)
        return cls(mixed, seed_positives, known, facts, bench or Bench(), done)

    def task(
        self, number: int, positives: TrajectorySet, standing: Standing | None, key: Key
    ) -> Task:
        """One round of work."""
        return Task(
            number=number,
            mixed=self.mixed,
            positives=positives,
            seed_positives=self.seed_positives,
            standing=standing,
            facts=self.facts,
            key=key.at("round", number),
            bench=self.bench,
        )


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """What one round decided, and why."""

    number: int
    """1 for the first round."""
    verdict: Verdict
    """What the judge thought of every trajectory."""
    cut: Cut
    """The threshold with its evidence."""
    votes: Integers
    """Members at or above the threshold, shape (trajectories,)."""
    selected: Mask
    """Trajectories that count as the expert's after this round, shape (trajectories,)."""
    changed: float
    """Share of all trajectories whose membership differs from the round before; 1 where that
    one was a mere guess."""
    status: str | None = None
    """Why the rounds end here; None while they go on."""
    attempt: int = 1
    """Which start these rounds go on from; 0 for the round that looks for one."""

    @property
    def threshold(self) -> float | None:
        """Where the confidences were cut; None where no cut was found."""
        return self.cut.threshold

    @property
    def kept(self) -> int:
        """How many trajectories count as the expert's after this round."""
        return int(self.selected.sum())

    @property
    def confidence(self) -> Floats:
        """Mean confidence in each trajectory, shape (trajectories,)."""
        return mean_confidence(self.verdict.confidence)
