"""Algorithm 1 of the paper: judge, threshold, vote, repeat, until the expert's set settles.

The loop knows no networks. It takes a judge and a threshold, so that the paper's method, its
baselines and its ablations are arguments. It does not look left or right either: what resumes
an interrupted run, and what ends rounds that would never settle, is in `guarded_rounds`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from pubc.pu.judge import Judge, Standing, Threshold
from pubc.pu.rounds import Pile, Round
from pubc.streams import Key

__all__ = ["filter_rounds", "majority"]


def filter_rounds(
    pile: Pile,
    *,
    judge: Judge,
    threshold: Threshold,
    key: Key,
    start: Standing | None = None,
    first: int = 1,
    tolerance: float = 0.02,
) -> Iterator[Round]:
    """Yield rounds until two in a row agree on which trajectories are the expert's.

    The caller owns the loop: print a line, save a checkpoint, or stop early, all with a plain
    `for`. The last round holds the result.

    Args:
        pile: The mixed trajectories, D_mix, and the seed positives, the first D_+.
        judge: Trains on the positives and rates the mixed trajectories.
        threshold: Maps what the judge thinks to a cut.
        key: Names all randomness.
        start: A split to start from instead of the seeds alone.
        first: Number of the first round.
        tolerance: Stop once at most this share of all trajectories changed membership.
    """
    selected = pile.known if start is None else start.selected
    positives = pile.seed_positives if start is None else pile.mixed[selected]
    before = start
    for number in itertools.count(first):
        verdict = judge(pile.task(number, positives, before, key))  # train on D_+, rate D_mix
        cut = threshold(verdict)  # th_conf
        votes, chosen = majority(verdict.confidence, cut.threshold)  # Equation 2: the new D_+
        changed = float(np.mean(chosen != selected))
        yield Round(number, verdict, cut, votes, chosen, changed)
        # Seeds are no round to agree with, and a doubtful cut is none to agree on.
        if number > first and cut.status is None and changed <= tolerance:
            return
        selected, positives = chosen, pile.mixed[chosen]
        before = Standing(verdict, cut, chosen, changed)


def majority(
    confidence: NDArray[np.float64], threshold: float | None
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Equation 2: the votes, and whether strictly more than half of those who vote agree.

    A NaN is a member that abstains. A trajectory on which all abstain is not selected, and
    without a threshold none is.
    """
    present = ~np.isnan(confidence)
    with np.errstate(invalid="ignore"):
        votes = np.count_nonzero(confidence >= (np.inf if threshold is None else threshold), axis=0)
    return votes.astype(np.int64), 2 * votes > present.sum(axis=0)
