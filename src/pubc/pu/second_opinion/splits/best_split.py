"""The best of three ways to cut a pile, and how much it hangs on single seeds.

A way that keeps more than the seeds stand for is out where another is liker to the seeds. Where two
ways come to the same labels and the third to others, it is one of the two. Else that of few is
believed where it is clearly liker than that of many, also if it loses one seed, and the even one
where it is liker than the better of these, its votes are less divided, and it loses no seed. Made
again without each of the seeds, a split that is right hardly changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import torch
from torch import Tensor

from pubc.pu.judge import Bench
from pubc.pu.second_opinion.looks.evidence import View
from pubc.pu.second_opinion.splits.held_out import FEWEST_SEEDS, MOST_LEFT_OUT, hold_out
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

__all__ = ["Best", "Facts", "best_split", "choose", "divided_without_seeds", "lie_apart"]

_LIKER = 1.3
"""So many times further from everybody else, in likeness to the seeds, few must lie than many."""
_SAME = 0.95
"""Share of labels from which two ways come to the same."""
_OTHER = 0.05
"""So much less of them the third way must agree about with either."""
_FEWEST_SEEN = 2
"""So many seeds a way must keep, and all but one of those that another keeps, to be believed in the
other's place."""
_ROUNDS = 3
"""Of growing, without a seed."""


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What speaks for one way to cut."""

    kept: Tensor
    """Which trajectories it keeps."""
    seeds: int
    """How many of the seeds it keeps, each judged without itself."""
    apart: float
    """How far kept and dropped lie apart in likeness to the seeds, in standard deviations."""
    divided: float
    """How divided its votes are."""
    too_much: bool
    """Whether it keeps more than the seeds stand for."""


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
    best = choose(_facts(views, found, seeds))
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


def _facts(views: list[View], found: list[Split], seeds: Tensor) -> list[Facts]:
    held_out, like = hold_out(views, seeds), likeness(views, seeds)
    facts = []
    for split in found:
        labels = split.belief > 0.5
        facts.append(
            Facts(
                kept=labels,
                seeds=int(split.found(seeds).sum()),
                apart=lie_apart(like, labels),
                divided=how_divided(split.belief),
                too_much=held_out.too_much(labels.cpu().numpy(), split.support),
            )
        )
    return facts


def choose(ways: Sequence[Facts]) -> int:
    """Which of the ways, in the order of `WAYS`, is believed."""
    left = [way for way in range(len(ways)) if not _is_out(ways, way)]
    same = [way for way in _two_that_agree(ways) if way in left]
    if same:
        return max(same, key=lambda way: ways[way].apart)
    many, few, even = range(len(WAYS))
    best = many if many in left else left[0]
    if best == many and few in left:
        liker = ways[few].apart > _LIKER * ways[many].apart
        best = few if liker and _may_lose(ways[few], ways[many]) else many
    if even in left and ways[even].seeds >= ways[best].seeds:
        liker = ways[even].apart > ways[best].apart
        best = even if liker and ways[even].divided < ways[best].divided else best
    return best


def _is_out(ways: Sequence[Facts], way: int) -> bool:
    """Whether a way keeps more than the seeds stand for, and another that does not is liker."""
    apart = [facts.apart for facts in ways if not facts.too_much]
    return ways[way].too_much and max(apart, default=-torch.inf) >= ways[way].apart


def _may_lose(one: Facts, other: Facts) -> bool:
    """Whether one way keeps enough seeds to be held against another."""
    return one.seeds >= max(_FEWEST_SEEN, other.seeds - 1)


def _two_that_agree(ways: Sequence[Facts]) -> tuple[int, ...]:
    """Two ways that come to the same labels where the third comes to others; else none."""
    labels = torch.stack([facts.kept for facts in ways])
    agree = (labels[:, None] == labels[None]).float().mean(2)
    for one, other in combinations(range(len(ways)), 2):
        third = len(ways) - one - other
        most = max(float(agree[one, third]), float(agree[other, third]))
        enough = all(_may_lose(ways[way], ways[third]) for way in (one, other))
        if enough and float(agree[one, other]) >= max(_SAME, most + _OTHER):
            return one, other
    return ()


def lie_apart(values: Tensor, kept: Tensor) -> float:
    """How far the values of kept and dropped lie apart, in standard deviations."""
    if bool(kept.all()) or not bool(kept.any()):
        return 0.0
    ours, theirs = values[kept].double(), values[~kept].double()
    spread = (ours.var(correction=0) + theirs.var(correction=0) + 1e-6).sqrt()
    return float((ours.mean() - theirs.mean()) / spread)
