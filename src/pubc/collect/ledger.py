"""How much of a source is played, and which trajectories of it count.

Trajectories have unknown lengths and are played by several processes at once, so more may
be played than needed. What counts is decided by index alone: trajectories in order until
the quota is full, the last one cut at the quota. That does not depend on who played what.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from pubc.collect.crew import Answer, Task
from pubc.collect.parts import Index, part_path, read_index

__all__ = ["Kept", "Ledger", "Quota"]

_PER_PART = 10
"""Trajectories per part: a few seconds of work for MuJoCo, so little is lost to a kill."""


@dataclass(frozen=True, slots=True)
class Quota:
    """How much of one source a mixture takes: steps or trajectories, one of the two."""

    steps: int | None
    """Steps to record."""
    trajectories: int | None
    """Trajectories to record."""

    def per_part(self, time_limit: int, *, slow: bool) -> int:
        """Trajectories to play at a time; a small quota is split so that all can help."""
        if slow:
            return 1
        whole = self.trajectories or -(-(self.steps or 0) // time_limit)
        return max(1, min(_PER_PART, whole // 8))


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
class Ledger:
    """The book of one source."""

    source: str
    """Whose."""
    number: int
    """Position among the sources, for the file names."""
    quota: Quota
    """How much of it."""
    per_part: int
    """Trajectories per part."""
    time_limit: int
    """Longest a trajectory can be."""
    folder: Path
    """Where the parts lie."""
    done: dict[int, Index] = field(default_factory=dict)
    """Finished parts by the index of their first trajectory."""
    under_way: set[int] = field(default_factory=set)
    """Parts that a worker is playing, by first index."""

    def resume(self) -> None:
        """Take the parts that an earlier run finished."""
        for path in self.folder.glob(self._path(0).name.replace("0000000", "*")):
            first = int(path.stem.rpartition("-")[2])
            found = read_index(path)
            if found is not None and len(found.lengths) == self._count(first):
                self.done[first] = found

    def next_task(self) -> Task | None:
        """The next part to play, or None where none is needed now."""
        first = 0
        while first in self.done or first in self.under_way:
            first += self.per_part
        # An earlier run may have left a gap, which must be filled whatever lies beyond it.
        if first > max(self.done, default=-1) and not self._wanted():
            return None
        if self._count(first) < 1:
            return None
        self.under_way.add(first)
        return Task(
            self.source, first, self._count(first), self.quota.steps, str(self._path(first))
        )

    def record(self, answer: Answer) -> None:
        """Note a finished part."""
        self.under_way.discard(answer.first)
        self.done[answer.first] = Index(self._path(answer.first), answer.lengths, answer.terminals)

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

    def _wanted(self) -> bool:
        if self.quota.steps is None:
            return True
        played = [sum(part.lengths) for part in self.done.values()]
        longest = self.per_part * min(self.time_limit, self.quota.steps)
        expected = sum(played) / len(played) if played else longest
        return sum(played) + len(self.under_way) * expected < self.quota.steps

    def _count(self, first: int) -> int:
        if self.quota.trajectories is None:
            return self.per_part
        return min(self.per_part, self.quota.trajectories - first)

    def _path(self, first: int) -> Path:
        return part_path(self.folder, self.number, self.source, first)
