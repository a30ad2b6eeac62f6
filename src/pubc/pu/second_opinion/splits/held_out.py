"""Whether a split keeps more than the seeds stand for: each seed, left out, among what is kept.

A seed and any other trajectory of its policy are strangers to the other seeds alike. So among
what is kept, a seed that was left out lies anywhere. If the seeds left out lie ahead of nearly
everything, what is kept is more than their policy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.pu.second_opinion.looks.evidence import View
from pubc.pu.second_opinion.splits.pile_split import likeness

__all__ = ["FEWEST_SEEDS", "MOST_LEFT_OUT", "HeldOut", "hold_out"]

FEWEST_SEEDS = 3
"""Fewer seeds than this do not say how much their policy varies."""
MOST_LEFT_OUT = 5
"""So many seeds are left out, one after another; more tell little more."""
UNLIKE = 0.84
"""From this mean rank on more is kept than the seeds stand for. Three seeds drawn by chance seldom
reach it."""
CLEAR = 6.0
"""Seldom is not never: a split whose sides lie so many standard deviations apart is not
questioned."""


@dataclass(frozen=True, slots=True, eq=False)
class HeldOut:
    """Seeds that were left out, one after another."""

    seeds: NDArray[np.int64]
    """Which trajectories they are; none where there are too few."""
    likeness: NDArray[np.float64]
    """How like the other seeds everybody is, a row for each of them."""

    def too_much(self, kept: NDArray[np.bool_], support: float) -> bool:
        """Whether more is kept than the seeds stand for.

        Args:
            kept: What is kept.
            support: How far the two sides lie apart, in standard deviations.
        """
        return support < CLEAR and self.rank(kept) >= UNLIKE

    def rank(self, kept: NDArray[np.bool_]) -> float:
        """Mean share of what is kept that is less like the other seeds than the one left out.

        Seeds drawn by chance have one half.

        Args:
            kept: What is kept, of all that were looked at or of the first of them.
        """
        others = kept.copy()
        others[self.seeds[self.seeds < len(kept)]] = False
        if not len(self.seeds) or not others.any():
            return 0.5
        own = self.likeness[np.arange(len(self.seeds)), self.seeds]
        return float(np.mean(self.likeness[:, np.flatnonzero(others)] < own[:, None]))


def hold_out(views: list[View], seeds: Tensor) -> HeldOut:
    """Leave out up to five seeds, one after another, and see how like the others everybody is."""
    if len(seeds) < FEWEST_SEEDS:
        return HeldOut(np.zeros(0, dtype=np.int64), np.zeros((0, views[0].rows.count)))
    rows = []
    for number in range(min(MOST_LEFT_OUT, len(seeds))):
        others = torch.cat([seeds[:number], seeds[number + 1 :]])
        rows.append(likeness(views, others).double().cpu().numpy())
    return HeldOut(seeds[:MOST_LEFT_OUT].cpu().numpy(), np.stack(rows))
