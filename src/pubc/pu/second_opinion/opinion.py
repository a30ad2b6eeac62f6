"""What evidence of several kinds says of a pile, before any round.

It looks at the pile twice, each time with another network that is told who acts and other random
features, grows the positives from the seeds with care, and splits the pile by what separates it
here. The rounds of `auto` begin with that split. Where the rounds and both looks agree, a result is
worth believing; where they do not, the trajectories in question are unsure, and the run says so.

`looks` has the numbers and the network, `splits` the growth, the cuts, the choice among them and
the test whether too much is kept; `closer_look` looks at what is kept once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.nets import pick_device
from pubc.pu.rounds import Pile
from pubc.pu.second_opinion.closer_look import look_closer
from pubc.pu.second_opinion.controls import Traits, traits_of
from pubc.pu.second_opinion.looks.evidence import View
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings, open_views, rows_of
from pubc.pu.second_opinion.looks.rows import Rows
from pubc.pu.second_opinion.splits.best_split import (
    best_split,
    divided_without_seeds,
    lie_apart,
)
from pubc.pu.second_opinion.splits.held_out import HeldOut, hold_out
from pubc.pu.second_opinion.splits.pile_split import Split, how_divided, likeness, split_pile
from pubc.select import locate
from pubc.streams import Key
from pubc.threads import threads
from pubc.trajectory import TrajectorySet

__all__ = ["SMALLEST", "Opinion", "form_opinion"]

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]

SMALLEST = 8
"""Fewer trajectories than this have no structure to look for."""


@dataclass(frozen=True, slots=True, eq=False)
class Opinion:
    """What evidence says of the trajectories that were looked at."""

    looked: NDArray[np.int64]
    """Their positions in the pile."""
    kept: Mask
    """Which of them are the expert's."""
    belief: Floats
    """How much speaks for each, from 0 to 1; above one half it is kept."""
    doubt: Floats
    """How divided the votes are about each, from 0 to 0.5."""
    repeated: float
    """Share of labels on which the looks agree with one another."""
    support: float
    """How far the two sides lie apart, in standard deviations."""
    seeds_found: float
    """Share of the seeds that it keeps, each judged without itself."""
    held_out: HeldOut
    """Where seeds that were left out lie among them."""
    lonely_seeds: NDArray[np.int64]
    """Positions of seeds that every vote puts on the other side."""
    shortfall: NDArray[np.int64]
    """For each, the kind of evidence in which it falls short most, an index of `EVIDENCE`."""
    traits: Traits
    """What could tell the sides apart besides how they act."""
    seeds: int
    """How many seeds there are, in the pile and outside."""
    from_seeds: bool
    """Whether it began with the seeds; otherwise with what the rounds found."""
    apart: float
    """How far kept and dropped lie apart in likeness to the seeds alone, before any growing, in
    standard deviations."""
    divided: float
    """How divided the votes are about the pile, those that began without a seed included: mean
    distance of belief from yes or no."""
    taught: bool = False
    """Whether marks of both kinds taught what evidence is worth here."""
    ways_agree: float = 0.0
    """Share of labels on which other ways to cut agree, the smallest; 0 where there was one way."""
    dropped_closer: int = 0
    """How many trajectories were dropped only when what is kept was looked at alone."""
    another: float = 0.0
    """How surely part of what is kept gains by an actor of its own, in standard errors; 0 where
    nothing points to two, or nobody looked."""


def form_opinion(
    pile: Pile, key: Key, settings: OpinionSettings, found: Mask | None = None
) -> Opinion | None:
    """Look at a pile; None where it is too small to have a structure.

    The bench remembers the looks, so that whoever weighs a result need not look again.

    Args:
        pile: Mixed trajectories, seeds, and what is known to be bad.
        key: Names all randomness.
        settings: How to look.
        found: What somebody else took for the expert's. If given, positives grow from there and
            not from the seeds, and the question is whether evidence confirms it.
    """
    if len(pile.mixed) < SMALLEST:
        return None
    key = key.at("second opinion")
    with threads(1):
        looks = pile.bench.memory.get("looks")
        if not isinstance(looks, _Looks):
            looks = pile.bench.memory["looks"] = _look_at(pile, key, settings)
        return looks.opinion if found is None else _confirm(looks, pile, found, key, settings)


@dataclass(frozen=True, slots=True, eq=False)
class _Looks:
    """All looks at a pile, and what follows from its seeds."""

    looked: NDArray[np.int64]
    rows: Rows
    views: list[View]
    seeds: Tensor
    bad: Tensor
    like: Tensor
    opinion: Opinion


