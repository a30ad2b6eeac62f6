"""What every engine hands out: an item on its way, what came of it, and why nothing did."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pubc import errors
from pubc.errors import DataError, EnvironmentFailure, PubcError

__all__ = [
    "RETRIES",
    "WORKER_DIED",
    "Failure",
    "Job",
    "Outcome",
    "as_error",
    "attempt",
    "failure_of",
]

RETRIES = 2
"""How often an item is tried again after its worker died; a fault that stays must end."""
WORKER_DIED = "worker_died"
"""The kind of failure of an item that cost worker after worker."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no value."""

    kind: str
    """The code of an error of pubc, the class of any other, or `WORKER_DIED`."""
    message: str
    """One sentence for people."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one item."""

    index: int
    """Its place among the items."""
    value: Any = None
    """What the function returned."""
    error: Failure | None = None
    """Why it returned nothing; None where it did."""


@dataclass(frozen=True, slots=True)
class Job:
    """An item on its way to a worker."""

    index: int
    """Its place among the items."""
    item: Any
    """What the function gets."""
    deaths: int = 0
    """How many workers have died of it."""

    def again(self) -> Job:
        """The same after one more death."""
        return replace(self, deaths=self.deaths + 1)


def attempt(function: Callable[[Any], Any], item: Any) -> tuple[Any, Failure | None]:
    """Call the function; an error becomes a failure."""
    try:
        return function(item), None
    except Exception as error:
        return None, failure_of(error)


def failure_of(error: Exception) -> Failure:
    """An error as plain data: no traceback and no class that only a worker has."""
    kind = getattr(error, "code", None)
    message = str(error) or type(error).__name__
    return Failure(kind if isinstance(kind, str) else type(error).__name__, message)


def as_error(failure: Failure) -> PubcError:
    """A failure as an error of this process, with the exit code that it had in the worker."""
    if failure.kind == WORKER_DIED:
        return EnvironmentFailure(failure.message)
    builtin = getattr(builtins, failure.kind, None)
    if isinstance(builtin, type) and issubclass(builtin, MemoryError):
        return EnvironmentFailure("not enough memory for this.")
    if isinstance(builtin, type) and issubclass(builtin, OSError):
        return EnvironmentFailure(failure.message)
    kind = getattr(errors, failure.kind, None)
    if isinstance(kind, type) and issubclass(kind, PubcError):
        error: PubcError = kind.__new__(kind)
        Exception.__init__(error, failure.message)
        return error
    if failure.kind.islower():
        return DataError(failure.message, code=failure.kind)
    return PubcError(f"a fault in a worker ({failure.kind}: {failure.message}).")
