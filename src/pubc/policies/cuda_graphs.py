"""Updates of a learner, recorded once as CUDA graphs and replayed.

An update of a small network is a hundred small kernels, and launching them one by one takes
many times longer than running them. Without a CUDA device an update is simply called.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

__all__ = ["Batch", "Updates", "Work", "recording"]

Batch = Mapping[str, Tensor]
Work = Callable[[Batch, str], dict[str, Tensor]]
"""Maps a batch and the way that the update takes to losses; it changes tensors in place."""

_WARM_UP = 3
"""Updates before a recording, in which libraries set up what must not be set up inside one."""


@contextlib.contextmanager
def recording(graph: torch.cuda.CUDAGraph) -> Iterator[None]:
    """Record what is launched meanwhile, and collect no garbage in between.

    The garbage of an earlier run may hold recordings of its own, and to destroy one spoils the
    recording that is under way.
    """
    gc.collect()
    collects = gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(graph):
            yield
    finally:
        if collects:
            gc.enable()


class _FilledScalars(TorchFunctionMode):
    """Makes scalars on the device: a recording cannot hold a copy from the host."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is torch.tensor and isinstance(args[0], int | float):
            return torch.full((), args[0], **(kwargs or {}))
        return func(*args, **(kwargs or {}))


class Updates:
    """Calls an update, or replays its recording."""

    def __init__(
        self, work: Work, tensors: Callable[[], list[Tensor]], device: torch.device
    ) -> None:
        """Nothing is recorded yet.

        Args:
            work: The update.
            tensors: Everything that it changes; those that an update creates are asked for
                again, and begin with zeros.
            device: Where it runs.
        """
        self._work, self._tensors = work, tensors
        self._records = device.type == "cuda"
        self._inputs: dict[str, dict[str, Tensor]] = {}
        self._recorded: dict[str, tuple[torch.cuda.CUDAGraph, dict[str, Tensor]]] = {}

    def __call__(self, batch: Batch, way: str) -> dict[str, Tensor]:
        """One update. On a CUDA device the losses are overwritten by the next one."""
        if not self._records:
            return self._work(batch, way)
        if way not in self._inputs:
            self._inputs[way] = {name: torch.empty_like(rows) for name, rows in batch.items()}
        torch._foreach_copy_(list(self._inputs[way].values()), list(batch.values()))
        if way not in self._recorded:
            self._recorded[way] = self._record(way)
        graph, losses = self._recorded[way]
        graph.replay()
        return losses

    def forget(self) -> None:
        """Record anew: the tensors are others now."""
        self._recorded.clear()

    def _record(self, way: str) -> tuple[torch.cuda.CUDAGraph, dict[str, Tensor]]:
        before = [(tensor, tensor.clone()) for tensor in self._tensors()]
        known = {tensor.data_ptr() for tensor, _ in before}
        drawn = torch.cuda.get_rng_state()
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UP):
                self._work(self._inputs[way], way)
        torch.cuda.current_stream().wait_stream(aside)
        # The warm-up leaves no trace: a run that continues records at another update.
        with torch.no_grad():
            for tensor, value in before:
                tensor.copy_(value)
            for tensor in self._tensors():
                if tensor.data_ptr() not in known:
                    tensor.zero_()
        graph = torch.cuda.CUDAGraph()
        with _FilledScalars(), recording(graph):
            losses = self._work(self._inputs[way], way)
        torch.cuda.set_rng_state(drawn)
        return graph, losses
