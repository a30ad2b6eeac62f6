"""One set out of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pubc.errors import DataError
from pubc.trajectory.columns import Columns
from pubc.trajectory.sets import TrajectorySet

__all__ = ["concatenate"]


def concatenate(sets: Sequence[TrajectorySet]) -> TrajectorySet:
    """Join sets in memory; dtypes and dimensions must agree, ids are kept.

    Rewards, sources and final observations survive where every set has them; extras where
    every set has the same ones.
    """
    flats = [part.flat() for part in sets]
    shapes = {(f.observations.shape[1], f.actions.shape[1]) for f in flats}
    if len(shapes) != 1:
        raise DataError(
            f"Cannot join sets of different dimensions: {sorted(shapes)} (observations, actions).",
            code="bad_shape",
        )
    names = set.intersection(*(set(f.extras) for f in flats))
    rewards = [f.rewards for f in flats if f.rewards is not None]
    sources = [part.sources for part in sets if part.sources is not None]
    finals = [p.final_observations for p in sets if p.final_observations is not None]
    has = [part.has_final for part in sets if part.has_final is not None]
    whole = len(sets)
    return TrajectorySet.from_flat(
        Columns(
            observations=np.concatenate([f.observations for f in flats]),
            actions=np.concatenate([f.actions for f in flats]),
            rewards=np.concatenate(rewards) if len(rewards) == whole else None,
            terminals=np.concatenate([f.terminals for f in flats]),
            timeouts=np.concatenate([f.timeouts for f in flats]),
            extras={n: np.concatenate([f.extras[n] for f in flats]) for n in sorted(names)},
        ),
        np.concatenate([part.lengths for part in sets]),
        ids=np.concatenate([part.ids for part in sets]),
        sources=np.concatenate(sources) if len(sources) == whole else None,
        final_observations=np.concatenate(finals) if len(finals) == whole else None,
        has_final=np.concatenate(has) if len(has) == whole else None,
    )
