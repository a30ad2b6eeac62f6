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

from pubc.pu.judge import Bench, Judge, Standing, Task, Verdict
from pubc.pu.streams import Key
from pubc.pu.survey import Survey, survey
from pubc.pu.threshold import Cut, Threshold
from pubc.select import locate
from pubc.trajectory import TrajectorySet

__all__ = ["STATUSES", "Loop", "Round", "filter_rounds", "majority", "mean_confidence"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

STATUSES: dict[str, str] = {
    "converged": "two rounds in a row agree on which trajectories are the expert's",
    "no_valley": "no threshold separates the expert from the rest: it cannot be told",
    "collapsed_empty": "a round selected nothing; the selection before it is kept",
    "collapsed_all": "a round selected everything; the selection before it is kept",
    "collapsed_seeds": "the rounds found nothing but the seeds themselves",
    "cycle": "the selection repeats itself with a period of several rounds",
    "max_rounds": "the selection still changed when the last allowed round ended",
    "seed_incoherent": "the seeds do not look like trajectories of one policy",
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
    """Share of all trajectories whose membership differs from the round before."""
    status: str | None = None
    """Why the loop ends here; None while it goes on."""

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


def filter_rounds(  # noqa: PLR0913 - every part of the loop is an argument
    mixed: TrajectorySet,
    seed_positives: TrajectorySet,
    *,
    judge: Judge,
    threshold: Threshold,
    key: Key,
    loop: Loop | None = None,
    bench: Bench | None = None,
    facts: Survey | None = None,
    done: Sequence[Round] = (),
) -> Iterator[Round]:
    """Yield rounds until membership settles or the loop must end.

    The caller owns the loop: print a line, save a checkpoint, or stop early, all with a
    plain `for`. The last round holds the result and the status.

    Args:
        mixed: Unlabelled trajectories.
        seed_positives: A few trajectories of the target expert, the first positives.
        judge: Trains on the positives and rates `mixed`.
        threshold: Maps mean confidences to a cut.
        key: Names all randomness.
        loop: When to end.
        bench: Where to work.
        facts: A survey of `mixed`, where one was made already.
        done: Rounds of an interrupted run, taken as they are.
    """
    loop, bench = loop or Loop(), bench or Bench()
    facts = facts or survey(mixed)
    own = locate(mixed, seed_positives)
    known = np.zeros(len(mixed), dtype=np.bool_)
    known[own[own >= 0]] = True
    positives, before, standing = seed_positives, known, None
    seen: dict[bytes, int] = {}
    for number in range(1, loop.max_rounds + 1):
        if number <= len(done):
            current = done[number - 1]
        else:
            task = Task(
                number=number,
                mixed=mixed,
                positives=positives,
                seed_positives=seed_positives,
                standing=standing,
                facts=facts,
                key=key.at("round", number),
                bench=bench,
            )
            current = _decide(task, judge(task), threshold, before)
            current = _end(current, known, seen, loop)
        yield current
        if current.status is not None:
            return
        seen[current.selected.tobytes()] = number
        positives, before = mixed[current.selected], current.selected
        standing = Standing(current.confidence, current.cut.threshold, current.selected)


def majority(confidence: Floats, threshold: float) -> tuple[Integers, Mask]:
    """Equation 2: the votes, and whether strictly more than half of those who vote agree.

    A NaN is a member that abstains. A trajectory on which all abstain is not selected.
    """
    present = ~np.isnan(confidence)
    with np.errstate(invalid="ignore"):
        votes = np.count_nonzero(confidence >= threshold, axis=0)
    return votes.astype(np.int64), 2 * votes > present.sum(axis=0)


def mean_confidence(confidence: Floats) -> Floats:
    """Mean over the members that do not abstain; over nobody it is NaN."""
    present = ~np.isnan(confidence)
    total = np.where(present, confidence, 0.0).sum(axis=0)
    count = present.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _decide(task: Task, verdict: Verdict, threshold: Threshold, before: Mask) -> Round:
    """Cut, vote, and fall back on the selection before where a round says nothing."""
    mean = mean_confidence(verdict.confidence)
    cut = threshold(mean[~np.isnan(mean)], mean_confidence(verdict.seed_confidence))
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
    return Round(task.number, verdict, cut, votes, selected, float(np.mean(selected != before)))


def _end(current: Round, known: Mask, seen: dict[bytes, int], loop: Loop) -> Round:
    """The round with the status that ends the loop, if it ends; seeds alone where unsound."""
    status = current.status or _status(current, known, seen, loop)
    if status in ("converged", "max_rounds") and current.cut.status is not None:
        # A working cut carried the rounds this far, but never became a sound one.
        return replace(current, selected=known, status=current.cut.status)
    return replace(current, status=status)


def _status(current: Round, known: Mask, seen: dict[bytes, int], loop: Loop) -> str | None:
    """Why to stop after a round that selected something, if at all.

    The first round is never the last by the tolerance: a round that selects the seeds again
    changes nothing, and has found nothing.
    """
    if current.number > 1 and current.changed <= loop.tolerance:
        found = current.selected & ~known
        return "converged" if found.any() else "collapsed_seeds"
    earlier = seen.get(current.selected.tobytes())
    if earlier is not None:
        return f"cycle({current.number - earlier})"
    return "max_rounds" if current.number == loop.max_rounds else None
