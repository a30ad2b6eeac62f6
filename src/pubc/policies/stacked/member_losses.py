"""What the learners of offline reinforcement learning share: critics, densities, the protocol.

Written from the learners' papers; numbers that these leave open are those of d3rlpy, with whose
single updates the tests compare every learner. All randomness of an update is a column of its
batch, so an update is a plain function and can be recorded as one CUDA graph.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping

import torch
from torch import Tensor

from pubc.policies.networks import Layer
from pubc.policies.stacked.stacked_networks import StackedNet, Stepper, by_heads

__all__ = ["DISCOUNT", "TAU", "StackedLearner", "q_values", "regress", "unit_log_density"]

DISCOUNT = 0.99
"""Of future rewards."""
TAU = 0.005
"""Share of the way that a target network moves after an update."""


class StackedLearner(ABC):
    """One kind of learner for many members: all their weights, and one update of them."""

    actor: Stepper
    """Trains the policies."""
    judge: Stepper
    """Trains the critics."""

    @abstractmethod
    def update(self, batch: Mapping[str, Tensor], way: str) -> dict[str, Tensor]:
        """One update of every member.

        Args:
            batch: Columns of shape (members, batch, ...), with what `noise` asks for.
            way: The `way` of this update.

        Returns:
            Losses by name, each of shape (members,).
        """

    @abstractmethod
    def targets(self) -> dict[str, StackedNet]:
        """The networks that follow others."""

    @abstractmethod
    def policy_layers(self, member: int) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
        """What a policy of a member is made of: its layers, and those of a decoder if any."""

    def way(self, number: int) -> str:
        """Which of its ways an update takes: the same for all that do the same work."""
        return "all"

    def noise(self, way: str, batch: int, actions: int) -> dict[str, tuple[int, ...]]:
        """Normal numbers that one update of one member draws: name to shape, in order."""
        return {}

    def steppers(self) -> dict[str, Stepper]:
        """Everything that is trained."""
        return {"actor": self.actor, "judge": self.judge}


def q_values(critic: StackedNet, seen: Tensor, acted: Tensor, heads: int) -> Tensor:
    """What each head of each member's critic expects, shape (members, heads, batch)."""
    pairs = by_heads(torch.cat([seen, acted], dim=-1), heads)
    return critic(pairs)[..., 0].view(len(seen), heads, -1)


def regress(values: Tensor, wanted: Tensor) -> Tensor:
    """Mean squared error of each head, summed over the heads of a member, shape (members,)."""
    return (values - wanted[:, None]).square().mean(dim=2).sum(dim=1)


def unit_log_density(actions: Tensor, mean: Tensor, log_width: Tensor) -> Tensor:
    """Log density of actions under independent Gaussians, shape (members, batch)."""
    error = (actions - mean) * torch.exp(-log_width)
    density = -0.5 * error.square() - log_width - 0.5 * math.log(2 * math.pi)
    return density.sum(dim=-1)
