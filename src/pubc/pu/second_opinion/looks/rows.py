"""The steps of a pile that `auto` looks at: normalised, in blocks, with sums per trajectory.

Every trajectory lends a few blocks of steps in a row, so that a huge pile costs as much as a large
one and windows of time still exist. States and actions are scaled by the pile; an action that
merely repeats a state (an absolute target) is replaced by what it adds to that state, and ids of
discrete actions become one column per id.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.trajectory import TrajectorySet
from pubc.trajectory.arrays import give_back

__all__ = ["Rows", "Scale", "join", "look"]

Floats = NDArray[np.float32]
Integers = NDArray[np.int64]

_CLIP = 5.0
_MOST_IDS = 32
_COPY = 0.95
_BLOCK = 30
_WINDOW = 10
_WORST = 0.05


@dataclass(frozen=True, slots=True, eq=False)
class Scale:
    """How states and actions of a pile become numbers of about unit size."""

    state_mean: Floats
    """Of each state dimension."""
    state_spread: Floats
    """Of each state dimension; those that never change are left out by `states`."""
    states: Integers
    """State dimensions that change."""
    ids: tuple[Floats, ...]
    """For discrete actions: the ids of each dimension; empty otherwise."""
    copies: Integers
    """The state dimension that an action dimension repeats, or -1."""
    slopes: Floats
    """How an action dimension follows the state that it repeats."""
    action_mean: Floats
    """Of each column of actions."""
    action_spread: Floats
    """Of each column of actions."""

    def state(self, observations: Floats) -> Tensor:
        """States as networks see them."""
        chosen = observations[:, self.states].astype(np.float32)
        scaled = (chosen - self.state_mean[self.states]) / self.state_spread[self.states]
        return torch.from_numpy(np.clip(scaled, -_CLIP, _CLIP))

    def action(self, observations: Floats, actions: Floats) -> Tensor:
        """Actions as networks see them."""
        columns = _columns(actions, self.ids)
        copied = np.flatnonzero(self.copies >= 0)
        if len(copied):
            columns = columns.copy()
            columns[:, copied] -= self.slopes[copied] * observations[:, self.copies[copied]]
        scaled = (columns - self.action_mean) / self.action_spread
        return torch.from_numpy(np.clip(scaled, -_CLIP, _CLIP).astype(np.float32))

    @classmethod
    def of(cls, observations: Floats, actions: Floats) -> Scale:
        """Measured on some steps of a pile."""
        mean = observations.mean(axis=0, dtype=np.float64).astype(np.float32)
        spread = observations.std(axis=0, dtype=np.float64).astype(np.float32)
        ids = _action_ids(actions)
        columns = _columns(actions, ids)
        copies, slopes = _copied(columns, observations, spread, bool(ids))
        copied = np.flatnonzero(copies >= 0)
        if len(copied):
            columns = columns.copy()
            columns[:, copied] -= slopes[copied] * observations[:, copies[copied]]
        action_spread = columns.std(axis=0, dtype=np.float64).astype(np.float32)
        return cls(
            mean,
            np.maximum(spread, 1e-6).astype(np.float32),
            np.flatnonzero(spread > 1e-6).astype(np.int64),
            ids,
            copies,
            slopes,
            columns.mean(axis=0, dtype=np.float64).astype(np.float32),
            np.where(action_spread > 1e-8, action_spread, 1.0).astype(np.float32),
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """Blocks of steps of every trajectory, one after another."""

    states: Tensor
    """Shape (rows, state dimensions)."""
    actions: Tensor
    """Shape (rows, action columns)."""
    lengths: Tensor
    """Rows of each trajectory."""
    breaks: Tensor
    """Whether a row does not follow the one before it in time."""
    scale: Scale
    """How the numbers were made."""
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    """Where they lie."""

    @property
    def count(self) -> int:
        """Trajectories."""
        return len(self.lengths)

    @cached_property
    def starts(self) -> Tensor:
        """First row of each trajectory."""
        return torch.cumsum(self.lengths, 0) - self.lengths

    @cached_property
    def owner(self) -> Tensor:
        """Which trajectory a row belongs to."""
        return torch.repeat_interleave(
            torch.arange(self.count, device=self.lengths.device), self.lengths
        )

    @cached_property
    def share(self) -> Tensor:
        """Weight of a row such that every trajectory weighs 1, shape (rows, 1)."""
        return (1.0 / self.lengths.float())[self.owner][:, None]

    @cached_property
    def speed(self) -> Tensor:
        """How far the state moved since the row before; 0 after a break."""
        moved = torch.zeros(len(self.states), device=self.states.device)
        moved[1:] = (self.states[1:] - self.states[:-1]).norm(dim=1)
        moved[self.breaks] = 0.0
        return moved

    @cached_property
    def last(self) -> Tensor:
        """Whether the row after this one does not follow it in time."""
        return torch.cat([self.breaks[1:], self.breaks[:1]])

    def of(self, trajectory: int) -> slice:
        """The rows of one trajectory."""
        first = int(self.starts[trajectory])
        return slice(first, first + int(self.lengths[trajectory]))

    def members(self, trajectories: Tensor) -> Tensor:
        """The rows of some trajectories."""
        chosen = torch.zeros(self.count, dtype=torch.bool, device=self.lengths.device)
        chosen[trajectories] = True
        return torch.nonzero(chosen[self.owner]).flatten()

    def mean(self, values: Tensor, weights: Tensor | None = None) -> Tensor:
        """Mean over the rows of each trajectory; values of shape (rows,) or (rows, columns)."""
        flat = values if values.dim() > 1 else values[:, None]
        weight = (self.share if weights is None else weights[:, None]).to(flat.dtype)
        total = flat.new_zeros(self.count, flat.shape[1]).index_add_(0, self.owner, flat * weight)
        if weights is not None:
            norm = flat.new_zeros(self.count, 1).index_add_(0, self.owner, weight)
            total = total / (norm + 1e-9)
        return total if values.dim() > 1 else total[:, 0]

    @cached_property
    def _windows(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        first, width, owner, lowest, made = [], [], [], [], 0
        for trajectory, (start, length) in enumerate(
            zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        ):
            size = min(_WINDOW, length)
            count = length - size + 1
            first.append(torch.arange(start, start + count))
            width.append(torch.full((count,), size))
            owner.append(torch.full((count,), float(trajectory), dtype=torch.float64))
            lowest.append(made + int(_WORST * (count - 1)))
            made += count
        place = self.states.device
        return (
            torch.cat(first).to(place),
            torch.cat(width).to(place),
            torch.cat(owner).to(place),
            torch.tensor(lowest, device=place),
        )

    def worst(self, values: Tensor) -> Tensor:
        """A low quantile over the windows of each trajectory: what its worst moments look like."""
        first, width, owner, lowest = self._windows
        running = torch.cumsum(values.double(), 0)
        running = torch.cat([running.new_zeros(1), running])
        windows = ((running[first + width] - running[first]) / width).clamp(-50, 50)
        # Sorting within trajectories: each has a range of its own on the line.
        ranked = torch.sort(owner * 1000 + windows)[0][lowest]
        return (ranked - torch.arange(self.count, device=ranked.device) * 1000.0).float()


def look(
    trajectories: TrajectorySet, steps: int, device: torch.device, scale: Scale | None = None
) -> Rows:
    """Blocks of at most about `steps` steps of every trajectory.

    Args:
        trajectories: What to look at.
        steps: Most steps of one trajectory.
        device: Where to compute.
        scale: How to make numbers; measured on these steps if omitted.
    """
    picked, lengths, breaks = _blocks(trajectories, steps)
    columns = trajectories.columns
    observations = np.asarray(columns.observations[picked], dtype=np.float32)
    actions = np.asarray(columns.actions[picked], dtype=np.float32)
    for column in (columns.observations, columns.actions):
        give_back(column, picked)
    observations = observations.reshape(len(picked), -1)
    actions = actions.reshape(len(picked), -1)
    scale = scale or Scale.of(observations, actions)
    return Rows(
        scale.state(observations).to(device),
        scale.action(observations, actions).to(device),
        torch.from_numpy(lengths).to(device),
        torch.from_numpy(breaks).to(device),
        scale,
        device,
    )


def join(rows: Rows, more: Rows) -> Rows:
    """Rows of some trajectories and then of others, made with the same scale."""
    return Rows(
        torch.cat([rows.states, more.states]),
        torch.cat([rows.actions, more.actions]),
        torch.cat([rows.lengths, more.lengths]),
        torch.cat([rows.breaks, more.breaks]),
        rows.scale,
        rows.device,
    )


def _blocks(
    trajectories: TrajectorySet, steps: int
) -> tuple[Integers, Integers, NDArray[np.bool_]]:
    picked, lengths = [], []
    for start, length in zip(trajectories.starts, trajectories.lengths, strict=True):
        if length <= steps + _BLOCK:
            rows = np.arange(start, start + length)
        else:
            firsts = np.linspace(0, length - _BLOCK, max(1, steps // _BLOCK)).astype(np.int64)
            rows = (start + firsts[:, None] + np.arange(_BLOCK)).ravel()
        picked.append(rows)
        lengths.append(len(rows))
    every = np.concatenate(picked).astype(np.int64)
    breaks = np.ones(len(every), dtype=np.bool_)
    breaks[1:] = np.diff(every) != 1
    sizes = np.asarray(lengths, dtype=np.int64)
    breaks[np.cumsum(sizes) - sizes] = True
    return every, sizes, breaks


def _action_ids(actions: Floats) -> tuple[Floats, ...]:
    """The ids of discrete actions: at most two columns of few whole numbers; else nothing."""
    if actions.shape[1] > 2 or not np.array_equal(actions, np.round(actions)):
        return ()
    ids = tuple(np.unique(column).astype(np.float32) for column in actions.T)
    return ids if all(2 < len(one) <= _MOST_IDS for one in ids) else ()


def _columns(actions: Floats, ids: tuple[Floats, ...]) -> Floats:
    if not ids:
        return actions
    parts = [column[:, None] == known for column, known in zip(actions.T, ids, strict=True)]
    return np.concatenate(parts, axis=1).astype(np.float32)


def _copied(
    columns: Floats, observations: Floats, spread: Floats, discrete: bool
) -> tuple[Integers, Floats]:
    """For each action dimension the state dimension that it follows almost exactly, or -1."""
    count = columns.shape[1]
    copies, slopes = np.full(count, -1, dtype=np.int64), np.zeros(count, dtype=np.float32)
    moving = np.flatnonzero(spread > 1e-6)
    if discrete or not len(moving):
        return copies, slopes
    states = (observations[:, moving] - observations[:, moving].mean(0)) / spread[moving]
    for column in range(count):
        action = columns[:, column] - columns[:, column].mean()
        size = float(action.std(dtype=np.float64))
        if size < 1e-8:
            continue
        follows = states.T @ (action / size) / len(action)
        best = int(np.abs(follows).argmax())
        if abs(follows[best]) > _COPY:
            copies[column] = moving[best]
            slopes[column] = follows[best] * size / spread[moving[best]]
    return copies, slopes
