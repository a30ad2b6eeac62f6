"""How many threads compute, in one place, because numbers depend on it.

The rounding of a matrix product depends on the number of threads that share it. Whatever must
not depend on the machine, or on how many workers there are, computes on one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["ONE_THREAD", "cores", "one_thread", "threads"]

_LIBRARIES = ("OMP", "OPENBLAS", "MKL", "NUMEXPR")
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in _LIBRARIES}
"""Environment of a worker process; libraries read it once, while they load."""


def cores() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def threads(limit: int) -> Iterator[None]:
    """At most this many threads for torch inside; what was there before outside."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(limit, before)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_thread() -> None:
    """Tell torch so in a worker: the number of threads belongs to the calling thread."""
    import torch

    torch.set_num_threads(1)
