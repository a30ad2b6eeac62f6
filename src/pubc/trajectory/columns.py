"""The steps of one trajectory or of many: flat arrays with one row per step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from pubc.errors import DataError
from pubc.trajectory.arrays import Array, Flags, Integers, freeze, read_only

__all__ = ["Columns", "Trajectory"]


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
            freeze(self, name)
        extras = {name: read_only(column) for name, column in self.extras.items()}
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
