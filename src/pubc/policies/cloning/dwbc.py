"""Discriminator-weighted behavioural cloning (Xu et al., 2022), written from its paper.

A discriminator learns, in the way of PU learning, which pairs come from the expert; it sees
the policy's own log-likelihood of the action beside observation and action. The policy
clones everything, each pair weighted by what the discriminator thinks of it. Both train
side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from pubc.errors import DataError
from pubc.policies.cloning.flat_weights import LAYOUT, check_layout, initial_parameters, split
from pubc.policies.cloning.fused_steps import LOG_STD
from pubc.policies.cuda_graphs import Updates
from pubc.policies.networks import NetworkPolicy, layers_from_flat
from pubc.policies.train_options import TrainOptions, check_rate
from pubc.policies.training_rows import TrainingRows, facts_of
from pubc.streams import stream
from pubc.threads import threads
from pubc.trajectory import Array, TrajectorySet

__all__ = ["ALPHA", "ETA", "WeightedClone", "discriminator_loss", "policy_weights"]

ALPHA = 7.5
"""Weight of plain cloning of the expert's pairs (Table 7)."""
ETA = 0.5
"""Share of the expert's pairs that the discriminator assumes (Table 7)."""
_BATCH, _RATE = 256, 1e-4
_UPDATES = {"paper": 1_000_000, "auto": 50_000}
_PER_EPOCH = 1000
_TRUST = (0.1, 0.9)
"""The discriminator's output is cut to this range before it weighs anything."""
_LIKELIHOOD = (-10.0, 10.0)
_WIDTH = 256
_LOSSES = ("loss", "discriminator_loss")


def discriminator_loss(expert: Tensor, mixed: Tensor, eta: float = ETA) -> Tensor:
    """PU risk of the discriminator from its logits on the expert's and on mixed pairs."""
    return eta * softplus(-expert).mean() + softplus(mixed).mean() - eta * softplus(expert).mean()


def policy_weights(expert: Tensor, mixed: Tensor) -> tuple[Tensor, Tensor]:
    """How much each pair counts when the policy clones it, from the logits."""
    sure, other = (torch.sigmoid(logits).clamp(*_TRUST) for logits in (expert, mixed))
    return ALPHA - ETA / (sure * (1 - sure)), 1 / (1 - other)


