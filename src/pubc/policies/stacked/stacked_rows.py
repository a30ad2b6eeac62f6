"""Batches for many members at once, gathered where the networks are.

Each member draws the positions that it would draw alone, from a stream of its own name, in data
of its own. Data that several members share is there once. If all of it fits, it lies on the
device as one table; otherwise it is read from its columns as it is needed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.policies.offline_rl.transitions import Transitions
from pubc.policies.training_rows import Facts, TrainingRows, facts_of
from pubc.trajectory import TrajectorySet

__all__ = [
    "Member",
    "StackedSteps",
    "StackedTransitions",
    "facts_of_members",
    "fingerprint_of",
    "moved",
]

Integers = NDArray[np.int64]
_T = TypeVar("_T")
_HOST = 2 << 30
"""Bytes of normalised steps that are held in memory without a GPU."""
_SHARE = 0.6
"""Share of a GPU's free memory that they may take there."""
_COLUMNS = ("observations", "actions", "rewards", "next_observations", "terminals")
_NUMBERS = ("rewards", "terminals")
"""Columns of one number for each step."""


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """One training of a stack."""

    trajectories: TrajectorySet
    """What it learns from; the same object where members share it."""
    random_seed: int
    """Its own."""
    positives: TrajectorySet | None = None
    """Its seed positives, for learners that take them."""


def facts_of_members(members: Sequence[Member]) -> list[Facts]:
    """What is known of each member's data; members that share it share the answer."""

    def whose(member: Member) -> list[TrajectorySet]:
        return [part for part in (member.positives, member.trajectories) if part is not None]

    made, index = _once(
        [tuple(map(id, whose(member))) for member in members],
        lambda first: facts_of(*whose(members[first])),
    )
    return [made[one] for one in index]


def fingerprint_of(facts: Sequence[Facts]) -> str:
    """Of the data of all members: that of the one set, where they share it."""
    found = [one.fingerprint for one in facts]
    if len(set(found)) == 1:
        return found[0]
    return hashlib.sha256(" ".join(found).encode()).hexdigest()


