"""A set of trajectories: an index over shared columns, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from pubc.errors import DataError
from pubc.trajectory.arrays import Array, Flags, Floats, Integers, Words, freeze, give_back
from pubc.trajectory.columns import Columns, Trajectory
from pubc.trajectory.index import (
    check_index,
    check_selection,
    lie_together,
    offsets_of,
    row_blocks,
    rows_at,
)
from pubc.trajectory.problem import Problem

__all__ = ["BLOCK", "TrajectorySet"]

BLOCK = 16_384
"""Steps per streamed block: some megabytes, large enough to keep a disk busy."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TrajectorySet:
    """Trajectories over shared columns.

    Build one with `TrajectorySet.from_flat`; slice it with integers, slices, boolean masks
    or index arrays. The set is frozen and its arrays are read-only views.
    """

    columns: Columns
    """The columns the index points into; may hold rows of other trajectories too."""
    starts: Integers
    """First row of each trajectory, shape (trajectories,)."""
    lengths: Integers
    """Steps of each trajectory, shape (trajectories,)."""
    ids: Words
    """What the source calls each trajectory, shape (trajectories,)."""
    sources: Words | None = None
    """Which policy acted, shape (trajectories,); for evaluation only."""
    final_observations: Array | None = None
    """The observation after the last action, shape (trajectories, dimensions)."""
    has_final: Flags | None = None
    """Where `final_observations` holds one, shape (trajectories,)."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Free facts about the set, JSON values only."""
    problems: tuple[Problem, ...] = ()
    """What the reader repaired or warned about."""

    def __post_init__(self) -> None:
        count = len(self.starts)
        for name in ("lengths", "ids", "sources", "final_observations", "has_final"):
            value = getattr(self, name)
            if value is not None and len(value) != count:
                raise DataError(
                    f"The set has {count:,} trajectories but {name} has {len(value):,} entries.",
                    code="unequal_lengths",
                    field=name,
                )
        if (self.final_observations is None) != (self.has_final is None):
            raise DataError(
                "final_observations and has_final come together or not at all.",
                code="bad_shape",
                field="has_final",
            )
        self._check_final()
        check_index(self.starts, self.lengths, len(self.columns.observations))
        for name in ("starts", "lengths", "ids", "sources", "final_observations", "has_final"):
            freeze(self, name)
        object.__setattr__(self, "metadata", MappingProxyType(dict(self.metadata)))

    def _check_final(self) -> None:
        final = self.final_observations
        wanted = self.columns.observations.shape[1:]
        if final is not None and final.shape[1:] != wanted:
            raise DataError(
                f"observations have shape {wanted} per step but final_observations have "
                f"{final.shape[1:]}.",
                code="bad_shape",
                field="final_observations",
            )

    @classmethod
    def from_flat(
        cls,
        columns: Columns,
        lengths: ArrayLike,
        *,
        ids: Sequence[str] | Words | None = None,
        **rest: Any,
    ) -> TrajectorySet:
        """Build a set from columns that hold its trajectories one after another.

        Args:
            columns: One row per step, trajectories in order.
            lengths: Steps of each trajectory; their sum must be the number of rows.
            ids: What to call each trajectory; its position where omitted.
            rest: Further fields of the set.
        """
        sizes = np.asarray(lengths, dtype=np.int64).reshape(-1)
        rows = len(columns.observations)
        if sizes.sum() != rows:
            raise DataError(
                f"The lengths of {sizes.size:,} trajectories sum to {sizes.sum():,} steps "
                f"but the columns have {rows:,} rows.",
                code="unequal_lengths",
                field="lengths",
            )
        starts = np.cumsum(sizes) - sizes
        names = [str(i) for i in range(sizes.size)] if ids is None else ids
        return cls(columns, starts, sizes, np.asarray(names, dtype=np.str_), **rest)

    def __len__(self) -> int:
        return len(self.starts)

    def __repr__(self) -> str:
        dims = f"{self.observation_size} -> {self.action_size}"
        return f"TrajectorySet({len(self):,} trajectories, {self.steps:,} steps, {dims})"

    @property
    def steps(self) -> int:
        """Steps of all trajectories together."""
        return int(self.lengths.sum())

    @property
    def observation_size(self) -> int:
        """Dimensions of one observation."""
        return int(self.columns.observations.shape[1])

    @property
    def action_size(self) -> int:
        """Dimensions of one action."""
        return int(self.columns.actions.shape[1])

    @property
    def offsets(self) -> Integers:
        """Where each trajectory starts in `flat()`, then the end; (trajectories + 1,)."""
        return offsets_of(self.lengths)

    @property
    def is_contiguous(self) -> bool:
        """Whether the trajectories lie one after another in the columns."""
        return lie_together(self.starts, self.lengths)

    def rows(self) -> Integers:
        """The column row of every step in order, shape (steps,)."""
        shift = np.repeat(self.starts - self.offsets[:-1], self.lengths)
        return np.asarray(np.arange(self.steps) + shift, dtype=np.int64)

    def flat(self) -> Columns:
        """The columns of exactly these trajectories: a view where possible, else a copy."""
        if not len(self):
            return self.columns.take(slice(0, 0))
        if self.is_contiguous:
            first = int(self.starts[0])
            return self.columns.take(slice(first, first + self.steps))
        return self.columns.take(self.rows())

    def blocks(self, steps: int = BLOCK) -> Iterator[Columns]:
        """Stream the steps in order, at most `steps` of them at a time.

        The memory of a memory-mapped block is given back when the next one is asked for, so
        streaming a set larger than memory stays small.
        """
        for rows in row_blocks(self.starts, self.lengths, steps):
            yield self.columns.take(rows)
            for _, column in self.columns.named():
                give_back(column, rows)

    def stream(self, column: Array, steps: int = BLOCK) -> Iterator[Array]:
        """Like `blocks`, for one array with the rows of `columns`."""
        for rows in row_blocks(self.starts, self.lengths, steps):
            yield column[rows]
            give_back(column, rows)

    def release(self) -> None:
        """Give back the memory of mapped columns; they are read again when next used."""
        for _, column in self.columns.named():
            give_back(column, slice(0, len(column)))

    def take_steps(self, positions: Integers) -> Columns:
        """The steps at the given positions of `flat()`, without building all of it."""
        positions = np.asarray(positions, dtype=np.int64)
        if positions.size and not 0 <= positions.min() <= positions.max() < self.steps:
            raise IndexError(
                f"Positions {positions.min():,} to {positions.max():,} of a set of "
                f"{self.steps:,} steps."
            )
        return self.columns.take(rows_at(self.starts, self.offsets, positions))

    def total_rewards(self) -> Floats:
        """Return of each trajectory, shape (trajectories,); NaN where unknown."""
        rewards = self.columns.rewards
        totals = np.full(len(self), np.nan)
        if rewards is None:
            return totals
        offsets = self.offsets
        first = 0
        while first < len(self):
            # Whole trajectories at a time, so that a sum never depends on the block size.
            last = int(np.searchsorted(offsets, offsets[first] + BLOCK, side="right")) - 1
            last = max(last, first + 1)
            positions = np.arange(offsets[first], offsets[last])
            rows = rows_at(self.starts, offsets, positions)
            values = np.asarray(rewards[rows], dtype=np.float64)
            with np.errstate(over="ignore", invalid="ignore"):  # 1e308 twice is infinite
                totals[first:last] = np.add.reduceat(values, offsets[first:last] - offsets[first])
            give_back(rewards, rows)
            first = last
        return totals

    def ends(self) -> Words:
        """How each trajectory ends: `terminal`, `timeout` or `unmarked`."""
        last = self.starts + self.lengths - 1
        terminal, timeout = self.columns.terminals[last], self.columns.timeouts[last]
        words = np.where(terminal, "terminal", np.where(timeout, "timeout", "unmarked"))
        return np.asarray(words, dtype=np.str_)

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> Trajectory: ...
    @overload
    def __getitem__(self, key: slice | Sequence[int] | Array) -> TrajectorySet: ...
    def __getitem__(
        self, key: int | np.integer[Any] | slice | Sequence[int] | Array
    ) -> Trajectory | TrajectorySet:
        """One trajectory for an integer, else a set over the same columns."""
        if isinstance(key, int | np.integer):
            return self._one(int(key))
        if not isinstance(key, slice):
            key = check_selection(np.asarray(key), len(self))
        final, has, sources = self.final_observations, self.has_final, self.sources
        return replace(
            self,
            starts=self.starts[key],
            lengths=self.lengths[key],
            ids=self.ids[key],
            sources=None if sources is None else sources[key],
            final_observations=None if final is None else final[key],
            has_final=None if has is None else has[key],
        )

    def _one(self, index: int) -> Trajectory:
        if not -len(self) <= index < len(self):
            raise IndexError(f"Trajectory {index} of a set of {len(self)}.")
        start, length = int(self.starts[index]), int(self.lengths[index])
        final = None
        if self.final_observations is not None and self.has_final is not None:
            final = self.final_observations[index] if self.has_final[index] else None
        return Trajectory(
            id=str(self.ids[index]),
            steps=self.columns.take(slice(start, start + length)),
            final_observation=final,
            source=None if self.sources is None else str(self.sources[index]),
        )

    def __iter__(self) -> Iterator[Trajectory]:
        return (self._one(index) for index in range(len(self)))
