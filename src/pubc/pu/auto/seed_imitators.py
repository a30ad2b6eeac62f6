"""What the seeds alone say of a pile, before any round.

Imitators of the seeds rank the trajectories; where no valley in that ranking is clear, several
splits of it compete by how well they explain seeds that were held out. A trajectory can fit
the seeds' imitators because its task is an easy one; the contrast with imitators of as many
others takes that away.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pubc.pu.auto.imitator_training import Workshop, free_of, over_free
from pubc.pu.auto.starts import Split
from pubc.pu.judge import Training

__all__ = ["contest", "contrast", "seed_scores"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

BLOCKS = 3
"""Parts in time of a lone seed, each judged by the imitator of the others."""
FOLDS = 5
"""Groups of seeds, each judged by the imitators of the others."""
CROWDS = 6
"""Imitators of others with which those of the seeds are contrasted."""


def seed_scores(workshop: Workshop) -> tuple[Floats, list[Training]]:
    """How well imitators of the seeds predict each trajectory; a seed only by others."""
    view, seeds = workshop.view, workshop.view.seeds
    if len(seeds) == 1:
        return _lone_seed(workshop, int(seeds[0]))
    folds = min(FOLDS, len(seeds))
    fold = np.empty(len(seeds), np.int64)
    order = workshop.task.key.at("folds").rng().permutation(len(seeds))
    fold[order] = np.arange(len(seeds)) % folds
    groups = [seeds[fold != j] for j in range(folds)]
    pools = [workshop.pool(group) for group in groups]
    found, training = workshop.residuals(pools, np.arange(view.count), "seeds", [1] * folds)
    mean = found.mean(axis=2, dtype=np.float64)
    return -over_free(mean, free_of(groups, view.count)), training


def contrast(workshop: Workshop, scores: Floats) -> tuple[Floats, list[Training]]:
    """How much better imitators of the seeds predict than imitators of as many others do.

    Args:
        workshop: Where imitators are trained.
        scores: What `seed_scores` found.
    """
    view, rng = workshop.view, workshop.task.key.at("contrast").rng()
    others = np.flatnonzero(~view.is_seed)
    # As many as an imitator of the seeds has seen: else the richer side wins for its size.
    shown = max(1, len(view.seeds) - -(-len(view.seeds) // FOLDS))
    size = min(shown, max(1, len(others) // 2))
    groups = [rng.permutation(others)[:size] for _ in range(CROWDS)]
    pools = [workshop.pool(group) for group in groups]
    everyone, sides = np.arange(view.count), [0] * CROWDS
    found, training = workshop.residuals(pools, everyone, "contrast", sides)
    mean = found.mean(axis=2, dtype=np.float64)
    return scores + over_free(mean, free_of(groups, view.count)), training


def contest(
    workshop: Workshop, splits: Sequence[Split], *, told: bool
) -> tuple[Floats, list[Training]]:
    """Mean log ratio of held-out seeds under every split: largest for the right one.

    Args:
        workshop: Where imitators are trained.
        splits: Those that compete.
        told: Whether one network imitates both sides and is told which, or one each.
    """
    seeds, rng = workshop.view.seeds, workshop.task.key.at("contest").rng()
    halves = [seeds] if len(seeds) == 1 else [seeds[::2], seeds[1::2]]
    pairs: list[tuple[Integers, Integers]] = []
    for split in splits:
        positive, rest = np.flatnonzero(split.positive), np.flatnonzero(split.rest)
        # The same size for both sides: else the poorer side loses for its size alone.
        size = min(64, max(4, min(len(positive), len(rest))))
        ours = [rng.permutation(np.setdiff1d(positive, half))[:size] for half in halves]
        theirs = rng.permutation(rest)[:size]
        pairs += [(group if len(group) else positive, theirs) for group in ours]
    if told:
        found, training = workshop.ratios(pairs, seeds, "contest")
        ratio = found.mean(axis=2, dtype=np.float64)
    else:
        ratio, training = _apart(workshop, pairs, len(halves))
    ratio = ratio.reshape(len(splits), len(halves), len(seeds))
    worth = [np.where(np.isin(seeds, half), ratio[:, k], 0) for k, half in enumerate(halves)]
    return np.sum(worth, axis=0).mean(axis=1), training


def _apart(
    workshop: Workshop, pairs: Sequence[tuple[Integers, Integers]], each: int
) -> tuple[Floats, list[Training]]:
    """Log ratio of every seed under each pair, by networks that see one side only.

    So many pairs in a row have the same rest, which is imitated once.
    """
    groups: list[Integers] = []
    for first in range(0, len(pairs), each):
        groups += [ours for ours, _ in pairs[first : first + each]]
        groups.append(pairs[first][1])
    pools = [workshop.pool(group) for group in groups]
    sides = [0] * len(pools)
    found, training = workshop.residuals(pools, workshop.view.seeds, "contest", sides)
    mean = found.mean(axis=2, dtype=np.float64).reshape(-1, each + 1, found.shape[1])
    ratio = mean[:, each:] - mean[:, :each]
    return ratio.reshape(len(pairs), -1), training


def _lone_seed(workshop: Workshop, seed: int) -> tuple[Floats, list[Training]]:
    """One seed: three parts in time, each judged by the imitators of the other two."""
    view = workshop.view
    steps = view.pick(seed, workshop.train_steps)
    length = int(view.lengths[seed])

    def block(of: Integers) -> Integers:
        return np.minimum(of * BLOCKS // length, BLOCKS - 1)

    parts = [steps[block(steps) != j] for j in range(BLOCKS)]
    parts = [part if len(part) else steps for part in parts]
    pools = [lambda part=part: view.take(seed, part) for part in parts]
    everyone, sides = np.arange(view.count), [1] * BLOCKS
    found, training = workshop.residuals(pools, everyone, "seeds", sides)
    scores = -found.mean(axis=(0, 2), dtype=np.float64)
    own = block(view.chosen[seed])
    scores[seed] = -found[own, seed, np.arange(view.steps)].mean(dtype=np.float64)
    return scores, training