class StackedSteps:
    """Inputs and targets of every member's steps, by its own positions."""

    def __init__(
        self, sets: Sequence[TrajectorySet], facts: Sequence[Facts], device: torch.device
    ) -> None:
        """Read what fits.

        Args:
            sets: One of each member.
            facts: One of each member.
            device: Where rows are wanted.
        """
        self.sizes = [one.steps for one in sets]
        self._device = device
        self._seen, self._acts = sets[0].observation_size + 1, sets[0].action_size
        self._feeds, self._feed_of = _once(
            [(id(part), id(known)) for part, known in zip(sets, facts, strict=True)],
            lambda first: TrainingRows(sets[first], facts[first], memory=0),
        )
        ends = np.cumsum([feed.steps for feed in self._feeds])
        self._starts = np.array([ends[one] - self._feeds[one].steps for one in self._feed_of])
        self._held: tuple[Tensor, Tensor] | None = None
        if int(ends[-1]) * (self._seen + self._acts) * 4 <= _room(device):
            self._held = self._rows(int(ends[-1]))
            for feed, end in zip(self._feeds, ends.tolist(), strict=True):
                feed.fill(*(part[end - feed.steps : end] for part in self._held))

    def gather(
        self, positions: Integers, members: Sequence[int] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Inputs and targets of steps.

        Args:
            positions: Shape (updates, members, batch).
            members: Whose positions these are; those of all if omitted.

        Returns:
            Inputs with their column of ones, and targets; both (updates, members, batch, n).
        """
        whose = list(range(len(self._feed_of)) if members is None else members)
        if self._held is not None:
            rows = moved(positions + self._starts[whose][:, None], self._device)
            return self._held[0][rows], self._held[1][rows]
        inputs, targets = self._rows(positions.size)
        shape = positions.shape
        inputs, targets = inputs.view(*shape, self._seen), targets.view(*shape, self._acts)
        for feed, some in _groups([self._feed_of[one] for one in whose]):
            own = np.ascontiguousarray(positions[:, some])
            x, y = self._rows(own.size)
            self._feeds[feed].gather(own.reshape(-1), x, y)
            inputs[:, some], targets[:, some] = (
                x.view(*own.shape, self._seen),
                y.view(*own.shape, self._acts),
            )
        return inputs, targets

    def _rows(self, count: int) -> tuple[Tensor, Tensor]:
        return (
            torch.empty(count, self._seen, device=self._device),
            torch.empty(count, self._acts, device=self._device),
        )


class StackedTransitions:
    """The transitions of every member, by its own positions."""

    def __init__(
        self, sets: Sequence[TrajectorySet], facts: Sequence[Facts], device: torch.device
    ) -> None:
        """Read what fits; arguments as for `StackedSteps`."""
        self._device = device
        self._steps, self._set_of = _once(
            [(id(part), id(known)) for part, known in zip(sets, facts, strict=True)],
            lambda first: Transitions(sets[first], facts[first]),
        )
        firsts = [self._set_of.index(one) for one in range(len(self._steps))]
        own = [(sets[first], facts[first]) for first in firsts]
        ends = np.cumsum([_rows_of(part) for part, _ in own])
        self._starts = np.array([ends[one] - _rows_of(own[one][0]) for one in self._set_of])
        width = sets[0].observation_size + sets[0].action_size + 4
        self._held: dict[str, Tensor] | None = None
        if int(ends[-1]) * width * 4 <= _room(device):
            self._held = {}
            for (part, known), end in zip(own, ends.tolist(), strict=True):
                self._hold(part, known, end - _rows_of(part), int(ends[-1]))

    @property
    def positions(self) -> list[Integers]:
        """Steps of each member of which it is known what followed."""
        return [self._steps[one].positions for one in self._set_of]

    def _hold(self, part: TrajectorySet, known: Facts, start: int, total: int) -> None:
        """Every step once, final observations behind them, and the row that follows each step."""
        seen, acted, earned, ended = [], [], [], []
        for block in part.blocks():
            assert block.rewards is not None
            seen.append(known.normaliser(block.observations))
            acted.append(known.actions.to_unit(block.actions))
            earned.append(np.array(block.rewards, dtype=np.float32))
            ended.append(np.array(block.terminals))
        steps, last = part.steps, part.offsets[1:] - 1
        after = np.arange(1, steps + 1)
        after[last] = last
        if part.final_observations is not None and part.has_final is not None:
            seen.append(known.normaliser(part.final_observations))
            final = np.flatnonzero(part.has_final)
            after[last[final]] = steps + final
        terminal = np.zeros(steps, dtype=np.float32)
        terminal[last] = np.concatenate(ended)[last]
        for name, rows in {
            "seen": np.concatenate(seen),
            "acted": np.concatenate(acted),
            "earned": np.concatenate(earned),
            "terminal": terminal,
            "after": after + start,
        }.items():
            found, held = torch.from_numpy(rows), self._held
            assert held is not None
            if name not in held:
                shape = (total, *found.shape[1:])
                held[name] = torch.zeros(shape, dtype=found.dtype, device=self._device)
            held[name][start : start + len(found)] = found

    def gather(self, positions: Integers) -> dict[str, Tensor]:
        """Columns of the transitions at positions (updates, members, batch)."""
        if self._held is None:
            return self._read(positions)
        rows, held = moved(positions + self._starts[:, None], self._device), self._held
        return {
            "observations": held["seen"][rows],
            "actions": held["acted"][rows],
            "rewards": held["earned"][rows],
            "next_observations": held["seen"][held["after"][rows]],
            "terminals": held["terminal"][rows],
        }

    def _read(self, positions: Integers) -> dict[str, Tensor]:
        columns: dict[str, Tensor] = {}
        for one, some in _groups(self._set_of):
            own = np.ascontiguousarray(positions[:, some])
            taken = self._steps[one].take(own.reshape(-1))
            for name in _COLUMNS:
                rows = torch.from_numpy(taken[name]).to(self._device)
                wide = () if name in _NUMBERS else rows.shape[1:]
                if name not in columns:
                    columns[name] = torch.empty(*positions.shape, *wide, device=self._device)
                columns[name][:, some] = rows.view(*own.shape, *wide)
        return columns


def _room(device: torch.device) -> int:
    """Bytes of normalised steps that may be held on a device."""
    if device.type != "cuda":
        return _HOST
    free, _ = torch.cuda.mem_get_info(device)
    return int(_SHARE * free)


def _rows_of(part: TrajectorySet) -> int:
    """Rows of a set in the table: its steps, and the final observations behind them."""
    final = part.final_observations is not None and part.has_final is not None
    return part.steps + (len(part) if final else 0)


def moved(numbers: NDArray[np.generic], device: torch.device) -> Tensor:
    """Numbers on the device; what a GPU does meanwhile is not waited for."""
    found = torch.from_numpy(np.ascontiguousarray(numbers))
    if device.type == "cuda":
        return found.pin_memory().to(device, non_blocking=True)
    return found.to(device)


def _once(keys: Sequence[Hashable], make: Callable[[int], _T]) -> tuple[list[_T], list[int]]:
    """What is made of the first of each kind, and which of these each one has."""
    kinds = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    made = [make(keys.index(key)) for key in kinds]
    return made, [kinds[key] for key in keys]


def _groups(kinds: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Each kind with the places that have it."""
    for kind in dict.fromkeys(kinds):
        yield kind, [place for place, one in enumerate(kinds) if one == kind]
