"""Updates of a stack: recorded on a GPU, with as many threads as are faster elsewhere.

More threads than one are used where they are faster by the clock and where a trial update has
come out the same to the last bit, so the number of threads never changes a result.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from pubc.policies.cloning.thread_count import Pace
from pubc.policies.cuda_graphs import Batch, Updates, Work
from pubc.threads import threads

__all__ = ["PacedUpdates"]

_BLOCK = 4
"""Updates between two looks at the clock: those of a block differ in what they do."""


class PacedUpdates:
    """Calls an update, or replays its recording."""

    def __init__(
        self, work: Work, tensors: Callable[[], list[Tensor]], device: torch.device
    ) -> None:
        """Nothing is recorded yet.

        Args:
            work: The update.
            tensors: Everything that it changes.
            device: Where it runs.
        """
        self._work, self._tensors = work, tensors
        self._recorded = Updates(work, tensors, device) if device.type == "cuda" else None
        self._pace = Pace(torch.get_num_threads(), self._agrees)
        self._left, self._used, self._block, self._seconds = 0, 1, 0, 0.0
        self._asked: tuple[Batch, str] | None = None

    def __call__(self, batch: Batch, way: str) -> dict[str, Tensor]:
        """One update."""
        if self._recorded is not None:
            return self._recorded(batch, way)
        self._asked = batch, way
        if not self._left:
            self._left, self._used = self._pace.next(_BLOCK)
            self._block, self._seconds = self._left, 0.0
        with threads(self._used):
            begun = time.perf_counter()
            losses = self._work(batch, way)
            self._seconds += time.perf_counter() - begun
        self._left -= 1
        if not self._left:
            self._pace.took(self._seconds, self._block)
        return losses

    def forget(self) -> None:
        """Record anew: the tensors are others now."""
        if self._recorded is not None:
            self._recorded.forget()

    def _agrees(self, count: int) -> bool:
        """Whether an update with this many threads is that with one, to the last bit."""
        assert self._asked is not None
        kept = [(tensor, tensor.clone()) for tensor in self._tensors()]
        results = []
        for used in (1, count):
            with threads(used):
                self._work(*self._asked)
            results.append([tensor.clone() for tensor in self._tensors()])
            with torch.no_grad():
                for tensor, old in kept:
                    tensor.copy_(old)
        return all(torch.equal(a, b) for a, b in zip(*results, strict=True))
