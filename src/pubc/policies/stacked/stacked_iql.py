"""Implicit Q-learning (Kostrikov et al., 2021) for many members at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pubc.policies.networks import Layer
from pubc.policies.stacked.member_losses import (
    DISCOUNT,
    TAU,
    StackedLearner,
    q_values,
    regress,
    unit_log_density,
)
from pubc.policies.stacked.stacked_networks import StackedNet, Stepper, linears, stack_layers

__all__ = ["StackedIQL"]

_MAX_WEIGHT = 100.0
_LOG_STD = (-5.0, 2.0)


class StackedIQL(StackedLearner):
    """Two critics and a value by expectile regression; the policy clones by advantage."""

    heads = 2

    def __init__(
        self, modules: Sequence[Any], chosen: Mapping[str, Any], device: torch.device
    ) -> None:
        self.expectile, self.temperature = chosen["expectile"], chosen["weight_temp"]
        self.critic = stack_layers([linears(q) for m in modules for q in m.q_funcs], device)
        self.target = self.critic.twin()
        self.value = stack_layers([linears(m.value_func) for m in modules], device)
        self.policy = stack_layers([linears(m.policy) for m in modules], device)
        spread = torch.stack([m.policy._logstd.detach() for m in modules])
        self.spread = nn.Parameter(spread.to(device))
        self.judge = Stepper(
            [*self.critic.parameters, *self.value.parameters], chosen["critic_learning_rate"]
        )
        self.actor = Stepper([*self.policy.parameters, self.spread], chosen["actor_learning_rate"])

    def update(self, batch: Mapping[str, Tensor], way: str) -> dict[str, Tensor]:
        """One update of every member."""
        seen, acted = batch["observations"], batch["actions"]
        with torch.no_grad():
            follow = self.value(batch["next_observations"])[..., 0]
            wanted = batch["rewards"] + DISCOUNT * follow * (1 - batch["terminals"])
            known = q_values(self.target, seen, acted, self.heads).amin(dim=1)
        q_loss = regress(q_values(self.critic, seen, acted, self.heads), wanted)
        ahead = known - self.value(seen)[..., 0]
        weight = (self.expectile - (ahead.detach() < 0).float()).abs()
        v_loss = (weight * ahead.square()).mean(dim=1)
        self.judge.step(q_loss + v_loss)
        with torch.no_grad():
            ahead = known - self.value(seen)[..., 0]
            trust = (self.temperature * ahead).exp().clamp(max=_MAX_WEIGHT)
        low, high = _LOG_STD
        width = low + torch.sigmoid(self.spread) * (high - low)
        density = unit_log_density(acted, torch.tanh(self.policy(seen)), width)
        actor_loss = -(trust * density).mean(dim=1)
        self.actor.step(actor_loss)
        self.target.follow(self.critic, TAU)
        return {
            "critic_loss": (q_loss + v_loss).detach(),
            "q_loss": q_loss.detach(),
            "v_loss": v_loss.detach(),
            "actor_loss": actor_loss.detach(),
        }

    def targets(self) -> dict[str, StackedNet]:
        """The networks that follow others."""
        return {"critic": self.target}

    def policy_layers(self, member: int) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
        """What a policy of a member is made of."""
        return self.policy.layers(member), ()
