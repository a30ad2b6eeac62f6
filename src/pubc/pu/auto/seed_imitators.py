"""What the seeds alone say of a pile, before any round.

Imitators of the seeds rank the trajectories, and every seed is judged by imitators of others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pubc.pu.auto.imitator_training import TRAIN_STEPS, Workshop, free_of, over_free
from pubc.pu.judge import Training

__all__ = ["seed_scores"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

BLOCKS = 3
"""Parts in time of a lone seed, each judged by the imitator of the others."""
FOLDS = 5
"""Groups of seeds, each judged by the imitators of the others."""


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


def _lone_seed(workshop: Workshop, seed: int) -> tuple[Floats, list[Training]]:
    """One seed: three parts in time, each judged by the imitators of the other two."""
    view = workshop.view
    steps = view.pick(seed, TRAIN_STEPS)
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
