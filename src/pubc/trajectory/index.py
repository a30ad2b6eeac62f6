"""Where trajectories lie in their columns: arithmetic on first rows and lengths.

A row counts in the columns, which may hold other trajectories too; a position counts in the
trajectories of the set alone, one after another.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pubc.errors import DataError, UsageError
from pubc.trajectory.arrays import Array, Integers

__all__ = [
    "check_index",
    "check_selection",
    "lie_together",
    "offsets_of",
    "row_blocks",
    "rows_at",
]


def check_index(starts: Integers, lengths: Integers, rows: int) -> None:
    """See that every trajectory has a step and lies inside the columns.

    Raises:
        DataError: One does not.
    """
    if len(starts) and (lengths.min() < 1 or starts.min() < 0 or (starts + lengths).max() > rows):
        raise DataError(
            f"The index points outside the {rows:,} rows of the columns, or a "
            "trajectory has no step.",
            code="bad_index",
            field="starts",
        )


def check_selection(key: Array, count: int) -> Array:
    """A mask or positions that can select among so many trajectories.

    Raises:
        UsageError: It is neither.
    """
    if key.size == 0 and key.dtype != np.bool_:
        return np.zeros(0, dtype=np.int64)
    if key.dtype == np.bool_ and key.shape != (count,):
        raise UsageError(
            f"A mask of shape {key.shape} for a set of {count:,} trajectories; it "
            "needs one entry per trajectory."
        )
    if key.ndim != 1 or key.dtype.kind not in "biu":
        raise UsageError(
            "Select trajectories with integers, a slice, or one list of positions or "
            f"booleans. Got {key.dtype}, shape {key.shape}."
        )
    return key


def offsets_of(lengths: Integers) -> Integers:
    """The position at which each trajectory starts, then the end; (trajectories + 1,)."""
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)


def lie_together(starts: Integers, lengths: Integers) -> bool:
    """Whether each trajectory starts where the one before it ends."""
    ends = starts + lengths
    return bool(np.array_equal(ends[:-1], starts[1:]))


def rows_at(starts: Integers, offsets: Integers, positions: Integers) -> Integers:
    """The rows of the steps at some positions."""
    owner = np.searchsorted(offsets, positions, side="right") - 1
    return np.asarray(starts[owner] + positions - offsets[owner], dtype=np.int64)


def row_blocks(starts: Integers, lengths: Integers, steps: int) -> Iterator[slice | Integers]:
    """Rows of all steps, so many at a time: slices where they lie together."""
    if steps < 1:
        raise UsageError(f"A block needs at least one step. Got {steps}.")
    whole = int(lengths.sum())
    if lie_together(starts, lengths):
        first = int(starts[0]) if len(starts) else 0
        for start in range(first, first + whole, steps):
            yield slice(start, min(start + steps, first + whole))
        return
    offsets = offsets_of(lengths)
    for start in range(0, whole, steps):
        yield rows_at(starts, offsets, np.arange(start, min(start + steps, whole)))
