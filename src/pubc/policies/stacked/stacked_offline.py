"""Offline reinforcement learning of many members at once: the loop around their updates.

A member draws what it would draw alone: weights of d3rlpy's making, batches of its data and
noise, all from streams of its own random seed. So a stack of ten gives the ten policies of ten
trainings, up to rounding; on a GPU alone the noise differs, which d3rlpy draws inside its own
recording.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pubc.policies.networks import NetworkPolicy
from pubc.policies.offline_rl.d3rlpy_learners import create, library, torch_seed
from pubc.policies.offline_rl.reinforce import AT_ONCE, PER_EPOCH, plan_updates
from pubc.policies.stacked.member_losses import StackedLearner
from pubc.policies.stacked.paced_updates import PacedUpdates
from pubc.policies.stacked.stacked_crr import StackedCRR
from pubc.policies.stacked.stacked_iql import StackedIQL
from pubc.policies.stacked.stacked_plas import StackedPLAS
from pubc.policies.stacked.stacked_rows import (
    Member,
    StackedTransitions,
    facts_of_members,
    fingerprint_of,
)
from pubc.policies.stacked.stacked_td3bc import StackedTD3BC
from pubc.policies.train_options import TrainOptions
from pubc.streams import stream
from pubc.trajectory import Array

__all__ = ["LEARNERS", "StackedOffline"]

LEARNERS: dict[str, type[StackedLearner]] = {
    "iql": StackedIQL,
    "crr": StackedCRR,
    "td3bc": StackedTD3BC,
    "plas": StackedPLAS,
}
"""Learners that can be stacked, by name."""


class StackedOffline:
    """Trainings of one learner that differ in their random seeds, or in their data, as one run."""

    settled = False
    """The paper trains for a fixed number of updates."""

    def __init__(
        self,
        name: str,
        members: Sequence[Member],
        options: TrainOptions,
        *,
        device: torch.device,
    ) -> None:
        self.name, self.device = name, device
        self.random_seeds = tuple(member.random_seed for member in members)
        sets = [member.trajectories for member in members]
        self.updates, self.chosen = plan_updates(name, sets[0], options)
        self.epochs = math.ceil(self.updates / PER_EPOCH)
        self.batch = int(self.chosen.get("batch_size", 100))
        self.facts = facts_of_members(members)
        self.fingerprint = fingerprint_of(self.facts)
        self._acts = sets[0].action_size
        sizes = (sets[0].observation_size, sets[0].action_size)
        modules = []
        for seed in self.random_seeds:
            with library() as d3, torch_seed(self._drawn(seed, "weights")):
                made = create(d3, name, self.chosen, sizes, torch.device("cpu"))
            modules.append(made.impl.modules)
        maker: Any = LEARNERS[name]
        self.learner: StackedLearner = maker(modules, self.chosen, device)
        self._rows = StackedTransitions(sets, self.facts, device)
        self._update = PacedUpdates(self.learner.update, self._tensors, device)

    def advance(self, epoch: int) -> dict[str, Tensor]:
        """Train one epoch of a thousand updates; the mean losses of each member."""
        first = epoch * PER_EPOCH
        last = min(first + PER_EPOCH, self.updates)
        totals: dict[str, Tensor] = {}
        counts: dict[str, int] = {}
        for number, batch in zip(
            range(first, last), self._batches(epoch, first, last), strict=True
        ):
            for name, losses in self._update(batch, self.learner.way(number)).items():
                total = totals.setdefault(name, torch.zeros_like(losses, dtype=torch.float64))
                total += losses
                counts[name] = counts.get(name, 0) + 1
        return {name: total.cpu() / counts[name] for name, total in totals.items()}

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make."""
        return min(self.updates, epochs * PER_EPOCH)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes."""
        return {name: t.detach().cpu().numpy().copy() for name, t in self._named()}, {}

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state."""
        for name, stepper in self.learner.steppers().items():
            stepper.restore(arrays, f"{name}/")
        for name, network in self.learner.targets().items():
            for index, tensor in enumerate(network.parameters):
                tensor.copy_(torch.from_numpy(np.array(arrays[f"target {name}/{index}"])))
        self._update.forget()

    def policies(self) -> list[NetworkPolicy]:
        """What each member learned so far."""
        return [
            NetworkPolicy(known.normaliser, known.actions, *self.learner.policy_layers(member))
            for member, known in enumerate(self.facts)
        ]

    def epochs_of(self, member: int, epochs: int) -> int:
        """Members train side by side to the end."""
        return epochs

    def about(self, member: int) -> dict[str, Any]:
        """Every number that shaped the run; the same for all."""
        return {"updates": self.updates, **self.chosen}

    def _named(self) -> Iterator[tuple[str, Tensor]]:
        for name, stepper in self.learner.steppers().items():
            for key, tensor in stepper.changed():
                yield f"{name}/{key}", tensor
        for name, network in self.learner.targets().items():
            for index, tensor in enumerate(network.parameters):
                yield f"target {name}/{index}", tensor

    def _tensors(self) -> list[Tensor]:
        return [tensor for _, tensor in self._named()]

    def _drawn(self, seed: int, *path: str | int) -> int:
        """The number that seeds torch for a member, as it does for a training of its own."""
        return int(stream(seed, self.name, *path).integers(2**62))

    def _batches(self, epoch: int, first: int, last: int) -> Iterator[dict[str, Tensor]]:
        """Batches of all members on the device, several updates drawn at a time."""
        orders = [stream(seed, self.name, "order", epoch) for seed in self.random_seeds]
        noises = [
            torch.Generator(self.device).manual_seed(self._drawn(seed, "epoch", epoch))
            for seed in self.random_seeds
        ]
        usable = self._rows.positions
        for start in range(first, last, AT_ONCE):
            count = min(AT_ONCE, last - start)
            drawn = [
                known[rng.integers(len(known), size=(count, self.batch))]
                for known, rng in zip(usable, orders, strict=True)
            ]
            columns = self._rows.gather(np.stack(drawn, axis=1))
            for number, noise in enumerate(self._noise(start, count, noises)):
                yield {**{name: rows[number] for name, rows in columns.items()}, **noise}

    def _noise(
        self, start: int, count: int, generators: Sequence[torch.Generator]
    ) -> Iterator[dict[str, Tensor]]:
        """What the members draw for some updates, each from its own generator."""
        learner = self.learner
        asked = [
            learner.noise(learner.way(start + number), self.batch, self._acts)
            for number in range(count)
        ]
        # A GPU draws for several updates in one go; elsewhere the order is that of one training.
        together = self.device.type == "cuda" and all(shapes == asked[0] for shapes in asked)
        for shapes, times in [(asked[0], count)] if together else [(one, 1) for one in asked]:
            drawn = [
                [torch.randn((times, *s), generator=g, device=self.device) for s in shapes.values()]
                for g in generators
            ]
            stacked = [torch.stack(of_all, dim=1) for of_all in zip(*drawn, strict=True)]
            for number in range(times):
                yield {name: rows[number] for name, rows in zip(shapes, stacked, strict=True)}
