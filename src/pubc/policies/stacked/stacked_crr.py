"""Critic-regularised regression (Wang et al., 2020) for many members at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pubc.policies.networks import Layer
from pubc.policies.stacked.member_losses import (
    DISCOUNT,
    StackedLearner,
    q_values,
    regress,
    unit_log_density,
)
from pubc.policies.stacked.stacked_networks import (
    StackedNet,
    Stepper,
    linears,
    stack_layers,
    with_widths,
)

__all__ = ["StackedCRR"]

_SAMPLES = 4
"""Actions whose mean value is what an action must be better than."""
_MAX_WEIGHT = 20.0
_SYNC = 100
"""Updates between two copies into the target networks."""
_LOG_STD = (-20.0, 2.0)


class StackedCRR(StackedLearner):
    """One critic; the policy clones each action by how much better than its own it is."""

    def __init__(
        self, modules: Sequence[Any], chosen: Mapping[str, Any], device: torch.device
    ) -> None:
        self.beta = chosen["beta"]
        self.critic = stack_layers([linears(q) for m in modules for q in m.q_funcs], device)
        self.policy = stack_layers([with_widths(m.policy) for m in modules], device)
        self.target = self.critic.twin()
        # The target policy begins as networks of its own, and is copied in update 0.
        beginning = stack_layers([with_widths(m.targ_policy) for m in modules], device)
        self.target_policy = beginning.twin()
        self.judge = Stepper(self.critic.parameters, chosen["critic_learning_rate"])
        self.actor = Stepper(self.policy.parameters, chosen["actor_learning_rate"])

    def way(self, number: int) -> str:
        """Every hundredth update copies the networks into their targets."""
        return "sync" if number % _SYNC == 0 else "all"

    def noise(self, way: str, batch: int, actions: int) -> dict[str, tuple[int, ...]]:
        """For the action that follows, and for those to compare with."""
        return {"followed": (batch, actions), "compared": (_SAMPLES, batch, actions)}

    def update(self, batch: Mapping[str, Tensor], way: str) -> dict[str, Tensor]:
        """One update of every member."""
        seen, acted, after = batch["observations"], batch["actions"], batch["next_observations"]
        with torch.no_grad():
            mean, width = _spread(self.target_policy(after))
            action = (mean + width.exp() * batch["followed"]).clamp(-1, 1)
            follow = q_values(self.target, after, action, 1)[:, 0]
            wanted = batch["rewards"] + DISCOUNT * follow * (1 - batch["terminals"])
        critic_loss = regress(q_values(self.critic, seen, acted, 1), wanted)
        self.judge.step(critic_loss)
        mean, width = _spread(self.policy(seen))
        with torch.no_grad():
            trust = (self._advantage(seen, acted, mean, width, batch["compared"]) / self.beta).exp()
        density = unit_log_density(acted, mean, width)
        actor_loss = -(density * trust.clamp(max=_MAX_WEIGHT)).mean(dim=1)
        self.actor.step(actor_loss)
        if way == "sync":
            self.target.follow(self.critic, 1.0)
            self.target_policy.follow(self.policy, 1.0)
        return {"critic_loss": critic_loss.detach(), "actor_loss": actor_loss.detach()}

    def _advantage(
        self, seen: Tensor, acted: Tensor, mean: Tensor, width: Tensor, noise: Tensor
    ) -> Tensor:
        own = (mean[:, None] + width[:, None].exp() * noise).clamp(-1, 1)
        states = seen[:, None].expand(-1, _SAMPLES, -1, -1)
        values = q_values(self.critic, states.flatten(1, 2), own.flatten(1, 2), 1)
        mine = values.view(len(seen), _SAMPLES, -1).mean(dim=1)
        return q_values(self.critic, seen, acted, 1)[:, 0] - mine

    def targets(self) -> dict[str, StackedNet]:
        """The networks that follow others."""
        return {"critic": self.target, "policy": self.target_policy}

    def policy_layers(self, member: int) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
        """What a policy of a member is made of: the means alone act."""
        *below, (weight, bias) = self.policy.layers(member)
        half = len(bias) // 2
        return (*below, (weight[:, :half].copy(), bias[:half].copy())), ()


def _spread(outputs: Tensor) -> tuple[Tensor, Tensor]:
    mean, width = outputs.chunk(2, dim=-1)
    return torch.tanh(mean), width.clamp(*_LOG_STD)
