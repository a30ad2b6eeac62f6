"""A second opinion on a pile, from evidence of other kinds than the rounds use.

The rounds of `auto` compare imitators of two sides. This looks at the same pile twice, each time
with another network that is told who acts and other random features, grows the positives from the
seeds with care, and splits the pile by what separates it here. Where both opinions and both looks
agree, a result is worth believing; where they do not, the trajectories in question are
unsure, and the run says so.

`pile_split` has the growth and the cuts, `evidence` the numbers, `told_network` the network.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from pubc.pu.second_opinion.controls import Controls, check_controls
from pubc.pu.second_opinion.evidence import View, open_view
from pubc.pu.second_opinion.pile_split import split_pile, support_of
from pubc.pu.second_opinion.rows import Rows, look
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

__all__ = ["FEWEST_SEEDS", "SMALLEST", "Opinion", "OpinionSettings", "second_opinion"]

Mask = NDArray[np.bool_]
Floats = NDArray[np.float64]
Work = Callable[[Callable[[int], View], Sequence[int]], list[View]]

SMALLEST = 8
"""Fewer trajectories than this have no structure to look for."""
FEWEST_SEEDS = 3
"""Fewer seeds than this do not say how much their policy varies."""


@dataclass(frozen=True, slots=True)
class OpinionSettings:
    """How the second opinion looks at a pile."""

    looks: int = 2
    """Independent looks; each has a network and random features of its own."""
    trajectories: int = 500
    """At most so many trajectories are looked at, the seeds among them."""
    rows: int = 20_000
    """At most about so many steps, spread over the trajectories."""
    updates: int = 500
    """Most gradient steps of a network; small piles take fewer."""
    features: int = 128
    """Random features of each scale."""
    code: int = 8
    """Numbers in the code of an actor."""
    rounds: int = 6
    """Rounds of growing positives."""


@dataclass(frozen=True, slots=True, eq=False)
class Opinion:
    """What the second opinion says of the trajectories that it looked at."""

    looked: NDArray[np.int64]
    """Their positions in the pile."""
    kept: Mask
    """Which of them are the expert's."""
    doubt: Floats
    """How divided the looks are about each, from 0 to 0.5."""
    agreement: float
    """Share of labels on which the rounds agree with it."""
    repeated: float
    """Share of labels on which its looks agree with one another."""
    support: float
    """How far its two sides lie apart, in standard deviations."""
    rounds_support: float
    """The same for the two sides that the rounds found."""
    seeds_found: float
    """Share of the seeds that it keeps, each judged without itself."""
    lonely_seeds: NDArray[np.int64]
    """Seeds that every look puts on the other side."""
    shortfall: NDArray[np.int64]
    """For each, the kind of evidence in which it falls short most, an index of `EVIDENCE`."""
    controls: Controls
    """What else tells the two sides apart."""
    independent: bool
    """Whether it began with the seeds alone; with too few it begins with what the rounds found."""


def second_opinion(
    mixed: TrajectorySet,
    seeds: Mask,
    selected: Mask,
    key: Key,
    *,
    known_bad: Mask | None = None,
    device: torch.device | None = None,
    settings: OpinionSettings | None = None,
    work: Work | None = None,
) -> Opinion:
    """Form a second opinion.

    Args:
        mixed: The pile.
        seeds: Which of it are seeds.
        selected: What the rounds selected.
        key: Names all randomness.
        known_bad: Which of it are known not to be the expert's.
        device: Where to compute.
        settings: How to look.
        work: Looks several times at once; one look after another if omitted.
    """
    settings = settings or OpinionSettings()
    place = device or torch.device("cpu")
    key = key.at("second opinion")
    looked = _choose(len(mixed), seeds, settings.trajectories, key)
    some = mixed[looked]
    steps = int(np.clip(settings.rows // len(looked), 40, 240))
    rows = look(some, steps, place)
    known = torch.from_numpy(np.flatnonzero(seeds[looked])).to(place)
    bad = torch.zeros(len(looked), dtype=torch.bool, device=place)
    if known_bad is not None:
        bad = torch.from_numpy(known_bad[looked]).to(place)
    views = _look(rows, settings, key, work)
    theirs = torch.from_numpy(selected[looked]).to(place)
    # One or two seeds do not show how much their policy varies: look at the rounds' positives.
    independent = len(known) >= FEWEST_SEEDS or int(theirs.sum()) < FEWEST_SEEDS
    first = known if independent else torch.nonzero(theirs & ~bad).flatten()
    votes, shortfall, support = split_pile(views, first, bad, settings.rounds, key)
    share = votes.float().mean(0)
    kept = share > 0.5
    halves = [half.float().mean(0) > 0.5 for half in votes.chunk(settings.looks)]
    lonely = known[(share[known] == 0)]
    return Opinion(
        looked=looked,
        kept=kept.cpu().numpy(),
        doubt=torch.minimum(share, 1 - share).double().cpu().numpy(),
        agreement=float((kept == theirs).float().mean()),
        repeated=float((halves[0] == halves[-1]).float().mean()),
        support=support,
        rounds_support=support_of(views, known, theirs, key),
        seeds_found=float(kept[known].float().mean()),
        lonely_seeds=looked[lonely.cpu().numpy()],
        shortfall=shortfall.cpu().numpy(),
        controls=check_controls(some, rows, theirs.cpu().numpy()),
        independent=independent,
    )


def _choose(count: int, seeds: Mask, most: int, key: Key) -> NDArray[np.int64]:
    if count <= most:
        return np.arange(count, dtype=np.int64)
    others = np.flatnonzero(~seeds)
    room = max(1, most - int(seeds.sum()))
    drawn = key.at("choose").rng().choice(others, min(room, len(others)), replace=False)
    return np.sort(np.concatenate([np.flatnonzero(seeds), drawn])).astype(np.int64)


def _look(rows: Rows, settings: OpinionSettings, key: Key, work: Work | None) -> list[View]:
    """Every look at the pile; small piles take fewer gradient steps."""
    updates = int(np.clip(len(rows.states) // 40, min(150, settings.updates), settings.updates))

    def look_at(number: int) -> View:
        return open_view(
            rows,
            features=settings.features,
            size=settings.code,
            updates=updates,
            rng=key.at("look", number).rng(),
        )

    numbers = range(settings.looks)
    return work(look_at, numbers) if work else [look_at(number) for number in numbers]
