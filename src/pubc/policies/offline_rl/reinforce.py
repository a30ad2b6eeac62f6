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
from pubc.policies.cuda_graphs import Updates
from pubc.policies.networks import NetworkPolicy
from pubc.policies.offline_rl.d3rlpy_learners import (
    GREEDY,
    HYPERPARAMETERS,
    LAYERS,
    UPDATES,
    create,
    library,
    torch_seed,
    update,
    way,
)
from pubc.policies.offline_rl.transformer import TransformerPolicy
from pubc.policies.offline_rl.transitions import Sequences, Transitions
from pubc.policies.train_options import TrainOptions, check_rate
from pubc.policies.training_rows import facts_of
from pubc.streams import stream
from pubc.threads import threads
from pubc.trajectory import Array, TrajectorySet

__all__ = ["AT_ONCE", "PER_EPOCH", "OfflineRun", "plan_updates"]

PER_EPOCH = 1000
"""Updates of an epoch."""
AT_ONCE = 20
"""Batches that are drawn together."""


def plan_updates(
    name: str, trajectories: TrajectorySet, options: TrainOptions
) -> tuple[int, dict[str, Any]]:
    """How many updates a learner makes, and its hyper-parameters.

    Raises:
        DataError: It needs rewards and there are none.
        UsageError: No update is asked for.
    """
    if trajectories.columns.rewards is None:
        raise DataError(
            f"{name} learns from rewards, and the dataset has none. bc learns without.",
            code="no_rewards",
            field="rewards",
        )
    updates = options.updates or UPDATES[options.recipe]
    check_rate(options)
    if updates < 1:
        raise UsageError(f"Training takes at least one update. Got {updates}.")
    chosen = dict(HYPERPARAMETERS[name])
    if options.batch_size is not None:
        chosen["batch_size"] = options.batch_size
    if options.learning_rate is not None:
        for key in chosen:
            if key.endswith("learning_rate"):
                chosen[key] = options.learning_rate
    if "warmup_steps" in chosen:
        # Half of the updates, as in the paper, however many there are.
        chosen["warmup_steps"] = min(chosen["warmup_steps"], updates // 2)
    if name == "dt":
        chosen["max_timestep"] = int(trajectories.lengths.max()) + 1
    return updates, chosen


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
        self.name, self.random_seed, self.device = name, random_seed, device
        self.updates, self.chosen = plan_updates(name, trajectories, options)
        self.epochs = math.ceil(self.updates / PER_EPOCH)
        self.facts = facts_of(trajectories)
        self.fingerprint = self.facts.fingerprint
        self._sizes = (trajectories.observation_size, trajectories.action_size)
        with library() as d3, self._seeded("weights"):
            self._algorithm = create(d3, name, self.chosen, self._sizes, device)
            windows = d3.torch_utility.TorchTrajectoryMiniBatch
            self._pack = windows if name == "dt" else d3.TorchMiniBatch
        self._steps = Transitions(trajectories, self.facts) if name != "dt" else None
        context = int(self.chosen.get("context_size", 1))
        self._windows = Sequences(trajectories, self.facts, context) if name == "dt" else None
        if self._windows is not None and options.target_return is not None:
            self._windows.target = options.target_return
        self._update = Updates(self._work, self._tensors, device)

    def advance(self, epoch: int) -> dict[str, float]:
        """Train one epoch of a thousand updates.

        Raises:
            DataError: A loss is not finite any more.
        """
        rng = stream(self.random_seed, self.name, "order", epoch)
        first = epoch * PER_EPOCH
        last = min(first + PER_EPOCH, self.updates)
        totals: dict[str, Tensor] = {}
        counts: dict[str, int] = {}
        # One thread: the sums inside would otherwise depend on how many there are.
        with library(), threads(1), self._seeded("epoch", epoch):
            self._algorithm.impl.modules.set_train()
            for number, batch in zip(
                range(first, last), self._batches(last - first, rng), strict=True
            ):
                taken = way(self._algorithm.impl, self.name, number)
                for name, value in self._update(batch, taken).items():
                    if name not in totals:
                        totals[name] = torch.zeros((), dtype=torch.float64, device=self.device)
                    totals[name] += value
                    counts[name] = counts.get(name, 0) + 1
        means = {name: float(total) / counts[name] for name, total in totals.items()}
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
        return min(self.updates, epochs * PER_EPOCH)

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
        self._update.forget()

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

    def _seeded(self, *path: str | int) -> contextlib.AbstractContextManager[None]:
        return torch_seed(int(stream(self.random_seed, self.name, *path).integers(2**62)))

    def _parts(self) -> Iterator[tuple[str, Any]]:
        modules = self._algorithm.impl.modules
        for field in dataclasses.fields(modules):
            part = getattr(modules, field.name)
            yield field.name, part if isinstance(part, nn.Module) else part.optim

    def _tensors(self) -> list[Tensor]:
        """Everything that an update changes."""
        found: list[Tensor] = []
        for _, part in self._parts():
            flat = part.state_dict() if isinstance(part, nn.Module) else _optimiser_state(part)
            found += [value for value in flat.values() if isinstance(value, Tensor)]
        return found

    def _batches(self, count: int, rng: np.random.Generator) -> Iterator[dict[str, Tensor]]:
        """Batches on the device, several drawn at a time."""
        size = int(self.chosen.get("batch_size", 100))
        source = self._steps or self._windows
        assert source is not None
        for first in range(0, count, AT_ONCE):
            several = min(AT_ONCE, count - first)
            columns = {
                name: torch.from_numpy(rows.reshape(several, size, *rows.shape[1:])).to(self.device)
                for name, rows in source.draw(several * size, rng).items()
            }
            for number in range(several):
                yield {name: batches[number] for name, batches in columns.items()}

    def _work(self, columns: Mapping[str, Tensor], taken: str) -> dict[str, Tensor]:
        batch = self._pack(**columns, device=str(self.device))
        return update(self._algorithm.impl, self.name, batch, taken)

    def _check_same(self, policy: NetworkPolicy) -> None:
        """The copy of the network must act like d3rlpy's own."""
        rng = np.random.default_rng(0)
        x = rng.standard_normal((64, self._sizes[0])).astype(np.float32)
        rows = x * policy.normaliser.scale + policy.normaliser.mean
        ours = policy.units(rows)
        # Not `x` itself: on the way there and back it is rounded.
        same = torch.from_numpy(policy.normaliser(rows)).to(self.device)
        with torch.no_grad():
            theirs = GREEDY[self.name](self._algorithm.impl, same)
        worst = float(np.abs(ours - theirs.cpu().numpy()).max())
        # A GPU adds in another order, and after long training products can be large.
        if not worst < (1e-4 if self.device.type == "cpu" else 1e-2):
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