def _look_at(pile: Pile, key: Key, settings: OpinionSettings) -> _Looks:
    device = pick_device(pile.bench.device)
    marked = pile.known | pile.known_bad
    looked = _choose(len(pile.mixed), marked, settings.trajectories, key)
    count, strangers = len(looked), _strangers(pile)
    rows = rows_of(pile.mixed[looked], strangers, settings, device)
    known = np.concatenate([np.flatnonzero(pile.known[looked]), np.arange(count, rows.count)])
    avoid = np.zeros(rows.count, dtype=np.bool_)
    avoid[:count] = pile.known_bad[looked]
    views = open_views(rows, settings, key, pile.bench.map)
    seeds, bad = torch.from_numpy(known).to(device), torch.from_numpy(avoid).to(device)
    best = best_split(views, seeds, bad, settings.rounds, key, pile.bench)
    lonely = seeds[best.split.untaught[:, seeds].sum(0) == 0]
    fit = seeds
    # Where bad ones were marked too, an odd good one is what the marks have to teach.
    if 0 < len(lonely) <= len(seeds) - 2 and not best.split.taught:
        fit, key = seeds[~torch.isin(seeds, lonely)], key.at("again")
        best = best_split(views, fit, bad, settings.rounds, key, pile.bench)
    best = look_closer(best, pile.mixed[looked], strangers, fit, settings, key, pile.bench)
    divided = divided_without_seeds(views, best, fit, bad, key, pile.bench)
    held_out, like = hold_out(views, fit), likeness(views, fit)
    opinion = _opinion(best.split, like, held_out, seeds, lonely, looked, rows, pile)
    opinion = replace(
        opinion,
        ways_agree=best.agree,
        divided=divided,
        dropped_closer=best.dropped_closer,
        another=best.another,
    )
    return _Looks(looked, rows, views, seeds, bad, like, opinion)


def _confirm(
    looks: _Looks, pile: Pile, found: Mask, key: Key, settings: OpinionSettings
) -> Opinion:
    """What follows from positives that somebody else found; seeds are among them."""
    positives = torch.zeros_like(looks.bad)
    positives[: len(looks.looked)] = torch.from_numpy(found[looks.looked]).to(positives.device)
    positives[looks.seeds] = True
    begin = torch.nonzero(positives & ~looks.bad).flatten()
    split = split_pile(looks.views, begin, looks.bad, settings.rounds, key.at("confirm"))
    lonely = looks.seeds[split.untaught[:, looks.seeds].sum(0) == 0]
    known, held_out = looks.seeds, looks.opinion.held_out
    opinion = _opinion(split, looks.like, held_out, known, lonely, looks.looked, looks.rows, pile)
    return replace(opinion, from_seeds=False)


def _opinion(
    split: Split,
    like: Tensor,
    held_out: HeldOut,
    seeds: Tensor,
    lonely: Tensor,
    looked: NDArray[np.int64],
    rows: Rows,
    pile: Pile,
) -> Opinion:
    count = len(looked)
    kept, share = split.belief > 0.5, split.votes.float().mean(0)
    halves = [half.float().mean(0) > 0.5 for half in split.votes[:, :count].chunk(2)]
    own = lonely[lonely < count]
    return Opinion(
        looked=looked,
        kept=kept[:count].cpu().numpy(),
        belief=split.belief[:count].double().cpu().numpy(),
        doubt=torch.minimum(share, 1 - share)[:count].double().cpu().numpy(),
        repeated=float((halves[0] == halves[-1]).float().mean()),
        support=split.support,
        seeds_found=float(split.found(seeds).double().mean()),
        held_out=held_out,
        lonely_seeds=looked[own.cpu().numpy()],
        shortfall=split.shortfall[:count].cpu().numpy(),
        traits=traits_of(rows, pile.mixed.lengths[looked]),
        seeds=len(seeds),
        from_seeds=True,
        apart=lie_apart(like[:count], kept[:count]),
        divided=how_divided(split.belief),
        taught=split.taught,
    )


def _strangers(pile: Pile) -> TrajectorySet | None:
    """Seeds that are no part of the pile."""
    outside = np.flatnonzero(locate(pile.mixed, pile.seed_positives) < 0)
    return pile.seed_positives[outside] if len(outside) else None


def _choose(count: int, marked: Mask, most: int, key: Key) -> NDArray[np.int64]:
    if count <= most:
        return np.arange(count, dtype=np.int64)
    others = np.flatnonzero(~marked)
    room = max(1, most - int(marked.sum()))
    drawn = key.at("choose").rng().choice(others, min(room, len(others)), replace=False)
    return np.sort(np.concatenate([np.flatnonzero(marked), drawn])).astype(np.int64)
