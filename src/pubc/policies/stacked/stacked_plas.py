"""Policy in the latent action space (Zhou et al., 2020) for many members at once.

The first updates train an autoencoder of the recorded actions; the others train a policy that
chooses among what its decoder can say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pubc.policies.networks import LATENT, Layer
from pubc.policies.stacked.member_losses import (
    DISCOUNT,
    TAU,
    StackedLearner,
    q_values,
    regress,
)
from pubc.policies.stacked.stacked_networks import (
    StackedNet,
    Stepper,
    linears,
    stack_layers,
    with_widths,
)

__all__ = ["StackedPLAS"]

_LOWEST = 0.75
"""Weight of the lower of the two critics; the higher one has the rest."""
_LOG_STD = (-20.0, 2.0)
_IMITATION_RATE = 1e-4


class StackedPLAS(StackedLearner):
    """An autoencoder of actions, two critics, and a policy over the latent actions."""

    heads = 2

    def __init__(
        self, modules: Sequence[Any], chosen: Mapping[str, Any], device: torch.device
    ) -> None:
        self.beta, self.warm_up = chosen["beta"], chosen["warmup_steps"]
        self.encoder = stack_layers([with_widths(m.vae_encoder) for m in modules], device)
        self.decoder = stack_layers([linears(m.vae_decoder) for m in modules], device)
        self.critic = stack_layers([linears(q) for m in modules for q in m.q_funcs], device)
        self.policy = stack_layers([linears(m.policy) for m in modules], device)
        self.target = self.critic.twin()
        # The target policy begins as networks of its own.
        self.target_policy = stack_layers([linears(m.targ_policy) for m in modules], device).twin()
        self.imitator = Stepper(
            [*self.encoder.parameters, *self.decoder.parameters], _IMITATION_RATE
        )
        self.judge = Stepper(self.critic.parameters, chosen["critic_learning_rate"])
        self.actor = Stepper(self.policy.parameters, chosen["actor_learning_rate"])

    def way(self, number: int) -> str:
        """The first updates imitate."""
        return "imitate" if number < self.warm_up else "all"

    def noise(self, way: str, batch: int, actions: int) -> dict[str, tuple[int, ...]]:
        """For the latent actions of the autoencoder."""
        return {"latent": (batch, 2 * actions)} if way == "imitate" else {}

    def update(self, batch: Mapping[str, Tensor], way: str) -> dict[str, Tensor]:
        """One update of every member."""
        if way == "imitate":
            return self._imitate(batch)
        seen, acted, after = batch["observations"], batch["actions"], batch["next_observations"]
        with torch.no_grad():
            chosen = self._decode(after, LATENT * torch.tanh(self.target_policy(after)))
            values = q_values(self.target, after, chosen, self.heads)
            follow = _LOWEST * values.amin(dim=1) + (1 - _LOWEST) * values.amax(dim=1)
            wanted = batch["rewards"] + DISCOUNT * follow * (1 - batch["terminals"])
        critic_loss = regress(q_values(self.critic, seen, acted, self.heads), wanted)
        self.judge.step(critic_loss)
        mine = self._decode(seen, LATENT * torch.tanh(self.policy(seen)))
        first = self.critic.every(self.heads, 0)
        actor_loss = -q_values(first, seen, mine, 1)[:, 0].mean(dim=1)
        self.actor.step(actor_loss)
        self.target_policy.follow(self.policy, TAU)
        self.target.follow(self.critic, TAU)
        return {"critic_loss": critic_loss.detach(), "actor_loss": actor_loss.detach()}

    def _imitate(self, batch: Mapping[str, Tensor]) -> dict[str, Tensor]:
        seen, acted = batch["observations"], batch["actions"]
        mean, width = self.encoder(torch.cat([seen, acted], dim=-1)).chunk(2, dim=-1)
        width = width.clamp(*_LOG_STD)
        surprise = 0.5 * (torch.exp(2 * width) + mean.square() - 1) - width
        said = self._decode(seen, mean + width.exp() * batch["latent"])
        error = (said - acted).square().mean(dim=(1, 2))
        loss = error + self.beta * surprise.mean(dim=(1, 2))
        self.imitator.step(loss)
        return {"vae_loss": loss.detach()}

    def _decode(self, seen: Tensor, latent: Tensor) -> Tensor:
        return self.decoder(torch.cat([seen, latent], dim=-1))

    def steppers(self) -> dict[str, Stepper]:
        """Everything that is trained."""
        return {**super().steppers(), "imitator": self.imitator}

    def targets(self) -> dict[str, StackedNet]:
        """The networks that follow others."""
        return {"critic": self.target, "policy": self.target_policy}

    def policy_layers(self, member: int) -> tuple[tuple[Layer, ...], tuple[Layer, ...]]:
        """What a policy of a member is made of: its own layers and the decoder's."""
        return self.policy.layers(member), self.decoder.layers(member)
