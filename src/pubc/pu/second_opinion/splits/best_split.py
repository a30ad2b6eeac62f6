"""The best of three ways to cut a pile, and how much it hangs on single seeds.

That of few is believed where it is clearly liker to the seeds than that of many, and loses no seed;
the even one where it is liker to them than the better of these, its votes are less divided, and it
loses no seed either. Made again without each of the seeds, a split that is right hardly changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pubc.pu.judge import Bench
from pubc.pu.second_opinion.looks.evidence import View
from pubc.pu.second_opinion.splits.held_out import FEWEST_SEEDS, MOST_LEFT_OUT
from pubc.pu.second_opinion.splits.pile_split import (
    WAYS,
    Split,
    Way,
    how_divided,
    likeness,
    split_pile,
)
from pubc.pu.second_opinion.splits.taught_split import can_teach
from pubc.streams import Key

__all__ = ["Best", "best_split", "divided_without_seeds", "lie_apart"]

_LIKER = 1.3
"""So many times further from everybody else, in likeness to the seeds, few must lie than many."""
_ROUNDS = 3
"""Of growing, without a seed."""


@dataclass(frozen=True, slots=True, eq=False)
class Best:
    """The split that is believed."""

    split: Split
    way: Way
    """How it was cut."""
    agree: float
    """Smallest share of labels on which another way agrees with it; 0 where only one was tried."""
    dropped_closer: int = 0
    """How many it dropped only when it looked closer."""
    another: float = 0.0
    """How surely part of what it keeps gains by an actor of its own, in standard errors; 0 where
    nothing points to two, or nobody looked."""


def best_split(
    views: list[View], seeds: Tensor, bad: Tensor, rounds: int, key: Key, bench: Bench
) -> Best:
    """Split a pile in every way, and choose.

    Args:
        views: The looks.
        seeds: Positions of the seeds.
        bad: Which trajectories are known not to be the expert's.
        rounds: Rounds of growing.
        key: Names all randomness.
        bench: Where splits are made at the same time.
    """

    def split_by(number: int) -> Split:
        return split_pile(views, seeds, bad, rounds, key, WAYS[number])

    if can_teach(len(seeds), int(bad.sum())) or len(seeds) == 1:
        return Best(split_by(0), WAYS[0], 0.0)
    found = bench.map(split_by, range(len(WAYS)))
    best = _choose(views, found, seeds)
    labels = torch.stack([one.belief > 0.5 for one in found])
    labels[:, seeds] = True
    agree = float((labels == labels[best]).float().mean(1).min())
    return Best(found[best], WAYS[best], agree)


def divided_without_seeds(
    views: list[View], best: Best, seeds: Tensor, bad: Tensor, key: Key, bench: Bench
) -> float:
    """How divided the votes are once each of the seeds was left out; few seeds all stay."""

    def split_without(number: int) -> Split:
        others = torch.cat([seeds[:number], seeds[number + 1 :]])
        return split_pile(views, others, bad, _ROUNDS, key, best.way)

    if len(seeds) < FEWEST_SEEDS or best.split.taught:
        return how_divided(best.split.belief)
    left_out = bench.map(split_without, range(min(MOST_LEFT_OUT, len(seeds))))
    beliefs = [best.split.belief, *(split.belief for split in left_out)]
    return how_divided(torch.stack(beliefs).mean(0))


def _choose(views: list[View], found: list[Split], seeds: Tensor) -> int:
    """Which way is believed."""
    like = likeness(views, seeds)
    kept = [int(split.found(seeds).sum()) for split in found]
    apart = [lie_apart(like, split.belief > 0.5) for split in found]
    many, few, even = range(len(WAYS))
    best = few if kept[few] >= kept[many] and apart[few] > _LIKER * apart[many] else many
    divided = [how_divided(split.belief) for split in found]
    surer = apart[even] > apart[best] and divided[even] < divided[best]
    return even if kept[even] >= kept[best] and surer else best


def lie_apart(values: Tensor, kept: Tensor) -> float:
    """How far the values of kept and dropped lie apart, in standard deviations."""
    if bool(kept.all()) or not bool(kept.any()):
        return 0.0
    ours, theirs = values[kept].double(), values[~kept].double()
    spread = (ours.var(correction=0) + theirs.var(correction=0) + 1e-6).sqrt()
    return float((ours.mean() - theirs.mean()) / spread)
