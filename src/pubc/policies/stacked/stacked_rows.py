"""Batches for many members at once, gathered where the networks are.

Each member draws the positions that it would draw alone, from a stream of its own name; members
that learn from the same set are gathered together. A set that fits lies on the device whole;
a larger one is read from its columns as it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.policies.offline_rl.transitions import Transitions
from pubc.policies.training_rows import Facts, TrainingRows
from pubc.trajectory import TrajectorySet

__all__ = ["StackedTransitions", "gather_feeds", "room_for"]

Integers = NDArray[np.int64]
_HOST = 2 << 30
"""Bytes of normalised steps that are held in memory without a GPU."""
_SHARE = 0.6
"""Share of a GPU's free memory that they may take there."""
_COLUMNS = ("observations", "actions", "rewards", "next_observations", "terminals")


def room_for(device: torch.device) -> int:
    """Bytes of normalised steps that may be held on a device."""
    if device.type != "cuda":
        return _HOST
    free, _ = torch.cuda.mem_get_info(device)
    return int(_SHARE * free)


class StackedTransitions:
    """The transitions of one set, by position."""

    def __init__(self, trajectories: TrajectorySet, facts: Facts, device: torch.device) -> None:
        self._steps = Transitions(trajectories, facts)
        self.positions = self._steps.positions
        self._device = device
        width = trajectories.observation_size + trajectories.action_size + 4
        self._held: dict[str, Tensor] | None = None
        if trajectories.steps * width * 4 <= room_for(device):
            self._held = self._hold(trajectories, facts)

    def _hold(self, trajectories: TrajectorySet, facts: Facts) -> dict[str, Tensor]:
        """Every step once, final observations behind them, and the row that follows each step."""
        seen, acted, earned, ended = [], [], [], []
        for block in trajectories.blocks():
            assert block.rewards is not None
            seen.append(facts.normaliser(block.observations))
            acted.append(facts.actions.to_unit(block.actions))
            earned.append(np.array(block.rewards, dtype=np.float32))
            ended.append(np.array(block.terminals))
        steps, last = trajectories.steps, trajectories.offsets[1:] - 1
        after = np.arange(1, steps + 1)
        after[last] = last
        if trajectories.final_observations is not None and trajectories.has_final is not None:
            seen.append(facts.normaliser(trajectories.final_observations))
            final = np.flatnonzero(trajectories.has_final)
            after[last[final]] = steps + final
        terminal = np.zeros(steps, dtype=np.float32)
        terminal[last] = np.concatenate(ended)[last]
        held = {
            "seen": np.concatenate(seen),
            "acted": np.concatenate(acted),
            "earned": np.concatenate(earned),
            "terminal": terminal,
            "after": after,
        }
        return {name: torch.from_numpy(rows).to(self._device) for name, rows in held.items()}

    def gather(self, positions: Integers) -> dict[str, Tensor]:
        """Columns of the transitions at positions of any shape; theirs begins with it."""
        if self._held is None:
            columns = self._steps.take(positions.reshape(-1))
            return {
                name: _shaped(torch.from_numpy(columns[name]).to(self._device), positions)
                for name in _COLUMNS
            }
        rows = torch.from_numpy(positions).to(self._device)
        held = self._held
        return {
            "observations": held["seen"][rows],
            "actions": held["acted"][rows],
            "rewards": held["earned"][rows],
            "next_observations": held["seen"][held["after"][rows]],
            "terminals": held["terminal"][rows],
        }


def _shaped(column: Tensor, positions: Integers) -> Tensor:
    wide = column.shape[1:] if column.shape[1] > 1 else ()
    return column.view(*positions.shape, *wide)


def gather_feeds(
    feeds: Sequence[TrainingRows], positions: Integers, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Inputs and targets of steps, each member's from its own feed.

    Args:
        feeds: One of each member; members may share one.
        positions: Shape (updates, members, batch).
        device: Where to put them.

    Returns:
        Inputs with their column of ones, and targets; both (updates, members, batch, n).
    """
    seen = feeds[0].trajectories.observation_size + 1
    acts = feeds[0].trajectories.action_size
    shape = positions.shape
    inputs = torch.empty(*shape, seen, device=device)
    targets = torch.empty(*shape, acts, device=device)
    groups: dict[int, list[int]] = {}
    for member, feed in enumerate(feeds):
        groups.setdefault(id(feed), []).append(member)
    if len(groups) == 1:
        feeds[0].gather(positions.reshape(-1), inputs.view(-1, seen), targets.view(-1, acts))
        return inputs, targets
    for members in groups.values():
        some = np.ascontiguousarray(positions[:, members])
        x = torch.empty(some.size, seen, device=device)
        y = torch.empty(some.size, acts, device=device)
        feeds[members[0]].gather(some.reshape(-1), x, y)
        inputs[:, members] = x.view(*some.shape, seen)
        targets[:, members] = y.view(*some.shape, acts)
    return inputs, targets
