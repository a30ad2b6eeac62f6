"""Cloning of many members one after another, where that is the fastest way: without a GPU.

The update of `fused_steps.py` is written out by hand for a processor, and a batched one
through automatic differentiation takes a quarter more of its time. So a stack of cloning runs
advances them in turn there; each is the training alone to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from pubc.policies.cloning.bc import Clone
from pubc.policies.networks import NetworkPolicy
from pubc.policies.stacked.stacked_rows import Member, fingerprint_of
from pubc.policies.train_options import TrainOptions
from pubc.policies.training_rows import MEMORY
from pubc.trajectory import Array

__all__ = ["InTurn"]


class InTurn:
    """Cloning runs that differ in their random seeds, or in their data, as one run."""

    def __init__(self, members: Sequence[Member], options: TrainOptions) -> None:
        self.random_seeds = tuple(member.random_seed for member in members)
        # Together they hold in memory what one of them may.
        self._runs = [
            Clone(
                member.trajectories,
                options,
                random_seed=member.random_seed,
                device=torch.device("cpu"),
                memory=MEMORY // len(members),
            )
            for member in members
        ]
        self.epochs = max(run.epochs for run in self._runs)
        self.fingerprint = fingerprint_of([run.facts for run in self._runs])
        self._told: list[dict[str, float]] = [{} for _ in self._runs]
        self._made = [0] * len(members)

    def advance(self, epoch: int) -> dict[str, Tensor]:
        """Train one epoch of every member that is not done; the losses of each."""
        for member, run in enumerate(self._runs):
            if epoch < run.epochs and not run.settled:
                self._told[member] = run.advance(epoch)
                self._made[member] = epoch + 1
        names = [name for name in self._told[0] if all(name in one for one in self._told)]
        return {n: torch.tensor([one[n] for one in self._told], dtype=torch.float64) for n in names}

    @property
    def settled(self) -> bool:
        """Whether the held-out loss of every member has stopped falling."""
        return all(run.settled for run in self._runs)

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make, of the member that makes most."""
        return max(run.updates_after(min(epochs, run.epochs)) for run in self._runs)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes."""
        found = [run.state() for run in self._runs]
        arrays = {
            f"{member}/{name}": array
            for member, (own, _) in enumerate(found)
            for name, array in own.items()
        }
        members = [facts for _, facts in found]
        return arrays, {"members": members, "told": self._told, "made": self._made}

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state."""
        for member, run in enumerate(self._runs):
            prefix = f"{member}/"
            own = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
            run.restore(own, facts["members"][member])
        self._told = [dict(one) for one in facts["told"]]
        self._made = [int(one) for one in facts["made"]]

    def policies(self) -> list[NetworkPolicy]:
        """What each member learned so far."""
        return [run.policy() for run in self._runs]

    def epochs_of(self, member: int, epochs: int) -> int:
        """Epochs until the member was done."""
        return self._made[member]

    def about(self, member: int) -> dict[str, Any]:
        """The plan of a member as JSON values."""
        return self._runs[member].about()
