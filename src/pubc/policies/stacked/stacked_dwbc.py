"""Discriminator-weighted cloning (Xu et al., 2022) as its authors' code behaves, many at once.

A discriminator learns, in the way of PU learning, which pairs come from the expert; it sees the
policy's own log density of every dimension of the action beside observation and action. The
policy clones the expert's pairs, and of the mixed ones those that the discriminator takes for
the expert's. What the code has and the text of the paper has not: mixed pairs below 0.5 weigh
nothing, the discriminator takes a step in every hundredth update only, its output is cut off
inside its loss, log densities are scaled, the policy's weights decay, and actions are tanh of a
Gaussian. `cloning/dwbc.py` follows the text alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from pubc.policies.cloning.dwbc import ALPHA, ETA
from pubc.policies.cloning.flat_weights import initial_parameters
from pubc.policies.networks import NetworkPolicy
from pubc.policies.stacked.paced_updates import PacedUpdates
from pubc.policies.stacked.stacked_networks import StackedNet, Stepper, stack_flat
from pubc.policies.stacked.stacked_rows import (
    Member,
    StackedSteps,
    facts_of_members,
    fingerprint_of,
)
from pubc.policies.train_options import TrainOptions, check_rate
from pubc.streams import stream
from pubc.trajectory import Array

__all__ = [
    "StackedDwbc",
    "discriminator_loss",
    "plan_dwbc",
    "policy_weights",
    "tanh_normal_density",
]

_BATCH, _RATE, _DECAY = 256, 1e-4, 0.005
_UPDATES = {"paper": 1_000_000, "auto": 50_000}
_PER_EPOCH = 1000
_AT_ONCE = 20
_JUDGED = 100
"""The discriminator takes a step in every update that is a multiple of this."""
_TRUST = (0.1, 0.9)
_HALF = 0.5
_DENSITY = (-20.0, 10.0)
_MEAN = 9.0
_LOG_STD = (-5.0, 2.0)
_EDGE = 1e-7
_WIDTH = 128


def plan_dwbc(options: TrainOptions) -> int:
    """How many updates a training makes."""
    return options.updates or _UPDATES[options.recipe]


def discriminator_loss(expert: Tensor, mixed: Tensor, eta: float = ETA) -> Tensor:
    """PU risk of each member from what its discriminator says of both kinds of pairs."""
    known = -torch.log(expert) + torch.log(1 - expert)
    return eta * known.mean(dim=1) - torch.log(1 - mixed).mean(dim=1)


def policy_weights(expert: Tensor, mixed: Tensor) -> tuple[Tensor, Tensor]:
    """How much each pair counts when the policy clones it."""
    sure = ALPHA - ETA / (expert * (1 - expert)) - 1
    return sure, torch.where(mixed < _HALF, torch.zeros_like(mixed), 1 / (1 - mixed) - 1)


def tanh_normal_density(actions: Tensor, mean: Tensor, log_width: Tensor) -> Tensor:
    """Log density of each dimension of actions that are tanh of a Gaussian."""
    raw = torch.atanh(actions.clamp(_EDGE - 1, 1 - _EDGE))
    error = (raw - mean) * torch.exp(-log_width)
    density = -0.5 * error.square() - log_width - 0.5 * math.log(2 * math.pi)
    return density - 2 * (math.log(2) - raw - softplus(-2 * raw))


class StackedDwbc:
    """DWBC trainings that differ in their random seeds, or in their data, as one run."""

    settled = False
    """The paper trains for a fixed number of updates."""

    def __init__(
        self, members: Sequence[Member], options: TrainOptions, *, device: torch.device
    ) -> None:
        check_rate(options)
        self.random_seeds, self.device = tuple(member.random_seed for member in members), device
        self.rate = options.learning_rate or _RATE
        self.batch = options.batch_size or _BATCH
        self.updates = plan_dwbc(options)
        self.epochs = math.ceil(self.updates / _PER_EPOCH)
        self.facts = facts_of_members(members)
        self.fingerprint = fingerprint_of(self.facts)
        mixed = [member.trajectories for member in members]
        sure = [member.positives for member in members if member.positives is not None]
        self._feeds = [StackedSteps(sets, self.facts, device) for sets in (sure, mixed)]
        seen, self._acts = mixed[0].observation_size, mixed[0].action_size
        self._policy = self._network((seen, *options.hidden, 2 * self._acts), "policy")
        self._pair = self._network((seen + self._acts, _WIDTH), "discriminator", 0)
        self._belief = self._network((self._acts, _WIDTH), "discriminator", 1)
        self._head = self._network((2 * _WIDTH, 2 * _WIDTH, 1), "discriminator", 2)
        self._actor = Stepper(self._policy.parameters, self.rate, decay=_DECAY)
        parts = (self._pair, self._belief, self._head)
        self._judge = Stepper([t for part in parts for t in part.parameters], self.rate)
        self._update = PacedUpdates(self._work, self._tensors, device)

    def advance(self, epoch: int) -> dict[str, Tensor]:
        """Train one epoch of a thousand updates; the mean losses of each member."""
        first = epoch * _PER_EPOCH
        last = min(first + _PER_EPOCH, self.updates)
        totals: dict[str, Tensor] = {}
        for number, batch in zip(
            range(first, last), self._batches(epoch, last - first), strict=True
        ):
            way = "both" if (number + 1) % _JUDGED == 0 else "policy"
            for name, losses in self._update(batch, way).items():
                total = totals.setdefault(name, torch.zeros_like(losses, dtype=torch.float64))
                total += losses
        return {name: total.cpu() / (last - first) for name, total in totals.items()}

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make."""
        return min(self.updates, epochs * _PER_EPOCH)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes."""
        return {name: t.detach().cpu().numpy().copy() for name, t in self._named()}, {}

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self._actor.restore(arrays, "actor/")
        self._judge.restore(arrays, "judge/")
        self._update.forget()

    def policies(self) -> list[NetworkPolicy]:
        """What each member learned: the tanh of its mean acts, as in the authors' code."""
        found = []
        for member, known in enumerate(self.facts):
            *below, (weight, bias) = self._policy.layers(member)
            top = weight[:, : self._acts].copy(), bias[: self._acts].copy()
            found.append(NetworkPolicy(known.normaliser, known.actions, (*below, top)))
        return found

    def epochs_of(self, member: int, epochs: int) -> int:
        """Members train side by side to the end."""
        return epochs

    def about(self, member: int) -> dict[str, Any]:
        """Every number that shaped the run; the same for all."""
        return {
            "batch_size": self.batch,
            "learning_rate": self.rate,
            "updates": self.updates,
            "alpha": ALPHA,
            "eta": ETA,
            "weight_decay": _DECAY,
            "discriminator_every": _JUDGED,
        }

    def _network(self, sizes: tuple[int, ...], *name: str | int) -> StackedNet:
        flats = [
            initial_parameters(sizes, stream(seed, "dwbc", *name)) for seed in self.random_seeds
        ]
        return stack_flat(flats, sizes, self.device)

    def _named(self) -> Iterator[tuple[str, Tensor]]:
        for name, stepper in (("actor", self._actor), ("judge", self._judge)):
            for key, tensor in stepper.changed():
                yield f"{name}/{key}", tensor

    def _tensors(self) -> list[Tensor]:
        return [tensor for _, tensor in self._named()]

    def _batches(self, epoch: int, updates: int) -> Iterator[dict[str, Tensor]]:
        """Expert's pairs in front, mixed ones behind, of all members."""
        orders = [stream(seed, "dwbc", "order", epoch) for seed in self.random_seeds]
        sizes = list(zip(*(feed.sizes for feed in self._feeds), strict=True))
        for start in range(0, updates, _AT_ONCE):
            count = min(_AT_ONCE, updates - start)
            drawn = [
                [[rng.integers(size, size=self.batch) for size in own] for _ in range(count)]
                for rng, own in zip(orders, sizes, strict=True)
            ]
            positions = np.asarray(drawn).transpose(2, 1, 0, 3)
            parts = [feed.gather(rows) for feed, rows in zip(self._feeds, positions, strict=True)]
            inputs = torch.cat([seen for seen, _ in parts], dim=2)[..., :-1]
            targets = torch.cat([acted for _, acted in parts], dim=2)
            for number in range(count):
                yield {"inputs": inputs[number], "targets": targets[number]}

    def _work(self, drawn: Mapping[str, Tensor], way: str) -> dict[str, Tensor]:
        seen, acted = drawn["inputs"], drawn["targets"]
        mean, width = self._policy(seen).chunk(2, dim=-1)
        mean, width = mean.clamp(-_MEAN, _MEAN), width.clamp(*_LOG_STD)
        density = tanh_normal_density(acted, mean, width)
        trust = self._discriminate(seen, acted, density.detach())
        expert, mixed = trust[:, : self.batch], trust[:, self.batch :]
        judged = discriminator_loss(expert, mixed)
        if way == "both":
            self._judge.step(judged)
        sure, other = policy_weights(expert.detach(), mixed.detach())
        likely = density.sum(dim=-1)
        cloned = -(sure * likely[:, : self.batch]).mean(dim=1)
        cloned = cloned - (other * likely[:, self.batch :]).mean(dim=1)
        self._actor.step(cloned)
        return {"loss": cloned.detach(), "discriminator_loss": judged.detach()}

    def _discriminate(self, seen: Tensor, acted: Tensor, density: Tensor) -> Tensor:
        """How sure each pair is the expert's, between the bounds of trust."""
        low, high = _DENSITY
        said = (density.clamp(low, high) - low) / (high - low)
        pair = self._pair(torch.cat([seen, acted], dim=-1))
        joined = torch.relu(torch.cat([pair, self._belief(said)], dim=-1))
        return torch.sigmoid(self._head(joined)[..., 0]).clamp(*_TRUST)
