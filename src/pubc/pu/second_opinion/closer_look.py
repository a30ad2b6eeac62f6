"""A closer look at what is kept, as a pile of its own: is it one actor?

Beside noise and clumsy others, somebody who acts almost like the expert is taken for it: spreads
are those of the whole pile, and slight differences are small shares of them. So what is kept is
looked at alone, with networks and spreads of its own. Where two actors explain it better than one,
or evidence falls into two groups that lie far apart however they are cut, only the part with the
seeds stays, and is looked at again. Where the parts start in different places or differ in length
all of it stays: they may be two tasks of one expert, or two outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pubc.pu.judge import Bench
from pubc.pu.second_opinion.controls import TOLD_BY_START, Traits, check_controls, traits_of
from pubc.pu.second_opinion.looks.evidence import View
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings, open_views, rows_of
from pubc.pu.second_opinion.splits.best_split import Best, best_split
from pubc.pu.second_opinion.splits.held_out import FEWEST_SEEDS
from pubc.pu.second_opinion.splits.two_actors import Parts, part_in_two
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

__all__ = ["look_closer"]

FEWEST = 32
"""Fewer trajectories than this fall into two by chance."""
SURE = 5.0
"""Standard errors that the other part must gain by an actor of its own."""
LOOKS_AGREE = 0.9
"""Share of trajectories on which the looks must agree who acted."""
FAR = 3.6
"""Standard deviations between two groups of evidence from which they are two."""
WAYS_AGREE = 0.8
"""Share of labels on which every way to cut them must agree."""
SEEDS_FOUND = 0.75
"""Share of the seeds that one part must hold, each judged by the others."""
TOLD = 0.7
"""From here on start or length tell two actors apart, as they do where nobody else acted."""
MOST = 3
"""So often what is kept is looked at; each time somebody else may be found."""


@dataclass(frozen=True, slots=True, eq=False)
class _Another:
    """Who does not belong to what is kept."""

    theirs: Tensor
    """Which trajectories of it, shape (trajectories,)."""
    votes: Tensor
    """Votes for each of it, shape (votes, trajectories)."""
    support: float
    """How far the parts lie apart, in standard deviations."""
    agree: float
    """Share of labels on which all ways to cut agree."""


def look_closer(
    best: Best,
    mixed: TrajectorySet,
    strangers: TrajectorySet | None,
    seeds: Tensor,
    settings: OpinionSettings,
    key: Key,
    bench: Bench,
) -> Best:
    """Look at what a split keeps; the split without what does not belong there.

    Args:
        best: The split, of the trajectories and then of the strangers.
        mixed: The trajectories.
        strangers: Seeds that are none of them.
        seeds: Positions of all seeds.
        settings: How to look.
        key: Names all randomness.
        bench: Where networks train at the same time.
    """
    for turn in range(MOST):
        own = torch.nonzero(best.split.belief[: len(mixed)] > 0.5).flatten()
        if not FEWEST <= len(own) < len(mixed) or best.split.taught:
            break
        outside = torch.arange(len(mixed), len(best.split.belief), device=seeds.device)
        places = torch.cat([own, outside])
        inside = torch.nonzero(torch.isin(places, seeds)).flatten()
        if len(inside) < FEWEST_SEEDS:
            break
        kept, place = mixed[own.cpu().numpy()], key.at("closer", turn)
        rows = rows_of(kept, strangers, settings, seeds.device)
        views = open_views(rows, settings, place, bench.map)
        traits = traits_of(rows, kept.lengths)
        parts = part_in_two(views, inside, bench)
        best = replace(best, another=_surely(parts, inside, traits))
        if parts is not None and best.another >= SURE:
            another: _Another | None = _another_actor(best, parts)
        else:
            another = _another_group(views, inside, traits, settings.rounds, place, bench)
        if another is None:
            break
        best = _without(best, another, places)
    return best


def _surely(parts: Parts | None, seeds: Tensor, traits: Traits) -> float:
    """How surely the other part gains; 0 where looks differ, seeds lie in both, or traits tell."""
    if parts is None or parts.agree < LOOKS_AGREE or _told_apart(traits, parts.ours) >= TOLD:
        return 0.0
    found = float((parts.odds.mean(0)[seeds] > 0).double().mean())
    return max(0.0, parts.gain) if found >= SEEDS_FOUND else 0.0


def _told_apart(traits: Traits, ours: Tensor) -> float:
    """How well start or length alone tell the parts, from 0.5 to 1."""
    controls = check_controls(traits, ours[: len(traits.lengths)].cpu().numpy())
    return max(controls.start, controls.length)


def _another_actor(best: Best, parts: Parts) -> _Another:
    """The part that somebody else explains better."""
    each = len(best.split.votes) // len(parts.odds)
    votes = (parts.odds > 0).repeat_interleave(each, 0)
    return _Another(~parts.ours, votes, best.split.support, best.agree)


def _another_group(
    views: list[View], seeds: Tensor, traits: Traits, rounds: int, key: Key, bench: Bench
) -> _Another | None:
    """A part whose evidence lies far away."""
    nobody = torch.zeros(views[0].rows.count, dtype=torch.bool, device=seeds.device)
    found = best_split(views, seeds, nobody, rounds, key, bench)
    split = found.split
    kept = float(split.found(seeds).double().mean())
    if split.support < FAR or found.agree < WAYS_AGREE or kept < SEEDS_FOUND:
        return None
    theirs = split.belief <= 0.5
    theirs[seeds] = False
    if not bool(theirs.any()) or _told_apart(traits, ~theirs) >= TOLD_BY_START:
        return None
    return _Another(theirs, split.votes, split.support, found.agree)


def _without(best: Best, another: _Another, places: Tensor) -> Best:
    """A split without those who do not belong there; their votes are those of the closer look."""
    split, theirs = best.split, places[another.theirs]
    cast = another.votes[:, another.theirs]
    votes, untaught, belief = split.votes.clone(), split.untaught.clone(), split.belief.clone()
    votes[:, theirs], untaught[:, theirs] = cast, cast
    belief[theirs] = cast.float().mean(0).clamp(max=0.5)
    return replace(
        best,
        split=replace(
            split,
            votes=votes,
            untaught=untaught,
            belief=belief,
            support=min(split.support, another.support),
        ),
        agree=min(best.agree, another.agree),
        dropped_closer=best.dropped_closer + len(theirs),
        another=0.0,
    )
