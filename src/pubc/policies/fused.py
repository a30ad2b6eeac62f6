"""The training step of behaviour cloning, written out by hand.

A network of three layers and a batch of a hundred is so little work that a general
automatic differentiation spends most of its time on bookkeeping. Here every buffer is made
once, forward and backward are a dozen matrix products, weights and biases of all layers lie
in one flat vector, and Adam is one call over it.

Large batches are cut into shards that depend on the batch size alone; one product handles all
shards, and shards are added in a fixed order. More threads than one are used where they are
faster and where a trial update has come out the same to the last bit, so the number of threads
never changes a result. On a CUDA device a run of updates is recorded once as a graph and
replayed.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pubc.errors import UsageError

__all__ = ["LOG_STD", "FusedStep", "Head", "initial_parameters", "shards_of", "split", "threads"]

Head = Literal["deterministic", "gaussian"]
LOG_STD = (-5.0, 2.0)
"""Bounds of the Gaussian head's log standard deviation, in units of the action range."""

_relu_backward = torch.ops.aten.threshold_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input
_mean_square_backward = torch.ops.aten.mse_loss_backward.grad_input
_FADED = 1e-30
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


def shards_of(batch: int) -> int:
    """Into how many parts a batch is cut: enough for the cores, each large enough to pay."""
    return 1 if batch < 512 else 4


