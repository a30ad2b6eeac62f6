"""TD3+BC (Fujimoto and Gu, 2021) for many members at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pubc.policies.networks import Layer
from pubc.policies.stacked.member_losses import (
    DISCOUNT,
    TAU,
    StackedLearner,
    q_values,
    regress,
)
from pubc.policies.stacked.stacked_networks import StackedNet, Stepper, linears, stack_layers

__all__ = ["StackedTD3BC"]

_SMOOTHING = 0.2
_MOST_SMOOTHING = 0.5
_DELAY = 2
"""The policy takes a step in every second update."""


class StackedTD3BC(StackedLearner):
    """Two critics; the policy climbs the first one and stays near the recorded actions."""

    heads = 2

    def __init__(
        self, modules: Sequence[Any], chosen: Mapping[str, Any], device: torch.device
    ) -> None:
        self.alpha = chosen["alpha"]
        self.critic = stack_layers([linears(q) for m in modules for q in m.q_funcs], device)
        self.policy = stack_layers([linears(m.policy) for m in modules], device)
        self.target, self.target_policy = self.critic.twin(), self.policy.twin()
        self.judge = Stepper(self.critic.parameters, chosen["critic_learning_rate"])
        self.actor = Stepper(self.policy.parameters, chosen["actor_learning_rate"])

    def way(self, number: int) -> str:
        """Every second update trains the critics alone."""
        return "all" if number % _DELAY == 0 else "critic"

    def noise(self, way: str, batch: int, actions: int) -> dict[str, tuple[int, ...]]:
        """For the action that follows."""
        return {"smoothing": (batch, actions)}

    def update(self, batch: Mapping[str, Tensor], way: str) -> dict[str, Tensor]:
        """One update of every member."""
        seen, acted, after = batch["observations"], batch["actions"], batch["next_observations"]
        with torch.no_grad():
            smooth = (_SMOOTHING * batch["smoothing"]).clamp(-_MOST_SMOOTHING, _MOST_SMOOTHING)
            action = (torch.tanh(self.target_policy(after)) + smooth).clamp(-1, 1)
            follow = q_values(self.target, after, action, self.heads).amin(dim=1)
            wanted = batch["rewards"] + DISCOUNT * follow * (1 - batch["terminals"])
        critic_loss = regress(q_values(self.critic, seen, acted, self.heads), wanted)
        self.judge.step(critic_loss)
        losses = {"critic_loss": critic_loss.detach()}
        if way == "critic":
            return losses
        mine = torch.tanh(self.policy(seen))
        value = q_values(self.critic.every(self.heads, 0), seen, mine, 1)[:, 0]
        scale = self.alpha / value.abs().mean(dim=1).detach()
        bc_loss = (acted - mine).square().mean(dim=(1, 2))
        actor_loss = bc_loss - scale * value.mean(dim=1)
        self.actor.step(actor_loss)
        self.target.follow(self.critic, TAU)
        self.target_policy.follow(self.policy, TAU)
        return {**losses, "actor_loss": actor_loss.detach(), "bc_loss": bc_loss.detach()}

    def targets(self) -> dict[str, StackedNet]:
        """The networks that follow others."""
        return {"critic": self.target, "policy": self.target_policy}

    def policy_layers(self, member: int) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
        """What a policy of a member is made of."""
        return self.policy.layers(member), ()
