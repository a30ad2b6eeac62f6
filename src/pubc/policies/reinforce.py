"""Offline reinforcement learning: d3rlpy's losses on batches of our own.

Batches come straight from the flat columns, so every next observation is the one that
followed, sets larger than memory work, and nothing is drawn from a global generator of numpy.
What comes out is a plain network policy, except for the Decision Transformer, which needs
d3rlpy to act.

Differences from d3rlpy's own loop: observations and actions are normalised as for every
learner here, and CRR acts with the mean of its policy instead of a sample weighted by its
critic, so that it can be exported and repeated.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from pubc.errors import DataError, UsageError
from pubc.policies.feed import survey
from pubc.policies.networks import NetworkPolicy
from pubc.policies.offline import (
    GREEDY,
    HYPERPARAMETERS,
    LAYERS,
    UPDATES,
    create,
    library,
    torch_seed,
)
from pubc.policies.options import TrainOptions
from pubc.policies.pace import threads
from pubc.policies.transformer import TransformerPolicy
from pubc.policies.transitions import Sequences, Transitions
from pubc.streams import stream
from pubc.trajectory import Array, TrajectorySet

__all__ = ["OfflineRun"]

_PER_EPOCH = 1000


class OfflineRun:
    """A run of one of d3rlpy's learners: advance it epoch by epoch, take the policy."""

    settled = False
    """The paper trains for a fixed number of updates."""

    def __init__(
        self,
        name: str,
        trajectories: TrajectorySet,
        options: TrainOptions,
        *,
        random_seed: int,
        device: torch.device,
    ) -> None:
        if trajectories.columns.rewards is None:
            raise DataError(
                f"{name} learns from rewards, and the dataset has none. bc learns without.",
                code="no_rewards",
                field="rewards",
            )
        self.name, self.random_seed, self.device = name, random_seed, device
        self.updates = options.updates or UPDATES[options.recipe]
        if self.updates < 1:
            raise UsageError(f"Training takes at least one update. Got {self.updates}.")
        self.epochs = math.ceil(self.updates / _PER_EPOCH)
        self.chosen = self._hyperparameters(options)
        if name == "dt":
            self.chosen["max_timestep"] = int(trajectories.lengths.max()) + 1
        self.facts = survey(trajectories)
        self.fingerprint = self.facts.fingerprint
        self._sizes = (trajectories.observation_size, trajectories.action_size)
        with library() as d3, self._seeded("weights"):
            self._algorithm = create(d3, name, self.chosen, self._sizes, device)
        self._steps = Transitions(trajectories, self.facts) if name != "dt" else None
        context = int(self.chosen.get("context_size", 1))
        self._windows = Sequences(trajectories, self.facts, context) if name == "dt" else None

    def advance(self, epoch: int) -> dict[str, float]:
        """Train one epoch of a thousand updates.

        Raises:
            DataError: A loss is not finite any more.
        """
        rng = stream(self.random_seed, self.name, "order", epoch)
        first = epoch * _PER_EPOCH
        totals: dict[str, list[float]] = {}
        # One thread: the sums inside would otherwise depend on how many there are.
        with library() as d3, threads(1), self._seeded("epoch", epoch):
            for number in range(first, min(first + _PER_EPOCH, self.updates)):
                batch = self._batch(d3, rng)
                for name, value in self._algorithm.impl.update(batch, number).items():
                    totals.setdefault(name, []).append(float(value))
        means = {name: float(np.mean(values)) for name, values in totals.items()}
        wrong = [name for name, value in means.items() if not math.isfinite(value)]
        if wrong:
            raise DataError(
                f"The {wrong[0].replace('_', ' ')} of {self.name} became {means[wrong[0]]} in "
                f"epoch {epoch + 1}, so training stopped. Look for extreme values with `pubc "
                "inspect`.",
                code="nonfinite_loss",
            )
        return means

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make."""
        return min(self.updates, epochs * _PER_EPOCH)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes."""
        arrays: dict[str, Array] = {}
        scalars: dict[str, Any] = {}
        for name, part in self._parts():
            flat = part.state_dict() if isinstance(part, nn.Module) else _optimiser_state(part)
            for key, value in flat.items():
                if isinstance(value, Tensor):
                    arrays[f"{name}/{key}"] = value.detach().cpu().numpy().copy()
                else:
                    scalars[f"{name}/{key}"] = value
        return arrays, {"scalars": scalars}

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state."""
        merged: dict[str, Any] = {k: torch.from_numpy(np.array(v)) for k, v in arrays.items()}
        merged.update(facts["scalars"])
        for name, part in self._parts():
            prefix = f"{name}/"
            mine = {k[len(prefix) :]: v for k, v in merged.items() if k.startswith(prefix)}
            if isinstance(part, nn.Module):
                part.load_state_dict(mine)
            else:
                _restore_optimiser(part, mine)

    def policy(self) -> NetworkPolicy | TransformerPolicy:
        """What was learned so far."""
        if self._windows is not None:
            return TransformerPolicy(
                self.facts.normaliser,
                self.facts.actions,
                self._algorithm,
                self.chosen,
                self._windows.target,
                self._windows.scale,
            )
        policy = NetworkPolicy(
            self.facts.normaliser,
            self.facts.actions,
            *LAYERS[self.name](self._algorithm.impl.modules),
        )
        self._check_same(policy)
        return policy

    def about(self) -> dict[str, Any]:
        """Every number that shaped the run."""
        return {"updates": self.updates, **self.chosen}

    def _hyperparameters(self, options: TrainOptions) -> dict[str, Any]:
        chosen = dict(HYPERPARAMETERS[self.name])
        if options.batch_size is not None:
            chosen["batch_size"] = options.batch_size
        if options.learning_rate is not None:
            for key in chosen:
                if key.endswith("learning_rate"):
                    chosen[key] = options.learning_rate
        if "warmup_steps" in chosen:
            # Half of the updates, as in the paper, however many there are.
            chosen["warmup_steps"] = min(chosen["warmup_steps"], self.updates // 2)
        return chosen

    def _seeded(self, *path: str | int) -> contextlib.AbstractContextManager[None]:
        return torch_seed(int(stream(self.random_seed, self.name, *path).integers(2**62)))

    def _parts(self) -> Iterator[tuple[str, Any]]:
        modules = self._algorithm.impl.modules
        for field in dataclasses.fields(modules):
            part = getattr(modules, field.name)
            yield field.name, part if isinstance(part, nn.Module) else part.optim

    def _batch(self, d3: Any, rng: np.random.Generator) -> Any:
        size = int(self.chosen.get("batch_size", 100))
        where = str(self.device)
        if self._steps is not None:
            columns = self._steps.draw(size, rng)
            return d3.TorchMiniBatch(
                **{name: torch.from_numpy(rows).to(where) for name, rows in columns.items()},
                device=where,
            )
        assert self._windows is not None
        windows = self._windows.draw(size, rng)
        ready = {name: torch.from_numpy(rows).to(where) for name, rows in windows.items()}
        return d3.torch_utility.TorchTrajectoryMiniBatch(**ready, device=where)

    def _check_same(self, policy: NetworkPolicy) -> None:
        """The copy of the network must act like d3rlpy's own."""
        rng = np.random.default_rng(0)
        x = rng.standard_normal((64, self._sizes[0])).astype(np.float32)
        ours = policy.units(x * policy.normaliser.scale + policy.normaliser.mean)
        with torch.no_grad():
            theirs = GREEDY[self.name](self._algorithm.impl, torch.from_numpy(x).to(self.device))
        worst = float(np.abs(ours - theirs.cpu().numpy()).max())
        if not worst < 1e-4:
            raise DataError(
                f"The network of {self.name} has an unexpected shape in this version of d3rlpy "
                f"(its copy differs by {worst:.2g}). pubc knows d3rlpy 2.8.1.",
                code="bad_policy",
            )


def _optimiser_state(optimiser: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for index, state in optimiser.state_dict()["state"].items():
        for key, value in state.items():
            found[f"{index}.{key}"] = value
    return found


def _restore_optimiser(optimiser: Any, flat: Mapping[str, Any]) -> None:
    whole = optimiser.state_dict()
    state: dict[int, dict[str, Any]] = {}
    for name, value in flat.items():
        index, _, key = name.partition(".")
        state.setdefault(int(index), {})[key] = value
    optimiser.load_state_dict({**whole, "state": state})
