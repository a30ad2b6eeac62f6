"""What learners train on: the steps of a set, normalised, in any order, from memory or disk.

Everything a network sees is made here once: observations shifted and scaled by the set's own
moments, actions brought to plus and minus one by the set's own range. A set that is larger
than memory is gathered from its memory-mapped columns batch by batch, with the same numbers
coming out.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.errors import DataError
from pubc.nets import Normaliser
from pubc.trajectory import Array, Columns, TrajectorySet

__all__ = ["MARGIN", "MEMORY", "ActionRange", "Facts", "TrainingRows", "facts_of"]

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

MARGIN = 1.05
"""The tanh of a network spans this many times the range of the actions, so that a recorded
action at the edge of the range lies where tanh still has a slope."""
MEMORY = 2 << 30
"""Bytes of normalised steps that are held in memory; larger sets are read as needed."""


@dataclass(frozen=True, slots=True, eq=False)
class ActionRange:
    """The smallest and largest action of each dimension, and the way to plus and minus one."""

    low: Floats
    """Smallest recorded action, shape (action dimensions,)."""
    high: Floats
    """Largest recorded action, shape (action dimensions,)."""

    @property
    def centre(self) -> Floats:
        """Middle of the range."""
        return np.asarray((self.low + self.high) / 2, dtype=np.float32)

    @property
    def half(self) -> Floats:
        """Half of the range with its margin; 1 where an action never changes."""
        half = (self.high - self.low) / 2 * MARGIN
        return np.asarray(np.where(half > 0, half, 1.0), dtype=np.float32)

    def to_unit(self, actions: Array) -> Floats:
        """Actions in units of the range."""
        return np.asarray((np.asarray(actions, np.float32) - self.centre) / self.half, np.float32)

    def from_unit(self, units: Array) -> Floats:
        """Units back to actions, never outside what was recorded."""
        return np.asarray(np.clip(self.centre + self.half * units, self.low, self.high))


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What one pass over a set learns about it."""

    normaliser: Normaliser
    """Brings observations to mean zero and deviation one."""
    actions: ActionRange
    """Brings actions to plus and minus one."""
    fingerprint: str
    """Changes when the set does: of its index and the moments of its columns."""


def facts_of(*sets: TrajectorySet) -> Facts:
    """Read sets once, block by block, as if they were one.

    Raises:
        DataError: There is nothing to learn from, or a value is not finite.
    """
    if not all(part.steps for part in sets):
        raise DataError("The dataset has no trajectories to learn from.", code="empty")
    steps, actions = sum(part.steps for part in sets), sets[0].action_size
    total = np.zeros(sets[0].observation_size)
    squares = np.zeros_like(total)
    shift: NDArray[Any] | None = None
    low, high = np.full(actions, np.inf), np.full(actions, -np.inf)
    weighted = np.zeros(actions)
    for block in itertools.chain.from_iterable(part.blocks() for part in sets):
        seen = np.asarray(block.observations, dtype=np.float64)
        acted = np.asarray(block.actions, dtype=np.float64)
        shift = seen[0].copy() if shift is None else shift
        seen = seen - shift
        total += seen.sum(axis=0)
        squares += np.square(seen).sum(axis=0)
        low, high = np.minimum(low, acted.min(axis=0)), np.maximum(high, acted.max(axis=0))
        weighted += acted.sum(axis=0)
    assert shift is not None
    for name, sums in (("observations", squares), ("actions", weighted)):
        if not np.isfinite(sums).all():
            raise DataError(
                f"{name} hold values that are not finite in dimension "
                f"{int(np.argmin(np.isfinite(sums)))}. `pubc inspect` says where; "
                "--nonfinite drop-episode leaves those trajectories out.",
                code="nonfinite",
                field=name,
            )
    mean = total / steps
    deviation = np.sqrt(np.maximum(squares / steps - np.square(mean), 0.0))
    digest = hashlib.sha256()
    lengths = [part.lengths for part in sets]
    for array in (*lengths, total, squares, shift, low, high, weighted):
        digest.update(np.ascontiguousarray(array).tobytes())
    return Facts(
        Normaliser.from_moments(mean + shift, deviation),
        ActionRange(low.astype(np.float32), high.astype(np.float32)),
        digest.hexdigest(),
    )


class TrainingRows:
    """Normalised steps of a set by position, as rows ready for a network.

    Inputs carry a last column of ones: the layer after it holds its bias as one more row.
    """

    def __init__(
        self,
        trajectories: TrajectorySet,
        facts: Facts,
        *,
        device: torch.device = torch.device("cpu"),  # noqa: B008
        memory: int = MEMORY,
    ) -> None:
        self.trajectories = trajectories
        self.facts = facts
        self.steps = trajectories.steps
        self._held: tuple[Tensor, Tensor] | None = None
        width = trajectories.observation_size + 1 + trajectories.action_size
        if self.steps * width * 4 <= memory:
            inputs = torch.empty(self.steps, trajectories.observation_size + 1, device=device)
            targets = torch.empty(self.steps, trajectories.action_size, device=device)
            self.fill(inputs, targets)
            self._held = inputs, targets

    def fill(self, inputs: Tensor, targets: Tensor) -> None:
        """Write every step, in order, into the rows of two tensors."""
        done = 0
        for block in self.trajectories.blocks():
            stop = done + len(block.actions)
            seen, acted = self._rows(stop - done)
            self._prepare(block, seen, acted)
            inputs[done:stop] = torch.from_numpy(seen)
            targets[done:stop] = torch.from_numpy(acted)
            done = stop

    def gather(self, positions: Integers, inputs: Tensor, targets: Tensor) -> None:
        """Write the steps at `positions` into the rows of two tensors."""
        if self._held is not None:
            rows = torch.from_numpy(positions).to(inputs.device)
            torch.index_select(self._held[0], 0, rows, out=inputs)
            torch.index_select(self._held[1], 0, rows, out=targets)
            return
        # In the order of the file, so that neighbouring rows come from one page.
        order = np.argsort(positions, kind="stable")
        seen, acted = self._rows(len(positions))
        self._prepare(self.trajectories.take_steps(positions[order]), seen, acted)
        back = torch.from_numpy(np.argsort(order)).to(inputs.device)
        torch.index_select(torch.from_numpy(seen).to(inputs.device), 0, back, out=inputs)
        torch.index_select(torch.from_numpy(acted).to(inputs.device), 0, back, out=targets)

    def _rows(self, count: int) -> tuple[Floats, Floats]:
        seen = np.empty((count, self.trajectories.observation_size + 1), np.float32)
        return seen, np.empty((count, self.trajectories.action_size), np.float32)

    def _prepare(self, block: Columns, inputs: Floats, targets: Floats) -> None:
        inputs[:, :-1] = self.facts.normaliser(block.observations)
        inputs[:, -1] = 1.0
        targets[:] = self.facts.actions.to_unit(block.actions)
