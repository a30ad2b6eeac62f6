"""A closer look at what is kept, as a pile of its own.

Beside noise and clumsy others, somebody who acts almost like the expert is taken for it: spreads
are those of the whole pile, and slight differences are small shares of them. Looked at alone, with
networks and spreads of its own, what is kept may fall into two that lie far apart however they are
cut. Then only the part with the seeds stays. Where the parts start in different places or differ
in length all of it stays: they may be two tasks of one expert, or two outcomes.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pubc.pu.judge import Bench
from pubc.pu.second_opinion.controls import TOLD_BY_START, check_controls, traits_of
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings, open_views, rows_of
from pubc.pu.second_opinion.splits.best_split import Best, best_split
from pubc.pu.second_opinion.splits.held_out import FEWEST_SEEDS
from pubc.pu.second_opinion.splits.pile_split import Split
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

__all__ = ["look_closer"]

FEWEST = 32
"""Fewer trajectories than this fall into two by chance."""
FAR = 3.6
"""Standard deviations between the two parts from which they are two."""
AGREE = 0.8
"""Share of labels on which every way to cut must agree."""
SEEDS_FOUND = 0.75
"""Share of the seeds that one part must hold."""


def look_closer(
    best: Best,
    mixed: TrajectorySet,
    strangers: TrajectorySet | None,
    seeds: Tensor,
    settings: OpinionSettings,
    key: Key,
    bench: Bench,
) -> Best:
    """Look once more at what a split keeps; the split without what does not belong there.

    Args:
        best: The split, of the trajectories and then of the strangers.
        mixed: The trajectories.
        strangers: Seeds that are none of them.
        seeds: Positions of all seeds.
        settings: How to look.
        key: Names all randomness.
        bench: Where networks train at the same time.
    """
    split, device = best.split, seeds.device
    places = torch.nonzero(split.belief > 0.5).flatten()
    own = places[places < len(mixed)]
    if not FEWEST <= len(own) < len(mixed) or split.taught:
        return best
    outside = torch.arange(len(mixed), len(split.belief), device=device)
    places = torch.cat([own, outside])
    inside = torch.nonzero(torch.isin(places, seeds)).flatten()
    if len(inside) < FEWEST_SEEDS:
        return best
    kept, key = mixed[own.cpu().numpy()], key.at("closer")
    rows = rows_of(kept, strangers, settings, device)
    views = open_views(rows, settings, key, bench.map)
    nobody = torch.zeros(rows.count, dtype=torch.bool, device=device)
    closer = best_split(views, inside, nobody, settings.rounds, key, bench)
    found = float(closer.split.found(inside).double().mean())
    if closer.split.support < FAR or closer.agree < AGREE or found < SEEDS_FOUND:
        return best
    part = (closer.split.belief > 0.5)[: len(own)].cpu().numpy()
    controls = check_controls(traits_of(rows, kept.lengths), part)
    if max(controls.start, controls.length) >= TOLD_BY_START:
        return best
    return _within(best, closer, places, dropped=int((~part).sum()))


def _within(best: Best, closer: Best, places: Tensor, *, dropped: int) -> Best:
    """A split with another one of some of its trajectories put in its place."""
    outer, inner = best.split, closer.split
    votes, untaught = outer.votes.clone(), outer.untaught.clone()
    belief, shortfall = outer.belief.clone(), outer.shortfall.clone()
    votes[:, places], untaught[:, places] = inner.votes, inner.untaught
    belief[places], shortfall[places] = inner.belief, inner.shortfall
    support = min(outer.support, inner.support)
    split = Split(votes, belief, shortfall, support, outer.taught, untaught)
    return Best(split, best.way, min(best.agree, closer.agree), dropped)
