"""The optimisers of classifiers, imitators and whatever else a filter trains.

The class `torch.optim.Adam` imports torch's whole compiler at its first use, which takes longer
than a filter needs for a small pile.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.optim.adam import adam

__all__ = ["Adam", "GroupedAdam"]


class Adam:
    """Adam over all parameters as one flat vector: a few operations, whatever their number.

    Weight decay is decoupled, as in AdamW.
    """

    def __init__(
        self,
        parameters: Sequence[Tensor],
        *,
        learning_rate: float,
        betas: tuple[float, float] = (0.9, 0.999),
        weight_decay: float = 0.0,
    ) -> None:
        self.learning_rate, self.betas, self.weight_decay = learning_rate, betas, weight_decay
        self.flat = torch.cat([parameter.detach().reshape(-1) for parameter in parameters])
        self.gradient = torch.zeros_like(self.flat)
        self.mean, self.square = torch.zeros_like(self.flat), torch.zeros_like(self.flat)
        self.updates = 0
        start = 0
        for parameter in parameters:
            part = slice(start, start + parameter.numel())
            # Parameters and gradients become windows into the flat vectors.
            parameter.data = self.flat[part].view_as(parameter)
            parameter.grad = self.gradient[part].view_as(parameter)
            start = part.stop

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters along the gradient, and clear it."""
        self.updates += 1
        one, two = self.betas
        self.mean.lerp_(self.gradient, 1 - one)
        self.square.mul_(two).addcmul_(self.gradient, self.gradient, value=1 - two)
        spread = self.square.sqrt().div_(math.sqrt(1 - two**self.updates)).add_(1e-8)
        if self.weight_decay:
            self.flat.mul_(1 - self.learning_rate * self.weight_decay)
        rate = self.learning_rate / (1 - one**self.updates)
        self.flat.addcdiv_(self.mean, spread, value=-rate)
        self.gradient.zero_()


class GroupedAdam:
    """`torch.optim.Adam` to the bit, for groups of parameters with a learning rate each."""

    def __init__(self, groups: Sequence[tuple[Sequence[Tensor], float]]) -> None:
        """Nothing has moved yet.

        Args:
            groups: Parameters that are trained, and how fast.
        """
        self.groups = [list(parameters) for parameters, _ in groups]
        self.learning_rates = [rate for _, rate in groups]
        self._means = [[torch.zeros_like(p) for p in group] for group in self.groups]
        self._squares = [[torch.zeros_like(p) for p in group] for group in self.groups]
        self._counts = [[torch.tensor(0.0) for _ in group] for group in self.groups]

    @torch.no_grad()
    def step(self) -> None:
        """Move the parameters along their gradients, and forget those."""
        for index, group in enumerate(self.groups):
            adam(
                group,
                [parameter.grad for parameter in group if parameter.grad is not None],
                self._means[index],
                self._squares[index],
                [],
                self._counts[index],
                amsgrad=False,
                beta1=0.9,
                beta2=0.999,
                lr=self.learning_rates[index],
                weight_decay=0.0,
                eps=1e-8,
                maximize=False,
            )
            for parameter in group:
                parameter.grad = None
