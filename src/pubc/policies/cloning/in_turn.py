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
from pubc.policies.train_options import TrainOptions
from pubc.policies.training_rows import MEMORY
from pubc.trajectory import Array, TrajectorySet

__all__ = ["InTurn"]


class InTurn:
    """Cloning runs that differ in their random seeds, as one run."""

    def __init__(
        self, trajectories: TrajectorySet, options: TrainOptions, *, random_seeds: Sequence[int]
    ) -> None:
        self.random_seeds = tuple(random_seeds)
        # Together they hold in memory what one of them may.
        self._runs = [
            Clone(
                trajectories,
                options,
                random_seed=seed,
                device=torch.device("cpu"),
                memory=MEMORY // len(self.random_seeds),
            )
            for seed in self.random_seeds
        ]
        self.epochs, self.fingerprint = self._runs[0].epochs, self._runs[0].fingerprint
        self._told: list[dict[str, float]] = [{} for _ in self._runs]

    def advance(self, epoch: int) -> dict[str, Tensor]:
        """Train one epoch of every member that has not settled; the losses of each."""
        for member, run in enumerate(self._runs):
            if not run.settled:
                self._told[member] = run.advance(epoch)
        names = self._told[0]
        return {n: torch.tensor([one[n] for one in self._told], dtype=torch.float64) for n in names}

    @property
    def settled(self) -> bool:
        """Whether the held-out loss of every member has stopped falling."""
        return all(run.settled for run in self._runs)

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make, of the member that makes most."""
        return max(run.updates_after(epochs) for run in self._runs)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes."""
        found = [run.state() for run in self._runs]
        arrays = {
            f"{member}/{name}": array
            for member, (own, _) in enumerate(found)
            for name, array in own.items()
        }
        return arrays, {"members": [facts for _, facts in found], "told": self._told}

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state."""
        for member, run in enumerate(self._runs):
            prefix = f"{member}/"
            own = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
            run.restore(own, facts["members"][member])
        self._told = [dict(one) for one in facts["told"]]

    def policies(self) -> list[NetworkPolicy]:
        """What each member learned so far."""
        return [run.policy() for run in self._runs]

    def about(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return self._runs[0].about()
