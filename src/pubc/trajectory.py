"""Trajectories as flat columns with an index, in memory or on a memory-mapped disk.

A `TrajectorySet` never copies what it can point to. Its columns hold the steps of many
trajectories one after another; an index says where each trajectory starts and how long
it is. Selecting trajectories makes a new index over the same columns, so choosing half of
a set that is larger than memory costs a few bytes per trajectory.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, overload

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import ArrayLike, NDArray

from pubc.errors import DataError, UsageError

__all__ = ["Array", "Columns", "Problem", "Trajectory", "TrajectorySet", "concatenate"]

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.str_]

BLOCK = 16_384
"""Steps per streamed block: some megabytes, large enough to keep a disk busy."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a reader found, and what was done about it."""

    code: str
    """Short stable name, for example `constant_feature`."""
    outcome: str
    """`repaired`, `warned` or `noticed`; a refusal is an exception instead."""
    message: str
    """One sentence for the user."""
    field: str | None = None
    """The array or key concerned."""
    count: int = 1
    """How many places show it."""
    first: int | None = None
    """The first such place: a step, a trajectory or a dimension, as the message says."""


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The flat arrays of a set, one row per step, in the dtypes of their source."""

    observations: Array
    """Shape (steps, observation dimensions)."""
    actions: Array
    """Shape (steps, action dimensions)."""
    rewards: Array | None
    """Shape (steps,); None where the source has none."""
    terminals: Flags
    """Shape (steps,): the task ended here."""
    timeouts: Flags
    """Shape (steps,): the recording ended here, the task did not."""
    extras: Mapping[str, Array] = field(default_factory=dict)
    """Whatever else the source has per step, by name, shape (steps, ...)."""

    def __post_init__(self) -> None:
        rows = len(self.observations)
        for name, column in self.named():
            wanted = 2 if name in ("observations", "actions") else 1
            if column.ndim != wanted and not name.startswith("extras/"):
                raise DataError(
                    f"{name} must have {wanted} axes. Got shape {column.shape}.",
                    code="bad_shape",
                    field=name,
                )
            if len(column) != rows:
                raise DataError(
                    f"observations has {rows:,} rows but {name} has {len(column):,}. "
                    "Every column needs one row per step.",
                    code="unequal_lengths",
                    field=name,
                    index=min(rows, len(column)),
                )
        for name, flags in (("terminals", self.terminals), ("timeouts", self.timeouts)):
            if flags.dtype != np.bool_:
                raise DataError(
                    f"{name} must be boolean. Got {flags.dtype}.",
                    code="bad_dtype",
                    field=name,
                )
        for name in ("observations", "actions", "rewards", "terminals", "timeouts"):
            _freeze(self, name)
        extras = {name: _read_only(column) for name, column in self.extras.items()}
        object.__setattr__(self, "extras", MappingProxyType(extras))

    def named(self) -> Iterator[tuple[str, Array]]:
        """Every column with its name; extras as `extras/NAME`."""
        yield "observations", self.observations
        yield "actions", self.actions
        if self.rewards is not None:
            yield "rewards", self.rewards
        yield "terminals", self.terminals
        yield "timeouts", self.timeouts
        for name, column in self.extras.items():
            yield f"extras/{name}", column

    def take(self, rows: slice | Integers) -> Columns:
        """The given rows of every column; a slice makes views, indices make copies."""
        return Columns(
            observations=self.observations[rows],
            actions=self.actions[rows],
            rewards=None if self.rewards is None else self.rewards[rows],
            terminals=self.terminals[rows],
            timeouts=self.timeouts[rows],
            extras={name: column[rows] for name, column in self.extras.items()},
        )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trajectory:
    """One uninterrupted run of one policy."""

    id: str
    """What its source calls it."""
    steps: Columns
    """Its columns, one row per step."""
    final_observation: Array | None = None
    """The observation after the last action, shape (observation dimensions,)."""
    source: str | None = None
    """Which policy acted; for evaluation only."""

    def __len__(self) -> int:
        return len(self.steps.observations)

    def __repr__(self) -> str:
        return f"Trajectory({self.id!r}, {len(self):,} steps)"

    @property
    def total_reward(self) -> float:
        """Undiscounted sum of rewards; NaN where there are none."""
        rewards = self.steps.rewards
        return float("nan") if rewards is None else float(np.sum(rewards, dtype=float))


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
        rows, count = len(self.columns.observations), len(self.starts)
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
        if count and (
            self.lengths.min() < 1
            or self.starts.min() < 0
            or (self.starts + self.lengths).max() > rows
        ):
            raise DataError(
                f"The index points outside the {rows:,} rows of the columns, or a "
                "trajectory has no step.",
                code="bad_index",
                field="starts",
            )
        for name in ("starts", "lengths", "ids", "sources", "final_observations", "has_final"):
            _freeze(self, name)
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
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)

    @property
    def is_contiguous(self) -> bool:
        """Whether the trajectories lie one after another in the columns."""
        ends = self.starts + self.lengths
        return bool(np.array_equal(ends[:-1], self.starts[1:]))

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
        for rows in self._row_blocks(steps):
            yield self.columns.take(rows)
            for _, column in self.columns.named():
                _release(column, rows)

    def stream(self, column: Array, steps: int = BLOCK) -> Iterator[Array]:
        """Like `blocks`, for one array with the rows of `columns`."""
        for rows in self._row_blocks(steps):
            yield column[rows]
            _release(column, rows)

    def release(self) -> None:
        """Give back the memory of mapped columns; they are read again when next used."""
        for _, column in self.columns.named():
            _release(column, slice(0, len(column)))

    def take_steps(self, positions: Integers) -> Columns:
        """The steps at the given positions of `flat()`, without building all of it."""
        positions = np.asarray(positions, dtype=np.int64)
        if positions.size and not 0 <= positions.min() <= positions.max() < self.steps:
            raise IndexError(
                f"Positions {positions.min():,} to {positions.max():,} of a set of "
                f"{self.steps:,} steps."
            )
        return self.columns.take(self._rows_at(self.offsets, positions))

    def _row_blocks(self, steps: int) -> Iterator[slice | Integers]:
        """Rows of the columns, block by block: slices where they lie together."""
        if steps < 1:
            raise UsageError(f"A block needs at least one step. Got {steps}.")
        if self.is_contiguous:
            first = int(self.starts[0]) if len(self) else 0
            for start in range(first, first + self.steps, steps):
                yield slice(start, min(start + steps, first + self.steps))
            return
        offsets = self.offsets
        for start in range(0, self.steps, steps):
            yield self._rows_at(offsets, np.arange(start, min(start + steps, self.steps)))

    def _rows_at(self, offsets: Integers, positions: Integers) -> Integers:
        owner = np.searchsorted(offsets, positions, side="right") - 1
        return np.asarray(self.starts[owner] + positions - offsets[owner], dtype=np.int64)

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
            rows = self._rows_at(offsets, positions)
            values = np.asarray(rewards[rows], dtype=np.float64)
            totals[first:last] = np.add.reduceat(values, offsets[first:last] - offsets[first])
            _release(rewards, rows)
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
            key = self._selection(np.asarray(key))
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

    def _selection(self, key: Array) -> Array:
        if key.size == 0 and key.dtype != np.bool_:
            return np.zeros(0, dtype=np.int64)
        if key.dtype == np.bool_ and key.shape != (len(self),):
            raise UsageError(
                f"A mask of shape {key.shape} for a set of {len(self):,} trajectories; it "
                "needs one entry per trajectory."
            )
        if key.ndim != 1 or key.dtype.kind not in "biu":
            raise UsageError(
                "Select trajectories with integers, a slice, or one list of positions or "
                f"booleans. Got {key.dtype}, shape {key.shape}."
            )
        return key

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


def _read_only(array: Array) -> Array:
    """The same memory, not writeable through this view."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def _freeze(owner: Any, name: str) -> None:
    value = getattr(owner, name)
    if value is not None:
        object.__setattr__(owner, name, _read_only(value))


def _release(column: Array, rows: slice | Integers) -> None:
    """Let the system take back the mapped pages of some rows; they stay in the file."""
    base: Any = column
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    if not isinstance(rows, slice):
        if not len(rows):
            return
        rows = slice(int(rows.min()), int(rows.max()) + 1)
    origin, _ = byte_bounds(np.frombuffer(base, np.uint8))
    low, high = byte_bounds(column[rows])
    first = (low - origin) // mmap.PAGESIZE * mmap.PAGESIZE
    base.madvise(mmap.MADV_DONTNEED, first, high - origin - first)


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
