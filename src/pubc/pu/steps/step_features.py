"""Features of a state that make imitators linear: random waves, and what a small network learns.

The network predicts every action of the pile, whoever acted, so what it learns tells nobody
apart; it only finds out which directions of the state matter for acting. Imitators of the expert
and of everybody else are then closed form, and fitting them without some trajectories costs
next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from pubc.nets import GroupedAdam
from pubc.pu.steps.step_settings import StepSettings

__all__ = ["Features", "draw_features"]

_SCALES = (0.4, 1.0)
_BATCH = 128
_PACE = 3e-3


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """From a state to its features; every look at a pile has its own."""

    waves: Tensor
    """Frequencies and, in the last row, phases, shape (state dimensions + 1, waves)."""
    layers: tuple[tuple[Tensor, Tensor], ...]
    """Weights and offsets of the network below its last layer."""

    def of(self, states: Tensor) -> Tensor:
        """Features of each state, shape (steps, features)."""
        root = 2**0.5
        learned = states
        for weights, offset in self.layers:
            learned = torch.tanh(learned @ weights + offset)
        waves = torch.cos(states @ self.waves[:-1] + self.waves[-1])
        one = states.new_ones(len(states), 1)
        return torch.cat([waves * root, learned * root, states, one], 1)


def draw_features(
    states: Tensor,
    actions: Tensor,
    weights: Tensor,
    settings: StepSettings,
    rng: np.random.Generator,
) -> Features:
    """Draw waves and train the network.

    Args:
        states: Steps to learn from, shape (steps, state dimensions).
        actions: What was done there, shape (steps, action dimensions).
        weights: How much each step counts.
        settings: Sizes.
        rng: All randomness.
    """
    size = states.shape[1]
    parts = []
    for scale in _SCALES:
        drawn = rng.standard_normal((size, settings.waves)) * scale / np.sqrt(max(1, size))
        phase = rng.uniform(0, 2 * np.pi, (1, settings.waves))
        parts.append(np.concatenate([drawn, phase]))
    waves = torch.from_numpy(np.concatenate(parts, axis=1).astype(np.float32))
    return Features(waves, _learn(states, actions, weights, settings, rng))


def _learn(
    states: Tensor,
    actions: Tensor,
    weights: Tensor,
    settings: StepSettings,
    rng: np.random.Generator,
) -> tuple[tuple[Tensor, Tensor], ...]:
    shape = (states.shape[1], settings.width, settings.width, actions.shape[1])
    layers = []
    for wide, many in pairwise(shape):
        drawn = rng.standard_normal((wide, many)) / np.sqrt(max(1, wide))
        layers.append((torch.from_numpy(drawn.astype(np.float32)), torch.zeros(many)))
    flat = [part.requires_grad_() for layer in layers for part in layer]
    optimiser = GroupedAdam([(flat, _PACE)])
    odds = weights.double().numpy()
    drawn = rng.choice(len(states), (settings.updates, _BATCH), p=odds / odds.sum())
    for update, rows in enumerate(torch.from_numpy(drawn)):
        optimiser.learning_rates = [_PACE * (1 - update / settings.updates)]
        hidden = states[rows]
        for number, (weight, offset) in enumerate(layers):
            hidden = hidden @ weight + offset
            hidden = hidden if number == len(layers) - 1 else torch.tanh(hidden)
        (hidden - actions[rows]).abs().mean().backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    return tuple((weight.detach(), offset.detach()) for weight, offset in layers[:-1])
