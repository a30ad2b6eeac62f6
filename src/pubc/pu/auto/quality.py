"""How good is a selection, without labels?

Three questions that need none: are seeds that were held out of training kept, how wide is the gap
at the cut, and which trajectories could be the other side's. The answers are estimates, and say so
where they cannot be had.
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
    seeds_kept: float | None
    """Share of the seeds at or above the threshold."""
    gap: float | None
    """Width of the empty interval at the cut as a share of the distance between the middles
    of the two groups."""
    borderline: Mask
    """Trajectories whose label is unsure, shape (trajectories,)."""


def estimate(last: Round) -> Quality:
    """Estimate the quality of the last round's selection.

    Args:
        last: The round to judge.
    """
    space = _space(last.confidence)
    values = space(last.confidence)
    seed_values = space(mean_confidence(last.verdict.seed_confidence))
    held_out = np.isnan(last.verdict.seed_confidence).any(axis=0) | last.verdict.held_out
    held_out &= np.isfinite(seed_values)
    threshold = last.cut.threshold
    cut = None if threshold is None else float(space(np.asarray([threshold]))[0])
    divided = _divided(last)
    near = _near_the_cut(values, last.selected) if cut is not None else None
    return Quality(
        held_out_seeds=int(held_out.sum()),
        seeds_kept=None if cut is None else float(np.mean(seed_values >= cut)),
        gap=None if cut is None else _gap(values, last.selected),
        borderline=divided if near is None else divided | near,
    )


def _space(confidence: Floats) -> Callable[[Floats], Floats]:
    """Logits for values that are probabilities; others, such as log ratios, as they are."""
    if np.nanmin(confidence) < 0 or np.nanmax(confidence) > 1:
        return lambda values: values

    def logit(values: Floats) -> Floats:
        clipped = np.clip(values, 1e-9, 1 - 1e-9)
        return np.asarray(np.log(clipped) - np.log1p(-clipped))

    return logit


def _gap(values: Floats, selected: Mask) -> float | None:
    kept, dropped = values[selected], values[~selected]
    if not kept.size or not dropped.size:
        return None
    middle = float(np.nanmedian(kept) - np.nanmedian(dropped))
    if middle <= 0:
        return 0.0
    return max(0.0, float(np.nanmin(kept) - np.nanmax(dropped)) / middle)


def _near_the_cut(values: Floats, selected: Mask) -> Mask | None:
    """Which trajectories could be the other side's.

    The tail of each side towards the cut is continued as an exponential from its outer
    quarter, which is heavier than the humps that were measured.
    """
    known = np.isfinite(values)
    kept, dropped = values[selected & known], values[~selected & known]
    if min(kept.size, dropped.size) < 2:
        return None
    cut = 0.5 * float(kept.min() + dropped.max())
    tails = []
    for group, sign in ((kept, -1.0), (dropped, 1.0)):
        towards = np.sort(sign * group)
        q50, q75, q95 = np.quantile(towards, [0.5, 0.75, 0.95])
        widths = (q95 - q75) / np.log(5.0), (q95 - q50) / np.log(10.0)
        width = max(*widths, 1e-3 * abs(sign * cut - q50), 1e-9)
        beyond = 0.05 * np.exp(np.minimum((q95 - sign * values) / width, 50.0))
        tails.append(np.minimum(beyond, 1.0))
    other = np.where(selected, tails[1], tails[0])
    return np.asarray((other > UNSURE) | ~known)


def _divided(last: Round) -> Mask:
    """Trajectories on which the members who judged them do not agree."""
    threshold = last.cut.threshold
    if threshold is None:
        return np.ones(len(last.selected), dtype=np.bool_)
    present = (~np.isnan(last.verdict.confidence)).sum(axis=0)
    return np.asarray((last.votes > 0) & (last.votes < present))