class WeightedClone:
    """A DWBC run: advance it epoch by epoch, take the policy at the end."""

    def __init__(
        self,
        trajectories: TrajectorySet,
        positives: TrajectorySet,
        options: TrainOptions,
        *,
        random_seed: int,
        device: torch.device,
    ) -> None:
        check_rate(options)
        self.random_seed, self.device = random_seed, device
        self.rate = options.learning_rate or _RATE
        self.batch = options.batch_size or _BATCH
        self.updates = options.updates or _UPDATES[options.recipe]
        self.epochs = math.ceil(self.updates / _PER_EPOCH)
        self.facts = facts_of(positives, trajectories)
        self.fingerprint = self.facts.fingerprint
        self._feeds = tuple(
            TrainingRows(part, self.facts, device=device) for part in (positives, trajectories)
        )
        seen, acts = trajectories.observation_size, trajectories.action_size
        self._acts = acts
        self.sizes = (seen, *options.hidden, 2 * acts)
        self._judge_sizes = ((seen + acts, _WIDTH), (1, _WIDTH), (2 * _WIDTH, _WIDTH, 1))
        self._policy = self._parameters(self.sizes, "policy")
        self._judge = [
            self._parameters(sizes, "discriminator", index)
            for index, sizes in enumerate(self._judge_sizes)
        ]
        recorded = device.type == "cuda"
        self._optimisers = tuple(
            torch.optim.Adam(parameters, lr=self.rate, fused=True, capturable=recorded)
            for parameters in ([self._policy], self._judge)
        )
        rows = 2 * self.batch
        self._drawn = {
            "inputs": torch.empty(rows, seen + 1, device=device),
            "targets": torch.empty(rows, acts, device=device),
        }
        self._update = Updates(self._work, self._tensors, device)

    def advance(self, epoch: int) -> dict[str, float]:
        """Train one epoch of a thousand updates.

        Raises:
            DataError: The loss is not finite any more.
        """
        rng = stream(self.random_seed, "dwbc", "order", epoch)
        updates = min(_PER_EPOCH, self.updates - epoch * _PER_EPOCH)
        totals = dict.fromkeys(_LOSSES, torch.zeros((), device=self.device))
        # One thread: the sums inside would otherwise depend on how many there are.
        with threads(1):
            for _ in range(updates):
                self._draw(rng)
                losses = self._update(self._drawn, "all")
                totals = {name: total + losses[name] for name, total in totals.items()}
        means = {name: float(total / updates) for name, total in totals.items()}
        if not all(math.isfinite(mean) for mean in means.values()):
            raise DataError(
                f"The loss became {means['loss']} in epoch {epoch + 1}, so training stopped. Lower "
                f"--learning-rate (it was {self.rate:g}).",
                code="nonfinite_loss",
            )
        return means

    settled = False
    """The paper trains for a fixed number of updates."""

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make."""
        return min(self.updates, epochs * _PER_EPOCH)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes."""
        arrays = {
            f"{index}.{name}": tensor.detach().cpu().numpy().copy()
            for index, parameter in enumerate((self._policy, *self._judge))
            for name, tensor in (
                ("value", parameter),
                *sorted(self._optimiser_of(index).state[parameter].items()),
            )
        }
        return arrays, {"layout": LAYOUT}

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state.

        Raises:
            UsageError: The state is of another layout.
        """
        check_layout(facts)
        for index, parameter in enumerate((self._policy, *self._judge)):
            with torch.no_grad():
                parameter.copy_(torch.from_numpy(np.array(arrays[f"{index}.value"])))
            state = self._optimiser_of(index).state[parameter]
            for key in ("exp_avg", "exp_avg_sq", "step"):
                state[key] = torch.from_numpy(np.array(arrays[f"{index}.{key}"])).to(self.device)
        self._update.forget()

    def policy(self) -> NetworkPolicy:
        """What was learned."""
        return NetworkPolicy(
            self.facts.normaliser,
            self.facts.actions,
            layers_from_flat(self._policy.detach().cpu().numpy(), self.sizes),
            gaussian=True,
        )

    def about(self) -> dict[str, Any]:
        """Every number that shaped the run."""
        return {
            "batch_size": self.batch,
            "learning_rate": self.rate,
            "updates": self.updates,
            "alpha": ALPHA,
            "eta": ETA,
        }

    def _parameters(self, sizes: tuple[int, ...], *name: str | int) -> nn.Parameter:
        rng = stream(self.random_seed, "dwbc", *name)
        return nn.Parameter(torch.from_numpy(initial_parameters(sizes, rng)).to(self.device))

    def _optimiser_of(self, index: int) -> torch.optim.Optimizer:
        return self._optimisers[min(index, 1)]

    def _draw(self, rng: np.random.Generator) -> None:
        for part, feed in enumerate(self._feeds):
            rows = slice(part * self.batch, (part + 1) * self.batch)
            where = rng.integers(feed.steps, size=self.batch)
            feed.gather(where, self._drawn["inputs"][rows], self._drawn["targets"][rows])

    def _tensors(self) -> list[Tensor]:
        """Everything that an update changes."""
        parameters = (self._policy, *self._judge)
        states = [self._optimiser_of(i).state[p].values() for i, p in enumerate(parameters)]
        return [*(p.detach() for p in parameters), *(value for s in states for value in s)]

    def _work(self, drawn: Mapping[str, Tensor], way: str) -> dict[str, Tensor]:
        for optimiser in self._optimisers:
            optimiser.zero_grad(set_to_none=True)
        likelihood = self._log_likelihood(drawn["inputs"], drawn["targets"])
        logits = self._discriminate(drawn["inputs"], drawn["targets"], likelihood.detach())
        expert, mixed = logits[: self.batch], logits[self.batch :]
        judged = discriminator_loss(expert, mixed)
        sure, other = policy_weights(expert.detach(), mixed.detach())
        cloned = (
            -(sure * likelihood[: self.batch]).mean() - (other * likelihood[self.batch :]).mean()
        )
        torch.autograd.backward(cloned + judged)
        for optimiser in self._optimisers:
            optimiser.step()
        return dict(zip(_LOSSES, (cloned.detach(), judged.detach()), strict=True))

    def _log_likelihood(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Of each pair, averaged over the action's dimensions, shape (rows,)."""
        units = torch.tanh(_through(inputs, split(self._policy, self.sizes)))
        middle, reach = sum(LOG_STD) / 2, (LOG_STD[1] - LOG_STD[0]) / 2
        width = middle + reach * units[:, self._acts :]
        error = (targets - units[:, : self._acts]) * torch.exp(-width)
        density = -0.5 * error.square() - width - 0.5 * math.log(2 * math.pi)
        return density.mean(dim=1)

    def _discriminate(self, inputs: Tensor, targets: Tensor, likelihood: Tensor) -> Tensor:
        pair, belief, head = (
            split(flat, sizes) for flat, sizes in zip(self._judge, self._judge_sizes, strict=True)
        )
        ones = inputs[:, -1:]
        seen = torch.cat([inputs[:, :-1], targets, ones], dim=1)
        said = torch.cat([likelihood.clamp(*_LIKELIHOOD)[:, None], ones], dim=1)
        joined = torch.relu(torch.cat([seen @ pair[0], said @ belief[0]], dim=1))
        return _through(torch.cat([joined, ones], dim=1), head).squeeze(1)


def _through(x: Tensor, layers: list[Tensor]) -> Tensor:
    ones = x[:, -1:]
    for layer in layers[:-1]:
        x = torch.cat([torch.relu(x @ layer), ones], dim=1)
    return x @ layers[-1]
