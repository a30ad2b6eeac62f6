"""The rounds of recipe `auto`: evidence of several kinds splits the pile, imitators test the split.

The first round is the opening. Evidence of all kinds, each trajectory judged as a whole and in its
worst moments, splits the pile as the seeds suggest. The rounds after it go on from that split with
networks that imitate its two sides. Where the two ways of looking settle on the same trajectories,
a result is worth believing; `pubc.runs.soundness` weighs them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pubc.pu.auto.residual import Residual
from pubc.pu.auto.valleys import otsu
from pubc.pu.guarded_rounds import Loop, guarded_rounds
from pubc.pu.judge import Cut, Standing, Threshold, Verdict
from pubc.pu.paper.threshold import with_histogram
from pubc.pu.rounds import Pile, Round
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings
from pubc.pu.second_opinion.opinion import Opinion, form_opinion
from pubc.streams import Key

__all__ = ["decisive", "rounds_from_evidence"]

Mask = NDArray[np.bool_]


def rounds_from_evidence(
    pile: Pile,
    *,
    judge: Residual,
    threshold: Threshold,
    key: Key,
    loop: Loop,
    settings: OpinionSettings,
) -> Iterator[Round]:
    """Yield the opening, then the rounds that go on from its split.

    Args:
        pile: Mixed trajectories and seeds.
        judge: Rates trajectories by imitators of the seeds, then of the two sides of a split.
        threshold: Maps what the judge thinks to a cut.
        key: Names all randomness.
        loop: When the rounds end.
        settings: How evidence is gathered.
    """
    opinion = form_opinion(pile, key, settings)
    verdict = judge.rate_by_seeds(pile.task(1, pile.seed_positives, None, key.at("open")))
    positive, rest = _sides(pile, verdict, opinion)
    if min(positive.sum(), rest.sum()) < 2:
        reason = "The trajectories cannot be split: too few of them, or all alike."
        yield _opening(pile.known, pile, verdict, Cut(None, reason, "no_valley"), "no_valley")
        return
    means = "the seeds' ranking" if opinion is None else "evidence of several kinds"
    reason = f"Start from the split by {means}."
    cut = Cut(otsu(verdict.confidence[0]), reason, None, 1.0)
    yield _opening(positive, pile, verdict, cut, None)
    start = Standing(
        verdict=replace(verdict, split=(positive, rest)),
        cut=cut,
        selected=positive,
        changed=1.0,
        start=True,
    )
    yield from guarded_rounds(
        pile,
        judge=judge,
        threshold=threshold,
        key=key.at("rounds"),
        loop=loop,
        start=start,
        first=2,
    )


def decisive(rounds: Sequence[Round]) -> Round:
    """The round that holds the result of the rounds: the one they ended with."""
    return next(done for done in reversed(rounds) if done.status is not None)


def _sides(pile: Pile, verdict: Verdict, opinion: Opinion | None) -> tuple[Mask, Mask]:
    """Who counts as the expert's to begin with, and who does not; seeds always do."""
    positive = np.zeros(len(pile.mixed), dtype=np.bool_)
    if opinion is None:
        scores = verdict.confidence[0]
        positive = (scores >= otsu(scores)) | pile.known
        return positive & ~pile.known_bad, ~positive | pile.known_bad
    rest = positive.copy()
    positive[opinion.looked] = opinion.kept
    rest[opinion.looked] = ~opinion.kept
    positive |= pile.known
    return positive, rest & ~pile.known


def _opening(positive: Mask, pile: Pile, verdict: Verdict, cut: Cut, status: str | None) -> Round:
    scores = verdict.confidence[0]
    return Round(
        number=1,
        verdict=verdict,
        cut=with_histogram(cut, scores),
        votes=positive.astype(np.int64),
        selected=positive,
        changed=float(np.mean(positive != pile.known)),
        status=status,
        attempt=0,
    )
