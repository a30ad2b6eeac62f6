"""What a reader found wrong with a set and did not have to refuse."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Problem"]


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
