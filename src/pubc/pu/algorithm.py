"""Algorithm 1: judge, cut, vote, repeat. A generator of rounds that the caller owns.

The loop knows no networks. It takes a judge and a threshold, so that the paper's method, its
baselines and its ablations are arguments. What would be a crash or an endless loop in a
straightforward version ends here with a status in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.pu.judge import Bench, Judge, Standing, Task, Verdict, mean_confidence
from pubc.pu.paper.threshold import Cut, Threshold
from pubc.pu.pile_statistics import Survey, survey
from pubc.select import locate
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

__all__ = [
    "STATUSES",
    "Loop",
    "Pile",
    "Round",
    "filter_rounds",
    "majority",
    "outcome",
    "seed_rank",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

STATUSES: dict[str, str] = {
    "converged": "two rounds in a row agree on which trajectories are the expert's",
    "weak_valley": "the rounds agree, but the valley between expert and rest is shallow",
    "no_valley": "no threshold separates the expert from the rest: it cannot be told",
    "collapsed_empty": "a round selected nothing; the selection before it is kept",
    "collapsed_all": "a round selected everything; the selection before it is kept",
    "collapsed_seeds": "the rounds found nothing but the seeds themselves",
    "cycle": "the selection repeats itself with a period of several rounds",
    "max_rounds": "the selection still changed when the last allowed round ended",
    "seed_incoherent": "the seeds do not look like trajectories of one policy",
    "rejected": "a round ranked the held-out seeds worse; the one before it counts",
}
"""Every way to end, in words; a cycle is reported as `cycle(PERIOD)`."""


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
    def confidence(self) -> Floats:
        """Mean confidence in each trajectory, shape (trajectories,)."""
        return mean_confidence(self.verdict.confidence)


@dataclass(frozen=True, slots=True)
class Loop:
    """When the rounds end."""

    tolerance: float = 0.02
    """Stop once at most this share of all trajectories changed membership."""
    max_rounds: int = 10
    """Stop here even if membership still moves."""
    settled: float = 0.02
    """A sound round that ends at `max_rounds` still counts as converged up to this change."""
    doubtful_rounds: int = 2
    """While no cut is sound, rounds end only from this one on, and only if nothing changes."""
    rank_loss: float | None = None
    """Reject a round in which held-out seeds rank this much worse than they did."""

    def __post_init__(self) -> None:
        if self.max_rounds < 1:
            raise UsageError(f"At least one round is needed. Got {self.max_rounds}.")


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


def filter_rounds(
    pile: Pile,
    *,
    judge: Judge,
    threshold: Threshold,
    key: Key,
    loop: Loop | None = None,
    standing: Standing | None = None,
    first: int = 1,
) -> Iterator[Round]:
    """Yield rounds until membership settles or the loop must end.

    The caller owns the loop: print a line, save a checkpoint, or stop early, all with a
    plain `for`. The last round holds the result and the status.

    Args:
        pile: Mixed trajectories and seeds.
        judge: Trains on the positives and rates the mixed trajectories.
        threshold: Maps what the judge thinks to a cut.
        key: Names all randomness.
        loop: When to end.
        standing: A split to start from; the seeds alone if omitted.
        first: Number of the first round.
    """
    loop = loop or Loop()
    before = pile.known if standing is None else standing.selected
    positives = pile.seed_positives if standing is None else pile.mixed[standing.selected]
    seen: dict[bytes, int] = {}
    best_rank = -1.0
    # Agreeing with a sound start counts; agreeing with the seeds themselves does not.
    sound_start = standing is not None and standing.cut.status is None
    for number in range(first, first + loop.max_rounds):
        if number <= len(pile.done):
            current = pile.done[number - 1]
        else:
            task = pile.task(number, positives, standing, key)
            current = _decide(task, judge(task), threshold, before)
            turn = number - first + 1
            course = _Course(turn, turn > 1 or sound_start, best_rank, seen)
            current = _end(current, course, pile.known, loop)
        yield current
        if current.status is not None:
            return
        best_rank = max(best_rank, seed_rank(current.verdict))
        seen[current.selected.tobytes()] = number
        positives, before = pile.mixed[current.selected], current.selected
        standing = Standing(current.verdict, current.cut, current.selected, current.changed)


def seed_rank(verdict: Verdict) -> float:
    """Mean share of the mixed trajectories that a seed ranks above."""
    others = np.sort(mean_confidence(verdict.confidence))
    seeds = mean_confidence(verdict.seed_confidence)
    return float(np.mean(np.searchsorted(others, seeds, side="left") / len(others)))


def majority(confidence: Floats, threshold: float) -> tuple[Integers, Mask]:
    """Equation 2: the votes, and whether strictly more than half of those who vote agree.

    A NaN is a member that abstains. A trajectory on which all abstain is not selected.
    """
    present = ~np.isnan(confidence)
    with np.errstate(invalid="ignore"):
        votes = np.count_nonzero(confidence >= threshold, axis=0)
    return votes.astype(np.int64), 2 * votes > present.sum(axis=0)


def _decide(task: Task, verdict: Verdict, threshold: Threshold, before: Mask) -> Round:
    """Cut, vote, and fall back on the selection before where a round says nothing."""
    cut = threshold(verdict)
    if cut.threshold is None:
        nobody = np.zeros(len(task.mixed), dtype=np.int64)
        return Round(task.number, verdict, cut, nobody, before, 0.0, cut.status or "no_valley")
    votes, selected = majority(verdict.confidence, cut.threshold)
    status = None
    if not selected.any():
        status = "collapsed_empty"
    elif selected.all():
        status = "collapsed_all"
    if status is not None:
        return Round(task.number, verdict, cut, votes, before, 0.0, status)
    guessed = task.standing is not None and task.standing.cut.status == "guess"
    changed = 1.0 if guessed else float(np.mean(selected != before))
    return Round(task.number, verdict, cut, votes, selected, changed)


@dataclass(frozen=True, slots=True)
class _Course:
    """How the rounds went so far."""

    turn: int
    comparable: bool
    best_rank: float
    seen: dict[bytes, int]


def _end(current: Round, course: _Course, known: Mask, loop: Loop) -> Round:
    """The round with the status that ends the loop, if it ends here."""
    if current.status is not None:
        return current
    lowest = -np.inf if loop.rank_loss is None else course.best_rank - loop.rank_loss
    if seed_rank(current.verdict) < lowest:
        return replace(current, status="rejected")
    doubt = current.cut.status
    if doubt is None:
        ended = course.comparable and current.changed <= loop.tolerance
    else:
        ended = course.turn >= loop.doubtful_rounds and current.changed == 0
    earlier = None if ended else course.seen.get(current.selected.tobytes())
    if earlier is not None and doubt is None:
        return replace(current, status=f"cycle({current.number - earlier})")
    if not ended and course.turn < loop.max_rounds:
        return current
    return replace(current, status=outcome(current, known, loop))


def outcome(last: Round, known: Mask, loop: Loop) -> str:
    """What it means for rounds to end with this one."""
    if not (last.selected & ~known).any():
        return "collapsed_seeds"
    if last.cut.status is not None:
        return last.cut.status
    return "converged" if last.changed <= loop.settled else "max_rounds"
