"""From the seeds to a split of a pile: careful growth, a weighted score, and two ways to cut.

What each kind of evidence is worth stands in `worth.json`: how much it varies within one policy, as
a share of the pile's spread, and its weight, where positives are few and where they are many.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

import numpy as np
import torch
from torch import Tensor

from pubc.pu.second_opinion.evidence import EVIDENCE, TWO_SIDED, View
from pubc.pu.second_opinion.taught_split import can_teach, teach
from pubc.streams import Key

__all__ = ["Split", "likeness", "split_pile"]

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


def split_pile(
    views: list[View],
    seeds: Tensor,
    bad: Tensor,
    rounds: int,
    key: Key,
    among: Tensor | None = None,
) -> Split:
    """Grow the positives from the seeds, then cut in every look and way.

    Args:
        views: The looks.
        seeds: Positions of the seeds.
        bad: Which trajectories are known not to be the expert's.
        rounds: Rounds of growing.
        key: Names all randomness.
        among: Positions of the trajectories to split, in order; the others lie on the other side.
    """
    count = views[0].rows.count
    part = _Part(views, torch.arange(count, device=bad.device) if among is None else among)
    known, avoid = torch.searchsorted(part.positions, seeds), bad[part.positions]
    grown = _grow(part, known, avoid, rounds, key)
    votes: list[list[Tensor]] = [[] for _ in views]
    falls: list[list[Tensor]] = [[] for _ in views]
    apart = []
    for turn, positives in enumerate(grown[-2:]):
        sample = _some(positives, key.at("sample", turn))
        for number, short in enumerate(part.shortfalls(sample, known)):
            score = _score(short, len(sample))
            told, separation = _discriminate(short, sample, score, avoid)
            votes[number] += [_mixture(score, sample) * ~avoid, told * ~avoid]
            apart.append(separation)
            falls[number].append(short)
    untaught = sure = part.whole(votes)
    taught = can_teach(len(known), int(avoid.sum()))
    if taught:
        belief = untaught[:, part.positions].mean(0)
        sure = part.whole(
            [
                [teach(short, codes, belief, known, avoid) for short in own]
                for own, codes in zip(falls, part.codes(), strict=True)
            ]
        )
    shortfall = torch.zeros(count, dtype=torch.int64, device=bad.device)
    shortfall[part.positions] = (
        torch.stack([short for own in falls for short in own]).mean(0).argmax(0)
    )
    support = float(np.median(apart))
    return Split(sure > 0.5, sure.mean(0), shortfall, support, taught, untaught > 0.5)


def likeness(views: list[View], positives: Tensor) -> Tensor:
    """How like the positives every trajectory is, in the mean of all looks."""
    everybody = _Part(views, torch.arange(views[0].rows.count, device=positives.device))
    shortfalls = everybody.shortfalls(positives, positives)
    return torch.stack([_score(short, len(positives)) for short in shortfalls]).mean(0)


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """Some of the trajectories of a pile; all others refer to them by their place in it."""

    views: list[View]
    positions: Tensor

    def shortfalls(self, positives: Tensor, seeds: Tensor) -> list[Tensor]:
        """How far each falls short of the positives, a tensor for every look."""
        own, known = self.positions[positives], self.positions[seeds]
        return [_shortfalls(view, own, known, self.positions) for view in self.views]

    def codes(self) -> list[Tensor]:
        """The code of each trajectory, a tensor for every look."""
        return [view.actors.own_codes()[self.positions] for view in self.views]

    def whole(self, votes: list[list[Tensor]]) -> Tensor:
        """Votes of every look about all of the pile, one after another; outside they are no."""
        count = self.views[0].rows.count
        sure = torch.zeros(len(votes) * len(votes[0]), count, device=self.positions.device)
        sure[:, self.positions] = torch.stack([vote for own in votes for vote in own])
        return sure


def _grow(part: _Part, seeds: Tensor, bad: Tensor, rounds: int, key: Key) -> list[Tensor]:
    """Positives of each round: the seeds, and the better half of what looks like them."""
    positives, grown = seeds, []
    for turn in range(rounds):
        grown.append(positives)
        sample = _some(positives, key.at("grow", turn))
        shortfalls = part.shortfalls(sample, seeds)
        score = torch.stack([_score(short, len(sample)) for short in shortfalls]).mean(0)
        inside = _above(score, sample, len(seeds)) & ~bad
        inside[seeds] = False
        order = torch.argsort(score, descending=True)
        order = order[inside[order]]
        share = 0.5 if turn < rounds // 2 else 0.8
        room = min(int(share * len(order)), 2 * len(positives) + 2)
        positives = torch.sort(torch.cat([seeds, order[:room]]))[0]
    return grown


def _some(positives: Tensor, key: Key, most: int = 60) -> Tensor:
    if len(positives) <= most:
        return positives
    drawn = key.rng().choice(len(positives), most, replace=False)
    return torch.sort(positives[torch.from_numpy(drawn).to(positives.device)])[0]


def _shortfalls(view: View, positives: Tensor, seeds: Tensor, among: Tensor) -> Tensor:
    """How far trajectories fall short of the positives, (evidence, trajectories), in logs."""
    numbers = view.evidence(positives, view.fit(positives, view.quick(seeds)))
    count = len(positives)
    chosen, numbers = numbers[:, positives], numbers[:, among]
    middle = torch.quantile(chosen, 0.5, dim=1)
    within = chosen.var(1) if count > 1 else torch.zeros_like(middle)
    usual = _worth()["spread"].to(numbers.device) * (numbers.std(1) + 1e-6)
    spread = torch.sqrt(((count - 1) * within + 3 * usual**2) / (count + 2))
    apart = (numbers - middle[:, None]) / spread[:, None]
    two = torch.tensor([name in TWO_SIDED for name in EVIDENCE], device=numbers.device)
    short = torch.where(two[:, None], apart.abs(), (-apart).clamp(min=0))
    return torch.log1p(short.clamp(max=30))


def _score(short: Tensor, positives: int) -> Tensor:
    """One number for each trajectory; more is more like the positives."""
    worth = _worth()
    many = min(1.0, max(0.0, (positives - 3) / 9))
    weights = (1 - many) * worth["few"] + many * worth["many"]
    offset = (1 - many) * worth["few_offset"] + many * worth["many_offset"]
    return offset.to(short.device) - weights.to(short.device) @ short


def _above(score: Tensor, positives: Tensor, seeds: int) -> Tensor:
    """The upper of the two groups with the least variance within, on a scale of logs."""
    best = torch.sort(score[positives])[0]
    middle = best[len(best) // 2] if len(best) > 2 else torch.sort(score)[0][-3:].mean()
    squashed = -torch.log1p((middle - score).clamp(min=0)).double()
    ranked = torch.sort(squashed, descending=True)[0]
    count = len(ranked)
    least = max(2, min(seeds, count - 3))
    sizes = torch.arange(least, count - 1, device=score.device)
    if not len(sizes):
        return score >= middle
    sums, squares = torch.cumsum(ranked, 0), torch.cumsum(ranked**2, 0)
    upper = squares[sizes - 1] - sums[sizes - 1] ** 2 / sizes
    rest = sums[-1] - sums[sizes - 1]
    lower = squares[-1] - squares[sizes - 1] - rest**2 / (count - sizes)
    size = int(sizes[int((upper + lower).argmin())])
    return squashed > (ranked[size - 1] + ranked[size]) / 2


def _mixture(score: Tensor, positives: Tensor) -> Tensor:
    """Chance to be of the upper of two normal groups, which the positives are to begin with."""
    middle = torch.quantile(score[positives], 0.5)
    values = score.clamp(middle - 8, middle + 2).double()
    rest = torch.ones(len(score), dtype=torch.bool, device=score.device)
    rest[positives] = False
    others = values[rest] if rest.sum() > 2 else values
    means = [values[positives].mean(), torch.quantile(others, 0.3)]
    spreads = [values[positives].std() if len(positives) > 2 else others.std(), others.std()]
    share, least = torch.tensor(0.5, dtype=torch.float64, device=score.device), 0.8
    belief = torch.zeros_like(values)
    for _ in range(30):
        near = [
            -0.5 * ((values - mean) / spread.clamp(min=least)) ** 2 - spread.clamp(min=least).log()
            for mean, spread in zip(means, spreads, strict=True)
        ]
        odds = near[0] + share.log() - near[1] - (1 - share).log()
        # Beyond a group's mean a trajectory belongs to it, however narrow the group.
        odds = torch.where(values > means[0], odds.clamp(min=1), odds)
        odds = torch.where(values < means[1], odds.clamp(max=-1), odds)
        belief = torch.sigmoid(odds)
        share = belief.mean().clamp(1 / len(score), 1 - 1 / len(score))
        for side, weight in enumerate((belief, 1 - belief)):
            total = weight.sum() + 1e-9
            means[side] = (weight * values).sum() / total
            spreads[side] = ((weight * (values - means[side]) ** 2).sum() / total).sqrt()
    return belief.float()


def _discriminate(
    short: Tensor, positives: Tensor, score: Tensor, bad: Tensor
) -> tuple[Tensor, float]:
    """Split by the direction that separates positives from what is far here, and how well.

    Returns:
        How surely each trajectory lies on the positives' side, from 0 to 1, and how far the sides
        lie apart.
    """
    inside = torch.zeros(len(score), dtype=torch.bool, device=score.device)
    inside[positives] = True
    out = ~_above(score, positives, len(positives) if len(positives) < 4 else 2)
    far = out & (score <= score[out].median()) if out.sum() > 8 else out
    far = (far | bad) & ~inside
    separation, sure = 0.0, inside.float()
    for _ in range(4):
        if inside.sum() < 3 or far.sum() < 3:
            return inside.float(), 0.0
        along, separation, cut = _direction(short, inside, far)
        gap = along[inside].mean() - along[far].mean()
        sure = torch.sigmoid(_SLOPE * (along - cut) / gap).float()
        changed = along > cut
        if bool((changed == inside).all()):
            break
        inside, far = changed, ~changed
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


@cache
def _worth() -> dict[str, Tensor]:
    text = (resources.files("pubc.pu.second_opinion") / "worth.json").read_text(encoding="utf-8")
    table = json.loads(text)
    return {
        "spread": torch.tensor(table["spread"]),
        "few": torch.tensor(table["few"]["weights"]),
        "many": torch.tensor(table["many"]["weights"]),
        "few_offset": torch.tensor(table["few"]["offset"]),
        "many_offset": torch.tensor(table["many"]["offset"]),
    }
