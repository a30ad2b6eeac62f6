"""How good is a selection, without labels?

Three questions that need none: do seeds that were held out of training rank above the rest,
how wide is the gap at the cut, and how much do the humps on both sides of it overlap. The
answers are estimates, and say so where they cannot be had.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.pu.judge import mean_confidence
from pubc.pu.rounds import Round

__all__ = ["Quality", "estimate"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

UNSURE = 0.005
"""A trajectory is borderline where more than this share of the other side lies as far out."""


@dataclass(frozen=True, slots=True, eq=False)
class Quality:
    """A label-free estimate of how right a selection is."""

    held_out_seeds: int
    """Seeds that some member judged without having trained on them."""
    seed_rank: float | None
    """Median share of the other trajectories that a held-out seed ranks above; 1 is best,
    one half is chance. None where no seed was held out."""
    seeds_kept: float | None
    """Share of the seeds at or above the threshold."""
    gap: float | None
    """Width of the empty interval at the cut as a share of the distance between the middles
    of the two groups."""
    expected_wrong: float | None
    """Expected share of wrong labels, from the overlap of the two groups."""
    borderline: Mask
    """Trajectories whose label is unsure, shape (trajectories,)."""


def estimate(last: Round, seeds: Mask) -> Quality:
    """Estimate the quality of the last round's selection.

    Args:
        last: The round to judge.
        seeds: Which mixed trajectories are seeds.
    """
    space = _space(last.confidence)
    values = space(last.confidence)
    seed_values = space(mean_confidence(last.verdict.seed_confidence))
    held_out = np.isnan(last.verdict.seed_confidence).any(axis=0) | last.verdict.held_out
    held_out &= np.isfinite(seed_values)
    threshold = last.cut.threshold
    cut = None if threshold is None else float(space(np.asarray([threshold]))[0])
    wrong = _chance_wrong(values, last.selected) if cut is not None else None
    divided = _divided(last)
    return Quality(
        held_out_seeds=int(held_out.sum()),
        seed_rank=_rank(seed_values[held_out], values[~seeds & np.isfinite(values)]),
        seeds_kept=None if cut is None else float(np.mean(seed_values >= cut)),
        gap=None if cut is None else _gap(values, last.selected),
        expected_wrong=None if wrong is None else wrong[0],
        borderline=divided if wrong is None else divided | wrong[1],
    )


def _space(confidence: Floats) -> Callable[[Floats], Floats]:
    """Logits for values that are probabilities; others, such as log ratios, as they are."""
    if np.nanmin(confidence) < 0 or np.nanmax(confidence) > 1:
        return lambda values: values

    def logit(values: Floats) -> Floats:
        clipped = np.clip(values, 1e-9, 1 - 1e-9)
        return np.asarray(np.log(clipped) - np.log1p(-clipped))

    return logit


def _rank(held_out: Floats, others: Floats) -> float | None:
    if not held_out.size or not others.size:
        return None
    below = np.searchsorted(np.sort(others), held_out, side="left")
    return float(np.median(below / others.size))


def _gap(values: Floats, selected: Mask) -> float | None:
    kept, dropped = values[selected], values[~selected]
    if not kept.size or not dropped.size:
        return None
    middle = float(np.nanmedian(kept) - np.nanmedian(dropped))
    if middle <= 0:
        return 0.0
    return max(0.0, float(np.nanmin(kept) - np.nanmax(dropped)) / middle)


def _chance_wrong(values: Floats, selected: Mask) -> tuple[float, Mask] | None:
    """Expected share of wrong labels, and which trajectories could be the other side's.

    The tail of each side towards the cut is continued as an exponential from its outer
    quarter, which is heavier than the humps that were measured.
    """
    known = np.isfinite(values)
    kept, dropped = values[selected & known], values[~selected & known]
    if min(kept.size, dropped.size) < 2:
        return None
    cut = 0.5 * float(kept.min() + dropped.max())
    wrong, tails = 0.0, []
    for group, sign in ((kept, -1.0), (dropped, 1.0)):
        towards = np.sort(sign * group)
        q50, q75, q95 = np.quantile(towards, [0.5, 0.75, 0.95])
        widths = (q95 - q75) / np.log(5.0), (q95 - q50) / np.log(10.0)
        width = max(*widths, 1e-3 * abs(sign * cut - q50), 1e-9)
        beyond = 0.05 * np.exp(np.minimum((q95 - sign * np.append(values, cut)) / width, 50.0))
        beyond = np.minimum(beyond, 1.0)
        wrong += group.size * float(beyond[-1])
        tails.append(beyond[:-1])
    other = np.where(selected, tails[1], tails[0])
    return min(1.0, wrong / known.sum()), np.asarray((other > UNSURE) | ~known)


def _divided(last: Round) -> Mask:
    """Trajectories on which the members who judged them do not agree."""
    threshold = last.cut.threshold
    if threshold is None:
        return np.ones(len(last.selected), dtype=np.bool_)
    present = (~np.isnan(last.verdict.confidence)).sum(axis=0)
    return np.asarray((last.votes > 0) & (last.votes < present))
