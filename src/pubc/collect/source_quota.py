"""How much of a source is played, and which trajectories of it count.

Trajectories have unknown lengths and are played by several processes at once, so more may
be played than needed. What counts is decided by index alone: trajectories in order until
the quota is full, the last one cut at the quota. That does not depend on who played what.

Parts are large at first and small towards the end, so that nobody waits long for the last
one, and whoever plays a trajectory that is not needed any more, or not to its end, is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pubc.collect.finished_parts import Index, part_path, parts_of, read_index
from pubc.collect.worker_pool import Answer, Limit, Task

__all__ = ["Kept", "Quota", "SourceProgress"]

_PER_PART = 10
"""Trajectories per part at most: seconds of work for MuJoCo, so little is lost to a kill."""
_ROUNDS = 4
"""A part is at most the work that is left, shared among all in this many rounds."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of one source a mixture takes: steps or trajectories, one of the two."""

    steps: int | None
    """Steps to record."""
    trajectories: int | None
    """Trajectories to record."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A trajectory that counts."""

    part: Index
    """Where it lies."""
    position: int
    """Which of its part."""
    length: int
    """Steps that count; fewer than were played where the quota cuts it."""

    @property
    def terminal(self) -> bool:
        """Whether it ends as terminal, after the cut."""
        whole = self.length == self.part.lengths[self.position]
        return whole and self.part.terminals[self.position]


@dataclass(slots=True)
class SourceProgress:
    """How far one source is on the way to its quota."""

    source: str
    """Whose."""
    number: int
    """Position among the sources, for the file names."""
    quota: Quota
    """How much of it."""
    time_limit: int
    """Longest a trajectory can be."""
    folder: Path
    """Where the parts lie."""
    processes: int = 1
    """How many play at a time; decides the size of parts and nothing else."""
    per_part: int = _PER_PART
    """Trajectories per part at most; one where each takes long."""
    done: dict[int, Index] = field(default_factory=dict)
    """Finished parts by the index of their first trajectory."""
    under_way: dict[int, int] = field(default_factory=dict)
    """Parts that a worker is playing: first index to number of trajectories."""

    def resume(self) -> None:
        """Take the parts that an earlier run finished."""
        end = 0
        for first, count, path in parts_of(self.folder, self.number, self.source):
            # Runs with different numbers of processes may have cut the parts differently.
            part = read_index(path) if first >= end else None
            if part is not None and len(part.lengths) == count:
                self.done[first] = part
                end = first + count

    def next_task(self) -> Task | None:
        """The next part to play, or None where none is needed now."""
        first = 0
        while known := self._known(first):
            first += known
        beyond = [other - first for other in self.done if other > first]
        # An earlier run may have left a gap, which must be filled whatever lies beyond it.
        room = min(beyond) if beyond else self._missing(first)
        left = self.left(first)
        if room < 1 or left == 0:
            return None
        count = max(1, min(self.per_part, room // (_ROUNDS * self.processes)))
        self.under_way[first] = count
        most = self.quota.steps if left is None else left
        return Task(self.source, first, count, most, str(self.folder), self.number)

    def limits(self) -> Iterator[Limit]:
        """What the quota still takes of the parts under way, where that is known by now."""
        for first in self.under_way:
            if (left := self.left(first)) is not None:
                yield Limit(self.source, first, left)

    def record(self, answer: Answer) -> None:
        """Note a finished part; one that was not needed any more is empty."""
        self.under_way.pop(answer.first, None)
        count = len(answer.lengths)
        if count:
            path = part_path(self.folder, self.number, self.source, answer.first, count)
            self.done[answer.first] = Index(path, answer.lengths, answer.terminals)

    def left(self, index: int) -> int | None:
        """Steps of the quota that the trajectories before `index` leave; None if unknown."""
        first, left = 0, self.quota.steps
        while left is not None and first < index:
            part = self.done.get(first)
            if part is None:
                return None
            left = max(0, left - sum(part.lengths))
            first += len(part.lengths)
        return left

    @property
    def steps(self) -> int:
        """Steps played so far, at most the quota."""
        played = sum(sum(part.lengths) for part in self.done.values())
        return played if self.quota.steps is None else min(played, self.quota.steps)

    @property
    def trajectories(self) -> int:
        """Trajectories played so far."""
        return sum(len(part.lengths) for part in self.done.values())

    def kept(self) -> list[Kept]:
        """The trajectories that count, in order of their index."""
        chosen: list[Kept] = []
        left = self.quota.steps
        for first in sorted(self.done):
            part = self.done[first]
            for position, length in enumerate(part.lengths):
                if left is not None:
                    if left <= 0:
                        return chosen
                    length = min(length, left)
                    left -= length
                chosen.append(Kept(part, position, length))
        return chosen

    def _known(self, first: int) -> int:
        """Trajectories of the part that begins there, finished or under way; else none."""
        if first in self.done:
            return len(self.done[first].lengths)
        return self.under_way.get(first, 0)

    def _missing(self, first: int) -> int:
        """How many trajectories from `first` on fill the quota, as far as one can tell."""
        if self.quota.steps is None:
            return (self.quota.trajectories or 0) - first
        count, played = self.trajectories, sum(sum(p.lengths) for p in self.done.values())
        usual = played / count if count else min(self.time_limit, self.quota.steps)
        expected = played + usual * sum(self.under_way.values())
        return math.ceil((self.quota.steps - expected) / usual)
