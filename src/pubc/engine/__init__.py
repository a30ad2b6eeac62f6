"""Doing a piece of work for each of many items: here, in processes, or on a cluster.

An engine maps a function over items and knows nothing of what they mean. The function is a
pure function of its item that leaves what it made in files; then a worker that dies costs
the time of its item and changes no result. Whatever the engine, a piece of work computes on
one thread, because the rounding of a matrix product depends on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Any, Protocol

from pubc.engine.outcomes import RETRIES, WORKER_DIED, Failure, Outcome, as_error
from pubc.errors import UnknownNameError, UsageError
from pubc.threads import cores

__all__ = [
    "ENGINES",
    "RETRIES",
    "WORKER_DIED",
    "Engine",
    "Failure",
    "Outcome",
    "as_error",
    "open_engine",
]

ENGINES = ("serial", "processes", "ray")
"""Names that `open_engine` knows."""


class Engine(Protocol):
    """Something that works through items."""

    @property
    def workers(self) -> int:
        """How many items are worked on at the same time."""
        ...

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        """Apply a function to every item and yield what came of each, as soon as it is known.

        Args:
            function: A function that can be imported by name, or a `functools.partial` of
                one. It may be called again for an item whose worker died.
            items: Plain, small data; what is large goes through files.

        Yields:
            One outcome per item, in the order of completion. An error in the function is
            the failure of its item alone.
        """
        ...


def open_engine(
    name: str, *, workers: int = 0, address: str | None = None
) -> AbstractContextManager[Engine]:
    """Start an engine; leaving the context ends its workers.

    Args:
        name: `serial`, `processes` or `ray`.
        workers: Items worked on at the same time; 0 means one per core, or whatever a
            cluster has.
        address: A Ray cluster to join: `auto`, `host:port` or `ray://host:port`. Without it
            Ray is started on this machine.

    Raises:
        UnknownNameError: No such engine.
        UsageError: The arguments do not fit it.
        MissingExtraError: Ray is not installed.
        EnvironmentFailure: Ray did not start, or nobody answers at the address.
    """
    if name not in ENGINES:
        raise UnknownNameError("engine", name, ENGINES)
    if workers < 0:
        raise UsageError(f"Workers are at least 1, or 0 for one per core. Got {workers}.")
    if address is not None and name != "ray":
        raise UsageError(f"--address joins a Ray cluster; the engine is {name!r}, not 'ray'.")
    if name == "serial":
        from pubc.engine.serial import Serial

        return Serial()
    if name == "processes":
        from pubc.engine.processes import Processes

        return Processes(workers or cores())
    from pubc.engine.ray import open_ray

    return open_ray(workers, address)
