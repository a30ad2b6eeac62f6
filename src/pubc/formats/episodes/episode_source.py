"""What a format says of its episodes: the names of their arrays, and how one is read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from pubc.trajectory import Array

__all__ = ["Episode", "Layout", "Leaf", "Source"]


@dataclass(frozen=True, slots=True)
class Layout:
    """What a format calls the arrays of an episode."""

    observations: str
    """The observation, or the group of its named pieces."""
    terminals: str
    """Marks of the end of the task."""
    timeouts: str | None
    """Marks of the end of the recording."""
    is_extra: Callable[[str], bool]
    """Whether a further array of that path is worth keeping."""


class Leaf(Protocol):
    """One array of one episode, not yet read."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Its shape; None where it declares none."""
        ...


class Source(Protocol):
    """Where leaves are read from."""

    def dtype(self, node: Any) -> np.dtype[Any]:
        """Element type of a leaf of numbers."""
        ...

    def is_numeric(self, node: Any) -> bool:
        """Whether a leaf holds numbers."""
        ...

    def fill(self, node: Any, out: Array) -> None:
        """Read a leaf into an array of its shape."""
        ...


@dataclass(frozen=True, slots=True)
class Episode:
    """The arrays of one episode by their path, as far as headers tell."""

    number: int
    """Its number in the dataset."""
    leaves: dict[str, Any]
    """By their path below the episode, in the order of the file."""

    def rows(self, path: str) -> int:
        """Length of an array; 0 where it has none."""
        shape = self.leaves[path].shape
        return int(shape[0]) if shape else 0
