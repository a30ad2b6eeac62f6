"""Seeds at the level of steps: a column of the dataset says which steps are the expert's.

LeRobot marks the corrections of a person in an otherwise autonomous recording as `intervention`.
Each marked stretch is a seed of its own for the filter of trajectories, and every marked step
is one for the evidence of steps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError, UnknownNameError
from pubc.trajectory import TrajectorySet

__all__ = ["marked_steps", "marked_stretches"]

Mask = NDArray[np.bool_]
SHORTEST = 5
"""Steps of a stretch that is a seed for the filter of trajectories."""


def marked_steps(mixed: TrajectorySet, name: str) -> Mask:
    """Which steps a column marks, shape (steps,).

    Raises:
        UnknownNameError: The dataset has no such column with one value per step.
        DataError: Its values are not marks, or it marks nothing or everything.
    """
    extras = mixed.columns.extras
    if name not in extras:
        raise UnknownNameError("column with one value per step", name, sorted(extras))
    column = np.asarray(extras[name])
    values = column.reshape(len(column), -1)
    if values.shape[1] != 1 or values.dtype.kind not in "biuf" or not _is_mark(values):
        raise DataError(
            f"--seed-steps-column {name}: expected true or false, or 0 or 1, for every step. "
            f"Found {column.dtype} of shape {column.shape}.",
            code="bad_dtype",
            field=name,
        )
    marked = values[:, 0].astype(np.bool_)[mixed.rows()]
    if marked.all() or not marked.any():
        raise DataError(
            f"--seed-steps-column {name}: it marks {'every' if marked.all() else 'no'} step, so it "
            "says nothing about which are the expert's.",
            code="bad_values",
            field=name,
        )
    return np.asarray(marked)


def _is_mark(values: NDArray[np.generic]) -> bool:
    return values.dtype == np.bool_ or bool(np.isin(values, (0, 1)).all())


def marked_stretches(mixed: TrajectorySet, marked: Mask, name: str) -> TrajectorySet:
    """The marked stretches as trajectories over the same columns.

    Raises:
        DataError: None is long enough to show what the expert does.
    """
    owner = np.repeat(np.arange(len(mixed)), mixed.lengths)
    begins = marked & ~(np.append(False, marked[:-1]) & np.append(False, owner[1:] == owner[:-1]))
    first = np.flatnonzero(begins)
    piece = np.cumsum(begins)[marked] - 1
    lengths = np.bincount(piece, minlength=len(first))
    long = lengths >= SHORTEST
    if not long.any():
        raise DataError(
            f"--seed-steps-column {name}: the longest marked stretch has {lengths.max()} steps. "
            f"Seeds need {SHORTEST} steps in a row.",
            code="too_short",
            field=name,
        )
    first, lengths = first[long], lengths[long].astype(np.int64)
    step = first - mixed.offsets[owner[first]]
    ids = [
        f"{mixed.ids[at]}#{a}-{a + n}"
        for at, a, n in zip(owner[first], step.tolist(), lengths.tolist(), strict=True)
    ]
    return TrajectorySet(
        mixed.columns, mixed.rows()[first], lengths, np.asarray(ids, dtype=np.str_)
    )
