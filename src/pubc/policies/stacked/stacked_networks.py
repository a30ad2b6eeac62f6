"""Networks of one shape side by side, so that one batched product serves all of them.

Members never meet: a loss is the sum of the members' own, so every weight gets the gradient
that it would get alone, and Adam works on each number by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pubc.policies.networks import Layer, layers_from_flat
from pubc.trajectory import Array

__all__ = [
    "StackedNet",
    "Stepper",
    "by_heads",
    "linears",
    "stack_flat",
    "stack_layers",
    "with_widths",
]

Layers = Sequence[tuple[Tensor, Tensor]]
"""Weight (inputs, outputs) and bias (outputs,) of each layer of one network."""


class StackedNet:
    """Layers with ReLU between, for `networks` networks at once."""

    def __init__(self, weights: Sequence[Tensor], biases: Sequence[Tensor]) -> None:
        """Take the layers as they are.

        Args:
            weights: Each of shape (networks, inputs, outputs).
            biases: Each of shape (networks, 1, outputs).
        """
        self.weights, self.biases = list(weights), list(biases)

    def __call__(self, x: Tensor) -> Tensor:
        """Outputs (networks, batch, outputs) of inputs (networks, batch, inputs)."""
        last = len(self.weights) - 1
        for index, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x, weight)
            if index < last:
                x = torch.relu(x)
        return x

    @property
    def parameters(self) -> list[Tensor]:
        """Every tensor, in a fixed order."""
        return [*self.weights, *self.biases]

    def twin(self) -> StackedNet:
        """A copy that is not trained: a target network."""
        return StackedNet(*([t.detach().clone() for t in ts] for ts in (self.weights, self.biases)))

    @torch.no_grad()
    def follow(self, other: StackedNet, share: float) -> None:
        """Move this share of the way to another network; all of it copies."""
        torch._foreach_lerp_(self.parameters, other.parameters, share)

    def every(self, heads: int, head: int) -> StackedNet:
        """One of several heads of every member, sharing the weights."""
        return StackedNet(
            *(
                [t.view(-1, heads, *t.shape[1:])[:, head] for t in tensors]
                for tensors in (self.weights, self.biases)
            )
        )

    def layers(self, network: int) -> tuple[Layer, ...]:
        """The layers of one network, as a policy takes them."""
        return tuple(
            (
                weight[network].detach().cpu().numpy().copy(),
                bias[network, 0].detach().cpu().numpy().copy(),
            )
            for weight, bias in zip(self.weights, self.biases, strict=True)
        )


def stack_layers(networks: Sequence[Layers], device: torch.device) -> StackedNet:
    """Networks of one shape as one, ready to be trained."""

    def trainable(tensors: Sequence[Tensor]) -> nn.Parameter:
        return nn.Parameter(torch.stack([t.detach() for t in tensors]).contiguous().to(device))

    return StackedNet(
        [trainable([weight for weight, _ in layer]) for layer in zip(*networks, strict=True)],
        [trainable([bias[None] for _, bias in layer]) for layer in zip(*networks, strict=True)],
    )


def stack_flat(flats: Sequence[Array], sizes: Sequence[int], device: torch.device) -> StackedNet:
    """Networks whose weights lie in flat vectors, as `cloning.flat_weights` makes them."""
    return stack_layers(
        [
            [(torch.from_numpy(w), torch.from_numpy(b)) for w, b in layers_from_flat(flat, sizes)]
            for flat in flats
        ],
        device,
    )


def linears(*parts: nn.Module) -> Layers:
    """The linear layers inside torch modules, in order."""
    found = [m for part in parts for m in part.modules() if isinstance(m, nn.Linear)]
    return [(m.weight.detach().T, m.bias.detach()) for m in found]


def with_widths(module: Any) -> Layers:
    """The layers of a Gaussian network of d3rlpy, means and widths as one last layer."""
    ends = [*linears(module._mu), *linears(module._logstd)]
    last = torch.cat([w for w, _ in ends], dim=1), torch.cat([b for _, b in ends])
    return [*linears(module._encoder), last]


def by_heads(x: Tensor, heads: int) -> Tensor:
    """Inputs (members, batch, n) repeated for each head, (members * heads, batch, n)."""
    if heads == 1:
        return x
    return x[:, None].expand(-1, heads, -1, -1).reshape(-1, *x.shape[1:])


class Stepper:
    """Adam over the stacked tensors of one group, with gradients of that group alone."""

    def __init__(self, tensors: Sequence[Tensor], rate: float, *, decay: float = 0.0) -> None:
        """Nothing has moved yet.

        Args:
            tensors: What is trained.
            rate: Learning rate.
            decay: Weight decay, as part of the gradient.
        """
        self.tensors = list(tensors)
        recorded = self.tensors[0].is_cuda
        self.adam = torch.optim.Adam(
            self.tensors, lr=rate, weight_decay=decay, fused=True, capturable=recorded
        )

    def step(self, losses: Tensor) -> None:
        """One step down the losses of all members, shape (members,)."""
        found = torch.autograd.grad(losses.sum(), self.tensors)
        for tensor, gradient in zip(self.tensors, found, strict=True):
            tensor.grad = gradient
        self.adam.step()

    def changed(self) -> Iterator[tuple[str, Tensor]]:
        """Every tensor that a step changes, by a name; moments only once there are some."""
        for index, tensor in enumerate(self.tensors):
            yield f"{index}.value", tensor.detach()
            for key, value in sorted(self.adam.state[tensor].items()):
                yield f"{index}.{key}", value

    def restore(self, arrays: Mapping[str, Array], prefix: str) -> None:
        """Go back to what `changed` gave, each name after the prefix."""
        for index, tensor in enumerate(self.tensors):
            with torch.no_grad():
                tensor.copy_(torch.from_numpy(np.array(arrays[f"{prefix}{index}.value"])))
            state: dict[str, Any] = self.adam.state[tensor]
            for key in ("exp_avg", "exp_avg_sq", "step"):
                with contextlib.suppress(KeyError):
                    saved = torch.from_numpy(np.array(arrays[f"{prefix}{index}.{key}"]))
                    # On a CPU the count of steps stays there, and so it does without recordings.
                    state[key] = saved.to(tensor.device)