def split(flat: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """The layers inside a flat vector: views of shape (inputs + 1, outputs), bias last."""
    layers, start = [], 0
    for inputs, outputs in itertools.pairwise(sizes):
        count = (inputs + 1) * outputs
        part = flat[..., start : start + count]
        layers.append(part.view(*flat.shape[:-1], inputs + 1, outputs))
        start += count
    return layers


def initial_parameters(sizes: Sequence[int], rng: np.random.Generator) -> NDArray[np.float32]:
    """A flat vector of fresh weights and biases, uniform in 1/sqrt(inputs)."""
    parts = []
    for inputs, outputs in itertools.pairwise(sizes):
        bound = 1 / math.sqrt(inputs)
        parts.append(rng.uniform(-bound, bound, size=(inputs + 1) * outputs))
    return np.concatenate(parts).astype(np.float32)


@contextlib.contextmanager
def threads(limit: int) -> Iterator[None]:
    """At most this many threads for torch inside; what was there before outside."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, min(limit, before)))
    try:
        yield
    finally:
        torch.set_num_threads(before)


class Pace:
    """Chooses the number of threads by the clock; it changes the speed and nothing else.

    Threads that wait for one another spin. Beside other busy processes that makes two threads
    many times slower than one. So work begins with one, and now and then all are tried.
    """

    _TRIAL = 4
    """Updates per trial."""
    _SHARE = 20
    """Trials take at most one part in this many of the time."""
    _FIRST = 0.2
    """Seconds of work before the first trial; less work than that needs no help."""

    def __init__(self, most: int, agrees: Callable[[int], bool]) -> None:
        """Start with one thread.

        Args:
            most: Threads that could have something to do.
            agrees: Whether so many threads give the result of one; asked once.
        """
        self._choices = sorted({1, min(most, torch.get_num_threads())})
        self._agrees: Callable[[int], bool] | None = agrees
        self._best = 1
        self._trials: list[int] = []
        self._seconds: dict[int, float] = {}
        self._until_next = self._FIRST

    def next(self, left: int) -> tuple[int, int]:
        """How many updates to do next, and with how many threads."""
        if not self._trials and len(self._choices) > 1 and self._until_next <= 0:
            if self._agrees is not None and not self._agrees(self._choices[-1]):
                self._choices = [1]
                return left, 1
            self._agrees = None
            self._trials = list(self._choices)
        if self._trials:
            return min(self._TRIAL, left), self._trials[0]
        return left, self._best

    def took(self, seconds: float, updates: int) -> None:
        """Say how long the updates took."""
        if not self._trials:
            self._until_next -= seconds
            return
        self._seconds[self._trials.pop(0)] = seconds / updates
        if not self._trials:
            self._best = min(self._choices, key=self._seconds.__getitem__)
            self._until_next = self._SHARE * self._TRIAL * sum(self._seconds.values())


class FusedStep:
    """Forward, backward and Adam for one network and one batch size."""

    def __init__(
        self,
        sizes: Sequence[int],
        batch: int,
        head: Head,
        parameters: Tensor,
        *,
        chunk: int,
    ) -> None:
        """Make every buffer, and every view of one, so that an update makes none.

        Args:
            sizes: Width of each layer, from the observation to the output; the output has
                two numbers per action dimension for the Gaussian head.
            batch: Rows per update; a multiple of its shards.
            head: What the output means.
            parameters: Flat vector on the device to train on; trained in place.
            chunk: Batches that lie in the input buffers at a time.
        """
        self.device = parameters.device
        self.shards = shards_of(batch) if self.device.type == "cpu" else 1
        if batch % self.shards:
            raise UsageError(f"The batch size must be a multiple of {self.shards}. Got {batch}.")
        self.sizes, self.batch, self.head, self.chunk = tuple(sizes), batch, head, chunk
        self.actions = sizes[-1] // (2 if head == "gaussian" else 1)
        self.parameters = parameters
        self.first, self.second = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self.step = torch.zeros((), device=self.device)
        self.rate = torch.zeros((), device=self.device)
        self._rate = 0.0
        self._shape = (batch,) if self.shards == 1 else (self.shards, batch // self.shards)
        self._product = torch.mm if self.shards == 1 else torch.bmm
        self.inputs = self._empty(chunk, *self._shape, sizes[0] + 1)
        self.targets = self._empty(chunk, *self._shape, self.actions)
        self._batches = [
            (x, x.mT, y) for x, y in zip(self.inputs.unbind(0), self.targets.unbind(0), strict=True)
        ]
        self._make_layers()
        self._out, self._delta = (self._empty(*self._shape, sizes[-1]) for _ in range(2))
        self._spare = self._empty(*self._shape, self.actions)
        self._losses = torch.zeros(*self._shape, self.actions, device=self.device)
        self._one = torch.ones((), device=self.device)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._pace = Pace(self.shards if self.shards > 1 else 2, self._agrees)

    def _make_layers(self) -> None:
        hidden = self.sizes[1:-1]
        layers = split(self.parameters, self.sizes)
        flat = self._empty(*self._shape[:-1], self.parameters.numel())
        self._gradients = [flat] if self.shards == 1 else list(flat.unbind(0))
        self._by_layer = split(flat, self.sizes)
        self._layers = layers
        if self.shards > 1:
            self._layers = [layer.expand(self.shards, *layer.shape) for layer in layers]
        # The last row of a layer is its bias, which passes nothing down.
        self._down = [layer[..., :-1, :].mT for layer in self._layers]
        # Activations with their column of ones, and the same memory without it.
        self._full = [self._ones(width) for width in hidden]
        self._turned = [full.mT for full in self._full]
        self._hidden = [full[..., :-1] for full in self._full]
        self._back = [self._empty(*self._shape, width) for width in hidden]

    def _empty(self, *shape: int) -> Tensor:
        return torch.empty(shape, device=self.device)

    def _ones(self, width: int) -> Tensor:
        # A row of 256 + 1 numbers padded to whole cache lines keeps the products fast.
        padded = torch.ones(*self._shape, (width + 16) // 16 * 16, device=self.device)
        return padded[..., : width + 1]

    def run(self, batches: int, learning_rate: float) -> None:
        """Update once with each of the first `batches` batches in the input buffers."""
        self._rate = learning_rate
        self.rate.fill_(learning_rate)
        if self.device.type == "cuda":
            if batches == self.chunk:
                self._replay()
            else:
                for one in self._batches[:batches]:
                    self._update(*one)
            return
        done = 0
        while done < batches:
            count, used = self._pace.next(batches - done)
            with threads(used):
                begun = time.perf_counter()
                for one in self._batches[done : done + count]:
                    self._update(*one)
                self._pace.took(time.perf_counter() - begun, count)
            done += count
        self._drop_traces()

    def _drop_traces(self) -> None:
        """Forget moments that have faded to nothing.

        The momentum of a unit that never fires decays towards zero for ever. Below 1e-38 a
        processor takes a hundred times longer for each such number, and Adam twice as long.
        """
        for moment in (self.first, self.second):
            torch.hardshrink(moment, _FADED, out=moment)

    def take_loss(self) -> float:
        """Sum of the loss over the rows since the last call; each row's is a mean over actions."""
        total = float(self._losses.double().sum()) / self.actions
        self._losses.zero_()
        # The deterministic head keeps squares of its gradient, (2 / numbers) times the error.
        rows = self.batch * self.actions
        return total if self.head == "gaussian" else total * (rows / 2) ** 2

    def gradient(self, number: int) -> Tensor:
        """The gradient of the mean loss of one batch in the input buffers, for checks."""
        self._backward(*self._batches[number])
        return torch.stack(self._gradients).sum(dim=0)

    def _update(self, inputs: Tensor, turned: Tensor, targets: Tensor) -> None:
        self._backward(inputs, turned, targets)
        total = self._gradients[0]
        for other in self._gradients[1:]:
            total.add_(other)
        self.step.add_(1)
        # The public optimiser costs as much again in bookkeeping as this takes.
        torch._fused_adam_(
            [self.parameters],
            [total],
            [self.first],
            [self.second],
            [],
            [self.step],
            lr=self.rate if self.device.type == "cuda" else self._rate,
            beta1=_BETAS[0],
            beta2=_BETAS[1],
            weight_decay=0.0,
            eps=_EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def _backward(self, inputs: Tensor, turned: Tensor, targets: Tensor) -> None:
        product, below = self._product, inputs
        for layer, full, hidden in zip(self._layers, self._full, self._hidden, strict=False):
            product(below, layer, out=hidden)
            hidden.relu_()
            below = full
        product(below, self._layers[-1], out=self._out)
        self._out.tanh_()
        if self.head == "gaussian":
            self._gaussian(targets)
        else:
            self._deterministic(targets)
        delta = self._delta
        for index in range(len(self._layers) - 1, 0, -1):
            product(self._turned[index - 1], delta, out=self._by_layer[index])
            back = self._back[index - 1]
            product(delta, self._down[index], out=back)
            _relu_backward(back, self._hidden[index - 1], 0, grad_input=back)
            delta = back
        product(turned, delta, out=self._by_layer[0])

    def _deterministic(self, targets: Tensor) -> None:
        """Squared error of tanh(z); leaves the gradient in `_delta`."""
        _mean_square_backward(self._one, self._out, targets, 1, grad_input=self._delta)
        self._losses.addcmul_(self._delta, self._delta)
        _tanh_backward(self._delta, self._out, grad_input=self._delta)

    def _gaussian(self, targets: Tensor) -> None:
        """Negative log-likelihood; leaves the gradient in `_delta`."""
        middle, reach = sum(LOG_STD) / 2, (LOG_STD[1] - LOG_STD[0]) / 2
        mean, width = self._out[..., : self.actions], self._out[..., self.actions :]
        to_mean, to_width = self._delta[..., : self.actions], self._delta[..., self.actions :]
        torch.mul(width, -2 * reach, out=self._spare)
        self._spare.sub_(2 * middle).exp_()  # the inverse variance
        torch.sub(mean, targets, out=to_mean)
        torch.mul(to_mean, to_mean, out=to_width)
        to_width.mul_(self._spare)  # squared error in standard deviations
        to_mean.mul_(self._spare)
        self._losses.add_(to_width, alpha=0.5).add_(width, alpha=reach).add_(middle)
        to_width.sub_(1).mul_(-reach)
        self._delta.mul_(1.0 / (self.batch * self.actions))
        _tanh_backward(self._delta, self._out, grad_input=self._delta)

    def _agrees(self, count: int) -> bool:
        """Whether an update with this many threads is that with one, to the last bit."""
        kept = [tensor.clone() for tensor in self._mutable()]
        results = []
        for used in (1, count):
            with threads(used):
                self._update(*self._batches[0])
            results.append([tensor.clone() for tensor in self._mutable()])
            for tensor, old in zip(self._mutable(), kept, strict=True):
                tensor.copy_(old)
        return all(torch.equal(a, b) for a, b in zip(*results, strict=True))

    def _replay(self) -> None:
        if self._graph is None:
            kept = [tensor.clone() for tensor in self._mutable()]
            # CUDA wants a run on a side stream before it records.
            side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
            side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                self._update(*self._batches[0])
            torch.cuda.current_stream().wait_stream(side)
            for tensor, old in zip(self._mutable(), kept, strict=True):
                tensor.copy_(old)
            self._graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self._graph):
                for one in self._batches:
                    self._update(*one)
        self._graph.replay()

    def _mutable(self) -> tuple[Tensor, ...]:
        return self.parameters, self.first, self.second, self.step, self._losses
