"""The network that tells the expert's steps from others, as it is trained and as it scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

__all__ = ["BLOCK", "Classifier", "FoldedClassifier", "initialise"]

BLOCK = 4096
"""Rows per scored block; short blocks are padded, so every product has the same shape."""


class Classifier(nn.Module):
    """Encodes the state to a few dimensions before it meets the action.

    A plain network over both ignores the action, because states have many more dimensions.
    """

    def __init__(
        self,
        observation_size: int,
        action_size: int,
        *,
        encoder: Sequence[int] = (512, 512, 256, 128),
        head: Sequence[int] = (128, 128),
    ) -> None:
        super().__init__()
        code = 2 * action_size
        self.encoder = _stack([observation_size, *encoder, code])
        self.head = _stack([code + action_size, *head])
        self.last = _empty_linear(head[-1], 1)

    def forward(self, observations: Tensor, actions: Tensor) -> Tensor:
        """The logit of each pair, shape (batch,)."""
        code = self.encoder(observations)
        hidden = self.head(torch.cat([code, actions], dim=1))
        return cast(Tensor, self.last(hidden).squeeze(1))


class FoldedClassifier:
    """A trained classifier with its batch norms folded into its layers, for scoring."""

    def __init__(self, network: Classifier) -> None:
        self.encoder = list(_folded(network.encoder))
        self.head = list(_folded(network.head))
        self.last = (network.last.weight.detach().t(), network.last.bias.detach())

    @torch.no_grad()
    def __call__(self, observations: Tensor, actions: Tensor) -> Tensor:
        """The logit of each pair, shape (batch,)."""
        code = _through(observations, self.encoder)
        hidden = _through(torch.cat([code, actions], dim=1), self.head)
        return torch.addmm(self.last[1], hidden, self.last[0]).squeeze(1)


def initialise(network: nn.Module, rng: np.random.Generator) -> None:
    """Draw the weights of every linear layer; batch norms start neutral."""
    for module in network.modules():
        if isinstance(module, nn.Linear):
            bound = 1 / math.sqrt(module.in_features)
            for parameter in (module.weight, module.bias):
                drawn = rng.uniform(-bound, bound, size=tuple(parameter.shape))
                with torch.no_grad():
                    parameter.copy_(torch.from_numpy(drawn.astype(np.float32)))


def _empty_linear(inputs: int, outputs: int) -> nn.Linear:
    # The usual constructor would draw from torch's global generator.
    with torch.device("meta"):
        layer = nn.Linear(inputs, outputs)
    return layer.to_empty(device="cpu")


def _stack(sizes: Sequence[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [_empty_linear(inputs, outputs), nn.BatchNorm1d(outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


def _folded(stack: nn.Sequential) -> Iterator[tuple[Tensor, Tensor]]:
    """Weight (inputs, outputs) and bias of each linear layer with the batch norm after it."""
    layers = list(stack)
    for linear, norm in zip(layers[::3], layers[1::3], strict=True):
        assert isinstance(linear, nn.Linear)
        assert isinstance(norm, nn.BatchNorm1d)
        assert norm.running_mean is not None
        assert norm.running_var is not None
        factor = norm.weight.detach() / torch.sqrt(norm.running_var + norm.eps)
        weight = (linear.weight.detach() * factor[:, None]).t().contiguous()
        yield weight, (linear.bias.detach() - norm.running_mean) * factor + norm.bias.detach()


def _through(rows: Tensor, layers: list[tuple[Tensor, Tensor]]) -> Tensor:
    for weight, bias in layers:
        rows = torch.addmm(bias, rows, weight).relu_()
    return rows
