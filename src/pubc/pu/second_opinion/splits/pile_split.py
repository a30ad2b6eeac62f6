"""From the seeds to a split of a pile: careful growth, a weighted score, and three ways to cut.

Nothing here was learned on other piles: how far a trajectory falls short is measured in spreads of
this pile, and what each kind of evidence is worth is decided by the positives themselves, each
judged by the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from pubc.pu.second_opinion.looks.evidence import EVIDENCE, TWO_SIDED, View
from pubc.pu.second_opinion.splits.taught_split import can_teach, teach
from pubc.streams import Key

__all__ = ["WAYS", "Split", "Way", "how_divided", "likeness", "split_pile"]

Way = Literal["many", "few", "even"]
WAYS: tuple[Way, ...] = ("many", "few", "even")
"""How to cut: as if the seeds' like were many, as if they might be few, and without asking the
seeds how far their like reach."""

_USUAL = 0.5
"""Trajectories of one policy differ by about this share of the pile's spread."""
_TRUST = 3.0
"""How much more evidence counts that puts the positives ahead of everybody than such that puts them
anywhere: e to this power."""
_SEED = 8.0
"""So many trajectories a seed counts when a cut is chosen."""
_FEW = 3
"""So many positives there are after the first round, however few seeds."""
_NARROWEST = 0.05
"""Smallest spread of a group, as a share of the range of scores."""
_SLOPE = 6.0


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A pile in two, as every look and way to cut sees it."""

    votes: Tensor
    """Which are the expert's, shape (votes, trajectories); looks one after another."""
    belief: Tensor
    """Mean of how sure each vote is, from 0 to 1."""
    shortfall: Tensor
    """The kind of evidence in which each trajectory falls short most."""
    support: float
    """How far the two sides lie apart, in standard deviations."""
    taught: bool
    """Whether marks of both kinds taught what evidence is worth here."""
    untaught: Tensor
    """The votes before anything was taught, shape (votes, trajectories)."""

    def found(self, seeds: Tensor) -> Tensor:
        """Which seeds are kept, each judged without itself; what was taught knows them."""
        if self.taught:
            return self.untaught[:, seeds].float().mean(0) > 0.5
        return self.belief[seeds] > 0.5


def split_pile(
    views: list[View],
    seeds: Tensor,
    bad: Tensor,
    rounds: int,
    key: Key,
    way: Way = "many",
) -> Split:
    """Grow the positives from the seeds, then cut in every look and way.

    Args:
        views: The looks.
        seeds: Positions of the seeds.
        bad: Which trajectories are known not to be the expert's.
        rounds: Rounds of growing.
        key: Names all randomness.
        way: How to cut.
    """
    grown = _grow(views, seeds, bad, rounds, key, way)
    votes: list[list[Tensor]] = [[] for _ in views]
    falls: list[list[Tensor]] = [[] for _ in views]
    apart = []
    for turn, positives in enumerate(grown[-2:]):
        sample = _some(positives, key.at("sample", turn))
        for number, view in enumerate(views):
            short = _shortfalls(view, sample, seeds)
            score = _score(short, sample)
            inside = score > _cut(score, sample, seeds, way)
            told, separation = _discriminate(short, inside, bad)
            votes[number] += [_mixture(score, inside) * ~bad, told * ~bad]
            apart.append(separation)
            falls[number].append(short)
    untaught = sure = torch.stack([vote for own in votes for vote in own])
    taught = can_teach(len(seeds), int(bad.sum()))
    if taught:
        belief = untaught.mean(0)
        sure = torch.stack(
            [
                teach(short, view.codes, belief, seeds, bad)
                for view, own in zip(views, falls, strict=True)
                for short in own
            ]
        )
    shortfall = torch.stack([short for own in falls for short in own]).mean(0).argmax(0)
    support = float(np.median(apart))
    return Split(sure > 0.5, sure.mean(0), shortfall, support, taught, untaught > 0.5)


def how_divided(belief: Tensor) -> float:
    """Mean distance of belief from yes or no."""
    return float((0.5 - (belief - 0.5).abs()).mean())


def likeness(views: list[View], positives: Tensor) -> Tensor:
    """How like the positives every trajectory is, in the mean of all looks."""
    shortfalls = [_shortfalls(view, positives, positives) for view in views]
    return torch.stack([_score(short, positives) for short in shortfalls]).mean(0)


