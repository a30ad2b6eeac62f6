"""The engine without workers: one item after the other, in this process.

It is the reference that the other engines must agree with, so it computes on one thread
like their workers do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from pubc.engine.outcomes import Outcome, failure_of
from pubc.errors import InterruptedRun
from pubc.threads import threads

__all__ = ["Serial"]


class Serial:
    """Works through items in order."""

    workers = 1

    def __enter__(self) -> Serial:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was started, so nothing ends."""

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        """Apply a function to every item; see `pubc.engine.Engine`."""
        for index, item in enumerate(items):
            try:
                with threads(1):
                    value = function(item)
            except InterruptedRun:
                raise  # somebody wants everything to stop: that is no result of the item
            except Exception as error:
                yield Outcome(index, error=failure_of(error))
            else:
                yield Outcome(index, value)
