"""Small networks that imitate what they are shown, trained several at a time.

A few networks of one shape are trained as one batched product, which costs little more than
a single one. How badly a network predicts the actions of a step is the step's residual; its
logarithm, averaged over a trajectory, says how foreign the trajectory is to the imitator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import smooth_l1_loss

from pubc.errors import DataError, InterruptedRun
from pubc.nets import Adam

__all__ = ["Imitators", "train_imitators"]

Floats = NDArray[np.float32]
Pool = tuple[Floats, Floats]
BLOCK, BLOCK_ON_GPU = 2048, 65_536
"""Rows scored together: what passes between layers stays in a processor's cache, or is worth
starting a graphics card for."""
SEGMENTS = 5
"""Parts of a training whose mean losses are reported."""
HIDDEN = (128, 128)
"""Width of each hidden layer."""
BATCH = 128
"""Steps per update and network."""
LEARNING_RATE = 2e-3
"""Largest step size; it rises for 20 updates and then falls along a cosine."""
WEIGHT_DECAY = 1e-4
"""Of AdamW."""
FLOOR = 1e-2
"""Added to residuals, in spreads of the seeds' actions, so that a perfectly predicted step does
not outweigh all others."""


@dataclass(frozen=True, slots=True, eq=False)
class Imitators:
    """Trained networks of one shape."""

    layers: tuple[tuple[Tensor, Tensor], ...]
    """Weights (members, inputs, outputs) and biases (members, 1, outputs)."""
    floor: float
    """Added to residuals."""

    @property
    def members(self) -> int:
        """How many networks."""
        return len(self.layers[0][0])

    @torch.no_grad()
    def residuals(
        self,
        states: Floats,
        actions: Floats,
        *,
        stop: Callable[[], bool] = lambda: False,
    ) -> Floats:
        """Log residual of every row under every network, shape (members, rows).

        Args:
            states: Rows of states.
            actions: The actions taken there.
            stop: Asked between blocks.

        Raises:
            InterruptedRun: `stop` said so.
        """
        rows, device = len(states), self.layers[0][0].device
        block = BLOCK if device.type == "cpu" else BLOCK_ON_GPU
        found = np.empty((self.members, rows), np.float32)
        for start in range(0, rows, block):
            if stop():
                raise InterruptedRun("Stopped while scoring.")
            end = min(start + block, rows)
            x = _padded(states[start:end], block).to(device)
            y = _padded(actions[start:end], block).to(device)
            wrong = (_forward(self.layers, x.expand(self.members, -1, -1)) - y).abs_().mean(dim=2)
            logs = wrong.add_(self.floor).log_()
            found[:, start:end] = logs[:, : end - start].cpu().numpy()
        return found

    def tensors(self) -> dict[str, Tensor]:
        """For a file of weights."""
        named: dict[str, Tensor] = {}
        for number, (weight, bias) in enumerate(self.layers):
            named |= {f"layer{number}.weight": weight, f"layer{number}.bias": bias}
        return named


def train_imitators(
    pools: Sequence[Pool],
    updates: int,
    rng: np.random.Generator,
    *,
    device: torch.device,
    stop: Callable[[], bool],
) -> tuple[Imitators, list[float]]:
    """Train one imitator for each pool of states and actions.

    Returns:
        The networks, and their mean loss in each fifth of the training.

    Raises:
        InterruptedRun: `stop` said so.
        DataError: The loss left the numbers.
    """
    states = [torch.from_numpy(x).to(device) for x, _ in pools]
    actions = [torch.from_numpy(y).to(device) for _, y in pools]
    layers = _draw((states[0].shape[1], *HIDDEN, actions[0].shape[1]), len(pools), rng, device)
    optimiser = Adam(
        [tensor for layer in layers for tensor in layer],
        learning_rate=LEARNING_RATE,
        betas=(0.9, 0.99),
        weight_decay=WEIGHT_DECAY,
    )
    totals = torch.zeros(SEGMENTS, device=device)
    for update in range(updates):
        if stop():
            raise InterruptedRun("Stopped while training.")
        fall = 0.5 * (1 + math.cos(math.pi * update / updates))
        optimiser.learning_rate = LEARNING_RATE * fall * min(1.0, (update + 1) / 20)
        rows = [torch.from_numpy(rng.integers(0, len(x), BATCH)).to(device) for x in states]
        x = torch.stack([part.index_select(0, i) for part, i in zip(states, rows, strict=True)])
        y = torch.stack([part.index_select(0, i) for part, i in zip(actions, rows, strict=True)])
        wrong = smooth_l1_loss(_forward(layers, x), y, beta=0.1, reduction="none")
        loss = wrong.mean(dim=(1, 2)).sum()
        torch.autograd.backward(loss)
        optimiser.step()
        totals[update * SEGMENTS // updates] += loss.detach()
    per = len(pools) * updates / SEGMENTS
    history = [float(total) / per for total in totals.cpu()]
    if not all(map(math.isfinite, history)):
        raise DataError(
            "The training loss of an imitator is not a number. Look for extreme values with "
            "`pubc inspect`.",
            code="diverged",
        )
    done = tuple((weight.detach(), bias.detach()) for weight, bias in layers)
    return Imitators(done, FLOOR), history


def _draw(
    sizes: Sequence[int], members: int, rng: np.random.Generator, device: torch.device
) -> list[tuple[Tensor, Tensor]]:
    """Fresh layers; the last one starts small, so that the first guess is the mean action."""
    layers = []
    for number, (inputs, outputs) in enumerate(itertools.pairwise(sizes)):
        weight = rng.standard_normal((members, inputs, outputs), dtype=np.float32)
        weight *= math.sqrt(2.0 / inputs) * (0.1 if number == len(sizes) - 2 else 1.0)
        bias = torch.zeros(members, 1, outputs, device=device, requires_grad=True)
        layers.append((torch.from_numpy(weight).to(device).requires_grad_(), bias))
    return layers


def _forward(layers: Sequence[tuple[Tensor, Tensor]], rows: Tensor) -> Tensor:
    for number, (weight, bias) in enumerate(layers):
        rows = torch.baddbmm(bias, rows, weight)
        if number < len(layers) - 1:
            rows = rows.relu_()
    return rows


def _padded(rows: Floats, block: int) -> Tensor:
    """Rows filled up to a full block, so that every product has the same shape."""
    if len(rows) == block:
        return torch.from_numpy(np.ascontiguousarray(rows))
    full = np.zeros((block, rows.shape[1]), np.float32)
    full[: len(rows)] = rows
    return torch.from_numpy(full)
