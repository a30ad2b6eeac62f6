"""The training step of behaviour cloning, written out by hand.

A network of three layers and a batch of a hundred is so little work that a general
automatic differentiation spends most of its time on bookkeeping. Here every buffer is made
once, forward and backward are eight matrix products and as few other calls as possible, noted
down beforehand with their arguments; weights and biases of all layers lie in one flat vector
(`flat_weights`), and Adam is one call over it. What can be done for many updates at once
(counting them, adding up the loss) is.

A product that adds up over the rows of a large batch does so a block of rows at a time, in
order: a longer sum would be cut up differently for every number of threads. More threads than one
are used where they are faster and where a trial update has come out the same to the last bit, so
the number of threads never changes a result. On a CUDA device a run of updates is recorded once as
a graph and replayed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from pubc.policies.cloning.flat_weights import split
from pubc.policies.cloning.thread_count import Pace
from pubc.policies.cuda_graphs import recording
from pubc.threads import threads

__all__ = ["LOG_STD", "FusedStep", "Head"]

Head = Literal["deterministic", "gaussian"]
LOG_STD = (-5.0, 2.0)
"""Bounds of the Gaussian head's log standard deviation, in units of the action range."""

Call = Callable[[], Any]
"""A call of torch with its arguments in place."""

_relu_backward = torch.ops.aten.threshold_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input
_ROWS = 512
"""Rows that one product adds up; the same for any number of threads."""
_FADED = 1e-30
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8


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
            batch: Rows per update.
            head: What the output means.
            parameters: Flat vector on the device to train on; trained in place.
            chunk: Batches that lie in the input buffers at a time.
        """
        self.device = parameters.device
        self.sizes, self.batch, self.head, self.chunk = tuple(sizes), batch, head, chunk
        self.actions = sizes[-1] // (2 if head == "gaussian" else 1)
        self.parameters = parameters
        self.first, self.second = torch.zeros_like(parameters), torch.zeros_like(parameters)
        self.step = torch.zeros((), device=self.device)
        self.rate = torch.zeros((), device=self.device)
        self._rate = 0.0
        block = _ROWS if self.device.type == "cpu" else batch
        self._blocks = [slice(start, start + block) for start in range(0, batch, block)]
        self.inputs = self._empty(chunk, batch, sizes[0] + 1)
        self.targets = self._empty(chunk, batch, self.actions)
        # Of the mean square error over everything, 2 / numbers times the error is the gradient.
        self._scale = 1.0 if head == "gaussian" else 2.0 / (batch * self.actions)
        self._wanted, self._errors = (self._empty(chunk, self.actions, batch) for _ in range(2))
        self._counted = torch.arange(1.0, chunk + 1, device=self.device)
        self._steps = torch.zeros(chunk, device=self.device)
        self._make_layers()
        self._out, self._delta = (self._empty(sizes[-1], batch) for _ in range(2))
        self._spare = self._empty(self.actions, batch)
        self._loss = torch.zeros((), dtype=torch.float64, device=self.device)
        none: list[Tensor] = []
        self._adam = ([parameters], [self._gradient], [self.first], [self.second], none)
        self._batches = [
            (self._record(*parts), [step])
            for *parts, step in zip(
                self.inputs, self.inputs.mT, self._wanted, self._errors, self._steps, strict=True
            )
        ]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._pace = Pace(2 if batch < _ROWS else 4, self._agrees)

    def _make_layers(self) -> None:
        hidden = self.sizes[1:-1]
        *self._layers, top = split(self.parameters, self.sizes)
        self._gradient = self._empty(self.parameters.numel())
        *self._by_layer, top_gradient = split(self._gradient, self.sizes)
        self._top, self._top_gradient = top.mT, top_gradient.mT
        # The last row of a layer is its bias, which passes nothing down.
        self._down = [layer[:-1].mT for layer in self._layers]
        self._top_down = self._top[:, :-1]
        # Activations with their column of ones, and the same memory without it.
        self._full = [self._ones(width) for width in hidden]
        self._turned = [full.mT for full in self._full]
        self._hidden = [full[:, :-1] for full in self._full]
        # Gradients on their way down; each then takes the place of the activations it is of.
        self._back = {width: self._empty(self.batch, width) for width in hidden}

    def _empty(self, *shape: int) -> Tensor:
        return torch.empty(shape, device=self.device)

    def _ones(self, width: int) -> Tensor:
        # A row of 256 + 1 numbers padded to whole cache lines keeps the products fast.
        padded = torch.ones(self.batch, (width + 16) // 16 * 16, device=self.device)
        return padded[:, : width + 1]

    def run(self, batches: int, learning_rate: float) -> None:
        """Update once with each of the first `batches` batches in the input buffers."""
        self._rate = learning_rate
        self.rate.fill_(learning_rate)
        self._prepare()
        if self.device.type == "cuda":
            if batches == self.chunk:
                self._replay()
            else:
                for one in self._batches[:batches]:
                    self._update(*one)
        else:
            self._run_at_pace(batches)
            self._drop_traces()
        self.step.add_(batches)
        self._add_up(self._errors[:batches])

    # Without it every call first asks whether a gradient is wanted.
    @torch.inference_mode()
    def _run_at_pace(self, batches: int) -> None:
        done = 0
        while done < batches:
            count, used = self._pace.next(batches - done)
            with threads(used):
                begun = time.perf_counter()
                for one in self._batches[done : done + count]:
                    self._update(*one)
                self._pace.took(time.perf_counter() - begun, count)
            done += count

    def _prepare(self) -> None:
        """What the updates of one run have in common."""
        torch.mul(self.targets.mT, -self._scale, out=self._wanted)
        torch.add(self._counted, self.step, out=self._steps)

    def _add_up(self, errors: Tensor) -> None:
        # One thread: a sum depends on how it is cut.
        with threads(1):
            exact = errors.double()
            self._loss.add_((exact if self.head == "gaussian" else exact.square_()).sum())

    def _drop_traces(self) -> None:
        """Forget moments that have faded to nothing.

        The momentum of a unit that never fires decays towards zero for ever. Below 1e-38 a
        processor takes a hundred times longer for each such number, and Adam twice as long.
        """
        for moment in (self.first, self.second):
            torch.hardshrink(moment, _FADED, out=moment)

    def take_loss(self) -> float:
        """Sum of the loss over the rows since the last call; each row's is a mean over actions."""
        total = float(self._loss) / self.actions
        self._loss.zero_()
        return total / self._scale**2

    def gradient(self, number: int) -> Tensor:
        """The gradient of the mean loss of one batch in the input buffers, for checks."""
        self._prepare()
        for call in self._batches[number][0]:
            call()
        self._add_up(self._errors[number])
        return self._gradient.clone()

    def _update(self, calls: Sequence[Call], step: list[Tensor]) -> None:
        for call in calls:
            call()
        # The public optimiser costs as much again in bookkeeping as this takes.
        torch._fused_adam_(
            *self._adam,
            step,
            lr=self.rate if self.device.type == "cuda" else self._rate,
            beta1=_BETAS[0],
            beta2=_BETAS[1],
            weight_decay=0.0,
            eps=_EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def _record(
        self, inputs: Tensor, turned: Tensor, wanted: Tensor, errors: Tensor
    ) -> tuple[Call, ...]:
        """Forward and backward of one batch, as calls with their arguments in place."""
        calls: list[Call] = []

        def product(a: Tensor, b: Tensor, out: Tensor) -> None:
            calls.append(partial(torch.mm, a, b, out=out))

        def over_rows(a: Tensor, b: Tensor, out: Tensor) -> None:
            first, *others = self._blocks
            product(a[:, first], b[first], out)
            calls.extend(partial(out.addmm_, a[:, rows], b[rows]) for rows in others)

        below, below_turned = inputs, turned
        for index, layer in enumerate(self._layers):
            product(below, layer, self._hidden[index])
            calls.append(self._hidden[index].relu_)
            below, below_turned = self._full[index], self._turned[index]
        product(self._top, below_turned, self._out)
        calls.append(self._out.tanh_)
        head = self._gaussian if self.head == "gaussian" else self._deterministic
        calls.extend(head(wanted, errors))
        over_rows(self._delta, below, self._top_gradient)
        delta, down = self._delta.mT, self._top_down
        for index in range(len(self._layers) - 1, -1, -1):
            hidden = self._hidden[index]
            back = self._back[hidden.shape[-1]]
            product(delta, down, back)
            calls.append(partial(_relu_backward, back, hidden, 0, grad_input=hidden))
            delta, down = hidden, self._down[index]
            over_rows(self._turned[index - 1] if index else turned, delta, self._by_layer[index])
        return tuple(calls)

    def _deterministic(self, wanted: Tensor, errors: Tensor) -> Iterator[Call]:
        """Squared error of tanh(z); leaves the gradient in `_delta`."""
        yield partial(torch.add, wanted, self._out, alpha=self._scale, out=errors)
        yield partial(_tanh_backward, errors, self._out, grad_input=self._delta)

    def _gaussian(self, wanted: Tensor, losses: Tensor) -> Iterator[Call]:
        """Negative log-likelihood; leaves the gradient in `_delta`."""
        middle, reach = sum(LOG_STD) / 2, (LOG_STD[1] - LOG_STD[0]) / 2
        mean, width = self._out[: self.actions], self._out[self.actions :]
        to_mean, to_width = self._delta[: self.actions], self._delta[self.actions :]
        yield partial(torch.mul, width, -2 * reach, out=self._spare)
        yield partial(self._spare.sub_, 2 * middle)
        yield self._spare.exp_  # the inverse variance
        yield partial(torch.add, mean, wanted, out=to_mean)
        yield partial(torch.mul, to_mean, to_mean, out=to_width)
        yield partial(to_width.mul_, self._spare)  # squared error in standard deviations
        yield partial(to_mean.mul_, self._spare)
        yield partial(torch.mul, width, reach, out=losses)
        yield partial(losses.add_, to_width, alpha=0.5)
        yield partial(losses.add_, middle)
        yield partial(to_width.sub_, 1)
        yield partial(to_width.mul_, -reach)
        yield partial(self._delta.mul_, 1.0 / (self.batch * self.actions))
        yield partial(_tanh_backward, self._delta, self._out, grad_input=self._delta)

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
            with recording(self._graph):
                for one in self._batches:
                    self._update(*one)
        self._graph.replay()

    def _mutable(self) -> tuple[Tensor, ...]:
        return self.parameters, self.first, self.second
