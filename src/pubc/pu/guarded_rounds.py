"""Algorithm 1 with a rail around it.

Rounds of an interrupted run are not done again, and rounds that would crash, repeat themselves
or never settle end with a status in words. `filter_rounds` decides; nothing here changes what a
round selects, except that one which selects nothing, or everything, leaves the selection before
it in place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.pu.algorithm import filter_rounds
from pubc.pu.judge import Judge, Standing, Task, Threshold, Verdict
from pubc.pu.rounds import Pile, Round
from pubc.streams import Key

__all__ = ["Loop", "PatientLoop", "guarded_rounds"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Loop:
    """When the rounds end."""

    tolerance: float = 0.02
    """Stop once at most this share of all trajectories changed membership."""
    max_rounds: int = 10
    """Stop here even if membership still moves."""
    settled: ClassVar[float] = 0.02
    """A sound round that ends at `max_rounds` still counts as converged up to this change."""
    doubtful_rounds: ClassVar[int] = 2
    """While no cut is sound, rounds end only from this one on, and only if nothing changes."""

    def __post_init__(self) -> None:
        if self.max_rounds < 1:
            raise UsageError(f"At least one round is needed. Got {self.max_rounds}.")


@dataclass(frozen=True, slots=True)
class PatientLoop(Loop):
    """The same for rounds whose confidences are averages, which settle slowly."""

    tolerance: float = 0.01
    max_rounds: int = 6
    settled: ClassVar[float] = 0.05
    doubtful_rounds: ClassVar[int] = 4


def guarded_rounds(
    pile: Pile,
    *,
    judge: Judge,
    threshold: Threshold,
    key: Key,
    loop: Loop | None = None,
    start: Standing | None = None,
    first: int = 1,
) -> Iterator[Round]:
    """Yield the rounds of `filter_rounds` until one has a status; that one is the last.

    Args:
        pile: Mixed trajectories and seeds; `pile.done` holds the rounds of an interrupted run.
        judge: Trains on the positives and rates the mixed trajectories.
        threshold: Maps what the judge thinks to a cut.
        key: Names all randomness.
        loop: When to end.
        start: A split to start from; the seeds alone if omitted.
        first: Number of the first round.
    """
    loop = loop or Loop()
    guessed = start is not None and start.cut.status == "guess"
    # Agreeing with a sound start counts; agreeing with the seeds themselves does not.
    course = _Course(comparable=start is not None and start.cut.status is None)
    before = pile.known if start is None else start.selected
    rounds = filter_rounds(
        pile,
        judge=_Recalling(judge, pile.done, first if guessed else None),
        threshold=threshold,
        key=key,
        start=start,
        first=first,
        tolerance=loop.tolerance,
    )
    for turn, bare in enumerate(rounds, 1):
        current = replace(bare, changed=1.0) if guessed and turn == 1 else bare
        current = _end(_kept_from_collapse(current, before), turn, course, pile.known, loop)
        yield current
        if current.status is not None:
            return
        course.after(current)
        before = current.selected


@dataclass(frozen=True, slots=True, eq=False)
class _Recalling:
    """A judge that answers from memory where an interrupted run has asked it before."""

    judge: Judge
    done: Sequence[Round]
    guess: int | None
    """The round that started from a mere guess, after which everything counts as changed."""

    def __call__(self, task: Task) -> Verdict:
        if task.number <= len(self.done):
            return self.done[task.number - 1].verdict
        if self.guess == task.number - 1 and task.standing is not None:
            task = replace(task, standing=replace(task.standing, changed=1.0))
        return self.judge(task)


@dataclass(slots=True, eq=False)
class _Course:
    """How the rounds went so far."""

    comparable: bool
    """Whether there is something before the next round that it can agree with."""
    seen: dict[bytes, int] = field(default_factory=dict)

    def after(self, current: Round) -> None:
        self.comparable = True
        self.seen[current.selected.tobytes()] = current.number


def _kept_from_collapse(current: Round, before: Mask) -> Round:
    """The round with the selection before it where it says nothing, and with the reason."""
    if current.cut.threshold is None:
        status = current.cut.status or "no_valley"
    elif not current.selected.any():
        status = "collapsed_empty"
    elif current.selected.all():
        status = "collapsed_all"
    else:
        return current
    return replace(current, selected=before, changed=0.0, status=status)


def _end(current: Round, turn: int, course: _Course, known: Mask, loop: Loop) -> Round:
    """The round with the status that ends the loop, if it ends here."""
    if current.status is not None:
        return current
    doubt = current.cut.status
    if doubt is None:
        ended = course.comparable and current.changed <= loop.tolerance
    else:
        ended = turn >= loop.doubtful_rounds and current.changed == 0
    earlier = None if ended else course.seen.get(current.selected.tobytes())
    if earlier is not None and doubt is None:
        return replace(current, status=f"cycle({current.number - earlier})")
    if not ended and turn < loop.max_rounds:
        return current
    return replace(current, status=_outcome(current, known, loop))


def _outcome(last: Round, known: Mask, loop: Loop) -> str:
    """What it means for rounds to end with this one."""
    if not (last.selected & ~known).any():
        return "collapsed_seeds"
    if last.cut.status is not None:
        return last.cut.status
    return "converged" if last.changed <= loop.settled else "max_rounds"
