"""Behaviour cloning of many members at once: the trainings of `cloning/bc.py`, side by side.

Members share the data and differ in their random seeds: in the first weights, in the order of the
steps, and in the trajectories that they hold out. Those may leave one member a few updates more
per epoch than another; the last updates of an epoch then move only the members that have them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pubc.policies.cloning.bc import CHECKED, CHUNK, Plan, hold_out, learning_rate, plan
from pubc.policies.cloning.flat_weights import initial_parameters
from pubc.policies.cloning.fused_steps import LOG_STD
from pubc.policies.networks import NetworkPolicy
from pubc.policies.stacked.paced_updates import PacedUpdates
from pubc.policies.stacked.stacked_networks import StackedNet, stack_flat
from pubc.policies.stacked.stacked_rows import gather_feeds, room_for
from pubc.policies.train_options import TrainOptions
from pubc.policies.training_rows import TrainingRows, facts_of
from pubc.streams import stream
from pubc.trajectory import Array, TrajectorySet

__all__ = ["StackedBC"]

_BLOCK = 4096


class StackedBC:
    """Cloning runs that differ in their random seeds, as one run."""

    def __init__(
        self,
        trajectories: TrajectorySet,
        options: TrainOptions,
        *,
        random_seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        self.plan: Plan = plan(trajectories, options)
        self.epochs, self.options, self.device = self.plan.epochs, options, device
        self.random_seeds = tuple(random_seeds)
        self.facts = facts_of(trajectories)
        self.fingerprint = self.facts.fingerprint
        whole = TrainingRows(trajectories, self.facts, device=device, memory=room_for(device))
        self._whole, self._acts = whole, trajectories.action_size
        self._kept, self._held = [], []
        for seed in self.random_seeds:
            out = hold_out(len(trajectories), self.plan.held_out, seed)
            of_step = np.repeat(out, trajectories.lengths)
            self._kept.append(np.flatnonzero(~of_step))
            held = np.flatnonzero(of_step)
            some = np.linspace(0, len(held) - 1, CHECKED) if len(held) else np.zeros(0)
            self._held.append(held[np.unique(some.astype(np.int64))])
        wide = self._acts * (2 if options.head == "gaussian" else 1)
        sizes = (trajectories.observation_size, *options.hidden, wide)
        flats = [
            initial_parameters(sizes, stream(seed, "bc", "weights")) for seed in self.random_seeds
        ]
        self._net = stack_flat(flats, sizes, device)
        self._first = [torch.zeros_like(t) for t in self._net.parameters]
        self._second = [torch.zeros_like(t) for t in self._net.parameters]
        count = len(self.random_seeds)
        self._steps = [torch.zeros((), device=device) for _ in range(count)]
        self._best = self._net.twin()
        self._rate = torch.zeros((), device=device)
        self._best_loss = np.full(count, math.inf)
        self._waited = np.zeros(count, dtype=np.int64)
        self._update = PacedUpdates(self._work, self._tensors, device)

    def advance(self, epoch: int) -> dict[str, Tensor]:
        """Train one epoch; the mean loss of each member."""
        orders = [
            stream(seed, "bc", "order", epoch).permutation(len(kept))
            for seed, kept in zip(self.random_seeds, self._kept, strict=True)
        ]
        batch = self.plan.batch_size
        counts = [max(1, len(kept) // batch) for kept in self._kept]
        most = max(counts)
        total = torch.zeros(len(counts), dtype=torch.float64, device=self.device)
        for start in range(0, most, CHUNK):
            stop = min(start + CHUNK, most)
            positions = self._positions(orders, start, stop)
            inputs, targets = gather_feeds([self._whole] * len(counts), positions, self.device)
            self._rate.fill_(learning_rate(self.plan, epoch + start / most))
            for number in range(start, stop):
                drawn = {"inputs": inputs[number - start], "targets": targets[number - start]}
                active = [k for k, count in enumerate(counts) if number < count]
                if len(active) == len(counts):
                    total += self._update(drawn, "all")["loss"]
                else:
                    total[active] += self._train(drawn, active)[active]
        losses = total.cpu() / torch.tensor(counts)
        rate = learning_rate(self.plan, epoch + 1)
        found = {"loss": losses, "learning_rate": torch.full_like(losses, rate)}
        if len(self._held[0]):
            found["held_out_loss"] = self._judge()
        return found

    @property
    def settled(self) -> bool:
        """Whether the held-out loss of every member has stopped falling."""
        return bool(len(self._held[0])) and bool((self._waited >= self.plan.patience).all())

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make, of the member that makes most."""
        return epochs * max(1, max(map(len, self._kept)) // self.plan.batch_size)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes."""
        named = self._named()
        # JSON has no infinity.
        best = [None if math.isinf(loss) else float(loss) for loss in self._best_loss]
        facts = {"best_loss": best, "waited": self._waited.tolist()}
        return {name: t.detach().cpu().numpy().copy() for name, t in named.items()}, facts

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state."""
        with torch.no_grad():
            for name, tensor in self._named().items():
                tensor.copy_(torch.from_numpy(np.array(arrays[name])))
        self._best_loss = np.array([math.inf if v is None else v for v in facts["best_loss"]])
        self._waited = np.array(facts["waited"], dtype=np.int64)
        self._update.forget()

    def policies(self) -> list[NetworkPolicy]:
        """What each member learned: its best weights on held-out steps, else the last."""
        chosen = self._best if len(self._held[0]) else self._net
        return [
            NetworkPolicy(
                self.facts.normaliser,
                self.facts.actions,
                chosen.layers(member),
                gaussian=self.options.head == "gaussian",
            )
            for member in range(len(self.random_seeds))
        ]

    def about(self) -> dict[str, Any]:
        """The plan as JSON values."""
        return asdict(self.plan)

    def _positions(self, orders: Sequence[Any], start: int, stop: int) -> Any:
        """Rows of the whole set, shape (updates, members, batch); done members repeat some."""
        batch, found = self.plan.batch_size, []
        for order, kept in zip(orders, self._kept, strict=True):
            rows = np.resize(order, max(len(order), stop * batch))[start * batch : stop * batch]
            found.append(kept[rows].reshape(stop - start, batch))
        return np.ascontiguousarray(np.stack(found, axis=1))

    def _named(self) -> dict[str, Tensor]:
        groups = {
            "value": self._net.parameters,
            "first": self._first,
            "second": self._second,
            "best": self._best.parameters,
            "step": self._steps,
        }
        return {f"{n}.{i}": t for n, tensors in groups.items() for i, t in enumerate(tensors)}

    def _tensors(self) -> list[Tensor]:
        return [t.detach() for t in self._named().values()]

    def _work(self, drawn: Mapping[str, Tensor], way: str) -> dict[str, Tensor]:
        return {"loss": self._train(drawn, range(len(self.random_seeds)))}

    def _train(self, drawn: Mapping[str, Tensor], active: Sequence[int]) -> Tensor:
        """Update some members; the losses of all."""
        tensors = self._net.parameters
        losses = self._losses(self._net(drawn["inputs"][..., :-1]), drawn["targets"])
        gradients = torch.autograd.grad(losses.sum(), tensors)
        values = [tensor.detach() for tensor in tensors]
        steps = [self._steps[k] for k in active]
        torch._foreach_add_(steps, 1)
        rate: Any = self._rate if self.device.type == "cuda" else float(self._rate)
        torch._fused_adam_(
            _apart(values, active),
            _apart(gradients, active),
            _apart(self._first, active),
            _apart(self._second, active),
            [],
            steps * len(tensors),
            lr=rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )
        return losses.detach()

    def _losses(self, outputs: Tensor, wanted: Tensor) -> Tensor:
        """Mean loss of each member, shape (members,)."""
        units = torch.tanh(outputs)
        errors = (units[..., : self._acts] - wanted).square()
        if self.options.head == "gaussian":
            middle, reach = sum(LOG_STD) / 2, (LOG_STD[1] - LOG_STD[0]) / 2
            width = middle + reach * units[..., self._acts :]
            errors = 0.5 * errors * torch.exp(-2 * width) + width
        return errors.mean(dim=(-2, -1))

    @torch.no_grad()
    def _judge(self) -> Tensor:
        """Held-out loss of each member; those that did better than before are remembered."""
        found = torch.zeros(len(self.random_seeds), dtype=torch.float64)
        for member, rows in enumerate(self._held):
            one = StackedNet(
                [w[member : member + 1] for w in self._net.weights],
                [b[member : member + 1] for b in self._net.biases],
            )
            for start in range(0, len(rows), _BLOCK):
                part = rows[None, None, start : start + _BLOCK]
                inputs, targets = gather_feeds([self._whole], part, self.device)
                loss = self._losses(one(inputs[0][..., :-1]), targets[0])
                found[member] += float(loss) * part.size / len(rows)
            if self._waited[member] >= self.plan.patience:
                continue  # Alone, this member would have ended here.
            if float(found[member]) < self._best_loss[member]:
                self._best_loss[member], self._waited[member] = float(found[member]), 0
                for best, now in zip(self._best.parameters, self._net.parameters, strict=True):
                    best[member] = now[member]
            else:
                self._waited[member] += 1
        return found


def _apart(tensors: Sequence[Tensor], members: Sequence[int]) -> list[Tensor]:
    """A tensor for each member: they may have made different numbers of steps."""
    return [own[k] for own in (tensor.unbind(0) for tensor in tensors) for k in members]
