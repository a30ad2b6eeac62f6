"""Where rounds start from: splits of a pile that the seeds suggest.

Where a significant valley lies right below the held-out seeds there is one split. Elsewhere
there are several, and a contest decides between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pubc.pu.auto.valleys import find_valleys, gap_below, typical

__all__ = ["Split", "in_order", "propose"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

SHARES = (0.05, 0.12, 0.25, 0.5)
"""Top shares of the ranking that compete where no valley is clear."""
MOST = 3
"""Valleys that compete."""
DIFFERENT = 0.03
"""Splits that differ in a smaller share of trajectories are the same start."""


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A guess at who is the expert's and who is not."""

    name: str
    """How it was made, in words."""
    cut: float
    """Score at and above which trajectories are taken for the expert's."""
    positive: Mask
    """Taken for the expert's, seeds included."""
    rest: Mask
    """Taken for others."""
    evidence: float = 0.0
    """Of the valley that it follows; 1 and above is significant."""

    def of(self, count: int) -> Split:
        """The split of the first so many trajectories."""
        return replace(self, positive=self.positive[:count], rest=self.rest[:count])


def propose(
    scores: Floats, seeds: Integers, *, keep: float, depth: float, relaxed: float
) -> list[Split]:
    """Splits to start from, most trusted first; none where nothing can be split."""
    is_seed = np.zeros(len(scores), dtype=np.bool_)
    is_seed[seeds] = True
    held = scores[seeds]

    def split(name: str, cut: float, evidence: float = 0.0) -> Split:
        positive = (scores >= cut) | is_seed
        return Split(name, cut, positive, ~positive, evidence)

    fitting = [
        valley
        for valley in reversed(find_valleys(scores, depth=depth, bar=relaxed))
        if np.mean(held >= valley.cut) >= keep
    ]
    strict = next((k for k, valley in enumerate(fitting) if valley.evidence >= 1), None)
    usable = fitting if strict is None else fitting[: strict + 1]
    splits = [split("valley", valley.cut, valley.evidence) for valley in usable[:MOST]]
    floor = -np.inf if strict is None else fitting[strict].cut
    if strict is None or not typical(scores, floor, held):
        gap = gap_below(scores, held, keep, floor)
        if gap is not None:
            splits.append(split("widest gap", gap))
        splits += _top_shares(scores, is_seed)
    return [s for s in splits if s.positive.sum() >= 2 and s.rest.sum() >= 2]


def in_order(splits: Sequence[Split], worth: Floats | None, most: int) -> list[Split]:
    """The splits that explain held-out seeds best, each different from those before it."""
    order = range(len(splits)) if worth is None else np.argsort(-worth, kind="stable")
    chosen: list[Split] = []
    for place in order:
        split = splits[int(place)]
        if all(np.mean(split.positive != other.positive) >= DIFFERENT for other in chosen):
            chosen.append(split)
    return chosen[:most]


def _top_shares(scores: Floats, is_seed: Mask) -> list[Split]:
    """The best few against the worse half of the others."""
    order = np.argsort(-scores, kind="stable")
    rank = np.empty(len(scores), np.int64)
    rank[order] = np.arange(len(scores))
    splits = []
    for share in SHARES:
        count = max(4, round(share * len(scores)))
        positive = (rank < count) | is_seed
        left = np.flatnonzero(~positive)
        if len(left) < 4:
            continue
        rest = np.zeros(len(scores), dtype=np.bool_)
        rest[left[np.argsort(scores[left], kind="stable")[: max(2, len(left) // 2)]]] = True
        splits.append(Split(f"top {share:.0%}", float(scores[order[count - 1]]), positive, rest))
    return splits
