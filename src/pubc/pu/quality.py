"""How good is a selection, without labels?

Three questions that need none: do seeds that were held out of training rank above the rest,
how wide is the gap at the cut, and how much do the humps on both sides of it overlap. The
answers are estimates, and say so where they cannot be had.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.pu.filter import Round, mean_confidence

__all__ = ["Quality", "estimate"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

UNSURE = 0.05
"""A trajectory is borderline where the chance of a wrong label is above this."""


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
    values = _unsaturated(last.confidence)
    seed_values = _unsaturated(mean_confidence(last.verdict.seed_confidence))
    held_out = np.isnan(last.verdict.seed_confidence).any(axis=0) & np.isfinite(seed_values)
    threshold = last.cut.threshold
    cut = None if threshold is None else float(_unsaturated(np.asarray([threshold]), last)[0])
    wrong = _chance_wrong(values, last.selected) if cut is not None else None
    divided = _divided(last)
    return Quality(
        held_out_seeds=int(held_out.sum()),
        seed_rank=_rank(seed_values[held_out], values[~seeds & np.isfinite(values)]),
        seeds_kept=None if cut is None else float(np.mean(seed_values >= cut)),
        gap=None if cut is None else _gap(values, last.selected),
        expected_wrong=None if wrong is None else float(np.mean(wrong)),
        borderline=divided if wrong is None else divided | (wrong > UNSURE),
    )


def _unsaturated(confidence: Floats, like: Round | None = None) -> Floats:
    """Logits of values that are probabilities; others, such as sums of logs, as they are."""
    known = confidence[np.isfinite(confidence)] if like is None else like.confidence
    if known.size and (np.nanmin(known) < 0 or np.nanmax(known) > 1):
        return confidence
    clipped = np.clip(confidence, 1e-9, 1 - 1e-9)
    return np.log(clipped) - np.log1p(-clipped)


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


def _chance_wrong(values: Floats, selected: Mask) -> Floats | None:
    """Chance of each label being wrong, from a normal hump on each side of the cut."""
    kept, dropped = values[selected], values[~selected]
    if min(kept.size, dropped.size) < 2:
        return None
    spread = max(float(np.nanstd(values)), 1e-12)
    weights = []
    for group in (kept, dropped):
        middle = float(np.nanmedian(group))
        # Median and mean distance from it, so that a few strays do not widen a hump. The
        # floor keeps a hump of a handful of equal values from claiming certainty.
        width = max(1.2533 * float(np.nanmean(np.abs(group - middle))), 0.02 * spread)
        score = (values - middle) / width
        weights.append(np.log(group.size) - np.log(width) - 0.5 * score**2)
    difference = np.clip(weights[0] - weights[1], -700, 700)
    as_kept = 1 / (1 + np.exp(-difference))
    return np.asarray(np.where(selected, 1 - as_kept, as_kept), dtype=np.float64)


def _divided(last: Round) -> Mask:
    """Trajectories on which the members who judged them do not agree."""
    threshold = last.cut.threshold
    if threshold is None:
        return np.ones(len(last.selected), dtype=np.bool_)
    present = (~np.isnan(last.verdict.confidence)).sum(axis=0)
    return np.asarray((last.votes > 0) & (last.votes < present))