def _grow(
    views: list[View], seeds: Tensor, bad: Tensor, rounds: int, key: Key, way: Way
) -> list[Tensor]:
    """Positives of each round: the seeds, and the better part of what looks like them."""
    positives, grown = seeds, []
    few = min(_FEW, len(bad) // 4) - len(seeds)
    for turn in range(rounds):
        grown.append(positives)
        sample = _some(positives, key.at("grow", turn))
        shortfalls = [_shortfalls(view, sample, seeds) for view in views]
        score = torch.stack([_score(short, sample) for short in shortfalls]).mean(0)
        others = ~bad
        others[seeds] = False
        inside = int((others & (score > _cut(score, sample, seeds, way))).sum())
        share = 0.5 if turn < rounds // 2 else 0.8
        room = max(few, min(int(share * inside), 2 * len(positives) + 2))
        order = torch.argsort(score, descending=True)
        positives = torch.sort(torch.cat([seeds, order[others[order]][: max(0, room)]]))[0]
    return grown


def _some(positives: Tensor, key: Key, most: int = 60) -> Tensor:
    if len(positives) <= most:
        return positives
    drawn = key.rng().choice(len(positives), most, replace=False)
    return torch.sort(positives[torch.from_numpy(drawn).to(positives.device)])[0]


def _shortfalls(view: View, positives: Tensor, seeds: Tensor) -> Tensor:
    """How far trajectories fall short of the positives, (evidence, trajectories), in logs."""
    numbers = view.evidence(positives, seeds)
    two = torch.tensor([name in TWO_SIDED for name in EVIDENCE], device=numbers.device)[:, None]
    middle = _middles(numbers, positives)
    if len(positives) == 1:
        # Judged by itself a trajectory is too good to be a measure: the best others are.
        best = torch.topk(numbers, min(_FEW, numbers.shape[1]))[0].mean(1, keepdim=True)
        middle = torch.where(two, middle, torch.minimum(middle, best))
    spread = _USUAL * (numbers.std(1, correction=0) + 1e-6)
    apart = (numbers - middle) / spread[:, None]
    short = torch.where(two, apart.abs(), (-apart).clamp(min=0))
    return torch.log1p(short.clamp(max=30))


def _middles(numbers: Tensor, positives: Tensor) -> Tensor:
    """The median of the positives, for each trajectory; for a positive that of the others."""
    chosen, count = numbers[:, positives], len(positives)
    middle = torch.quantile(chosen, 0.5, dim=1)[:, None].repeat(1, numbers.shape[1])
    if count == 1:
        return middle
    ranked, order = chosen.sort(dim=1)
    place = torch.empty_like(order).scatter_(
        1, order, torch.arange(count, device=order.device).expand_as(order)
    )
    # Without the one at a place, those behind it move up.
    low, high = (count - 2) // 2, (count - 1) // 2
    low_value = ranked.gather(1, low + (place <= low).long())
    high_value = ranked.gather(1, high + (place <= high).long())
    middle[:, positives] = (low_value + high_value) / 2
    return middle


def _score(short: Tensor, positives: Tensor) -> Tensor:
    """One number for each trajectory; more is more like the positives.

    Every kind of evidence counts by how few others fall less short in it than the positives, each
    judged by the others: what does not tell them from the pile says nothing here.
    """
    inside = torch.zeros(short.shape[1], dtype=torch.bool, device=short.device)
    inside[positives] = True
    if bool(inside.all()) or len(positives) == 1:
        return -short.mean(0)
    others = short[:, ~inside].sort(dim=1)[0]
    own = short[:, inside].contiguous()
    less = torch.searchsorted(others, own)
    up_to = torch.searchsorted(others, own, right=True)
    ahead = 1 - (less + up_to).float().mean(1) / (2 * others.shape[1])
    return -torch.softmax(_TRUST * (2 * ahead - 1), 0) @ short


def _cut(score: Tensor, positives: Tensor, seeds: Tensor, way: Way) -> Tensor:
    """Where to cut so that two normal groups result, with the seeds drawn from the upper one.

    Of all cuts the one with the smallest error (Kittler and Illingworth), where each seed, judged
    by the other positives, counts as a draw from the upper group; some may be odd. Where the seeds
    are taken for draws from the pile, a large share of their like is likelier. To cut evenly, and
    with one seed, which says nothing of how much its like vary, both groups are as narrow as can
    be.
    """
    ranked = torch.sort(score.double(), descending=True)[0]
    count = len(ranked)
    sizes = torch.arange(max(3, min(len(seeds), count - 3)), count - 2, device=score.device)
    if not len(sizes):
        return ranked[min(count - 1, max(2, len(seeds)))]
    sums, squares = torch.cumsum(ranked, 0), torch.cumsum(ranked**2, 0)
    least = (_NARROWEST * (ranked[0] - ranked[-1])) ** 2 + 1e-12
    mean, rest = sums[sizes - 1] / sizes, count - sizes
    upper = (squares[sizes - 1] / sizes - mean**2).clamp(min=0) + least
    below = (sums[-1] - sums[sizes - 1]) / rest
    lower = ((squares[-1] - squares[sizes - 1]) / rest - below**2).clamp(min=0) + least
    share = sizes / count
    error = count * (
        share * (0.5 * upper.log() - share.log())
        + (1 - share) * (0.5 * lower.log() - (1 - share).log())
    )
    if way == "even" or len(seeds) == 1:
        error = share * upper + (1 - share) * lower
    elif len(positives) > 1:
        away = score[seeds].double()[:, None] - mean
        tails = 2.5 * torch.log1p(away**2 / (4 * upper))
        error = error + _SEED * (0.5 * upper.log() + tails - (way == "many") * share.log()).sum(0)
    size = int(sizes[int(error.argmin())])
    return (ranked[size - 1] + ranked[size]) / 2


def _mixture(score: Tensor, inside: Tensor) -> Tensor:
    """Chance to be of the upper of two normal groups, which begin on the two sides of a cut."""
    values = score.double()
    least = _NARROWEST * (values.max() - values.min()) + 1e-6
    belief = inside.double()
    for _ in range(40):
        share = belief.mean().clamp(1 / len(score), 1 - 1 / len(score))
        means, near = [], []
        for weight, part in ((belief, share), (1 - belief, 1 - share)):
            total = weight.sum() + 1e-9
            mean = (weight * values).sum() / total
            spread = ((weight * (values - mean) ** 2).sum() / total).sqrt().clamp(min=least)
            means.append(mean)
            near.append(-0.5 * ((values - mean) / spread) ** 2 - spread.log() + part.log())
        odds = near[0] - near[1]
        # Beyond a group's mean a trajectory belongs to it, however narrow the group.
        odds = torch.where(values > means[0], odds.clamp(min=1), odds)
        odds = torch.where(values < means[1], odds.clamp(max=-1), odds)
        belief = torch.sigmoid(odds)
    return belief.float()


def _discriminate(short: Tensor, inside: Tensor, bad: Tensor) -> tuple[Tensor, float]:
    """Split by the direction that separates the two sides of a cut best, and how well.

    Returns:
        How surely each trajectory lies on the positives' side, from 0 to 1, and how far the sides
        lie apart.
    """
    inside = inside & ~bad
    separation, sure = 0.0, inside.float()
    for _ in range(4):
        if inside.sum() < 3 or (~inside).sum() < 3:
            return inside.float(), 0.0
        along, separation, cut = _direction(short, inside, ~inside)
        gap = along[inside].mean() - along[~inside].mean()
        sure = torch.sigmoid(_SLOPE * (along - cut) / gap).float()
        changed = along > cut
        if bool((changed == inside).all()):
            break
        inside = changed
    return sure, separation


def _direction(short: Tensor, inside: Tensor, far: Tensor) -> tuple[Tensor, float, Tensor]:
    values = short.T.double()
    near, away = values[inside], values[far]
    spread = (torch.cov(near.T) * (len(near) - 1) + torch.cov(away.T) * (len(away) - 1)) / (
        len(near) + len(away) - 2
    )
    spread = spread + torch.diag(spread.diagonal() + 0.05)
    along = values @ torch.linalg.solve(spread, near.mean(0) - away.mean(0))
    ours, theirs = along[inside], along[far]
    gap = ours.mean() - theirs.mean()
    wide, other = ours.std() + 0.1 * gap, theirs.std() + 0.1 * gap
    cut = (ours.mean() * other + theirs.mean() * wide) / (wide + other)
    return along, float(gap / torch.sqrt(ours.var() + theirs.var() + 1e-9)), cut
