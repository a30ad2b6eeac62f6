"""Behaviour cloning of many members at once: the trainings of `cloning/bc.py`, side by side.

Members differ in their random seeds: in the first weights, in the order of the steps, and in the
trajectories that they hold out. They may also have data of their own; each then goes through it
by its own clock. A member that is done stays as it is while the others go on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pubc.errors import UsageError
from pubc.policies.cloning.bc import CHUNK, plan
from pubc.policies.cloning.flat_weights import initial_parameters
from pubc.policies.cloning.fused_steps import LOG_STD
from pubc.policies.cloning.member_clock import Integers, MemberClock
from pubc.policies.networks import NetworkPolicy
from pubc.policies.stacked.paced_updates import PacedUpdates
from pubc.policies.stacked.stacked_networks import StackedNet, stack_flat
from pubc.policies.stacked.stacked_rows import (
    Member,
    StackedSteps,
    facts_of_members,
    fingerprint_of,
    moved,
)
from pubc.policies.train_options import TrainOptions
from pubc.streams import stream
from pubc.trajectory import Array

__all__ = ["StackedBC"]

_BLOCK = 4096


class StackedBC:
    """Cloning runs as one run; an epoch of it is the longest epoch of a member."""

    def __init__(
        self, members: Sequence[Member], options: TrainOptions, *, device: torch.device
    ) -> None:
        self.options, self.device = options, device
        self.random_seeds = tuple(member.random_seed for member in members)
        self.facts = facts_of_members(members)
        self.fingerprint = fingerprint_of(self.facts)
        sets = [member.trajectories for member in members]
        plans = [plan(one, options) for one in sets]
        self.batch, self.rate = plans[0].batch_size, plans[0].learning_rate
        if any(one.batch_size != self.batch for one in plans):
            raise UsageError("Members of a stack have batches of one size; give a batch size.")
        self._clocks = [
            MemberClock(*each) for each in zip(sets, plans, self.random_seeds, strict=True)
        ]
        self._longest = max(clock.per_epoch for clock in self._clocks)
        self._total = max(clock.total for clock in self._clocks)
        self.epochs = -(-self._total // self._longest)
        self._rows = StackedSteps(sets, self.facts, device)
        self._acts = sets[0].action_size
        wide = self._acts * (2 if options.head == "gaussian" else 1)
        sizes = (sets[0].observation_size, *options.hidden, wide)
        flats = [
            initial_parameters(sizes, stream(seed, "bc", "weights")) for seed in self.random_seeds
        ]
        self._net = stack_flat(flats, sizes, device)
        self._first = [torch.zeros_like(t) for t in self._net.parameters]
        self._second = [torch.zeros_like(t) for t in self._net.parameters]
        self._step = torch.zeros((), device=device)
        self._best = self._net.twin()
        self._told = {name: np.zeros(len(members)) for name in ("loss", "held_out_loss")}
        self._update = PacedUpdates(self._train, self._tensors, device)

    def advance(self, epoch: int) -> dict[str, Tensor]:
        """Train one epoch; the mean loss of each member, the last one of those that are done."""
        at = epoch * self._longest
        last = min(at + self._longest, self._total)
        total = torch.zeros(len(self._clocks), dtype=torch.float64, device=self.device)
        made = np.zeros(len(self._clocks))
        while at < last and not self.settled:
            training = [k for k, clock in enumerate(self._clocks) if clock.trains(at)]
            stop = min(at + CHUNK, last, *(self._clocks[k].next_stop(at) for k in training))
            total += self._train_some(training, at, stop)
            made[training] += stop - at
            at = stop
            for member, clock in enumerate(self._clocks):
                if clock.is_judged(at):
                    self._judge(member)
        mean = total.cpu().numpy() / np.maximum(made, 1)
        self._told["loss"] = np.where(made > 0, mean, self._told["loss"])
        rates = [clock.rate(at) for clock in self._clocks]
        shown = ["loss"] + ["held_out_loss"] * all(len(clock.held) for clock in self._clocks)
        found = {name: torch.from_numpy(self._told[name].copy()) for name in shown}
        return {**found, "learning_rate": torch.tensor(rates, dtype=torch.float64)}

    def _train_some(self, training: Sequence[int], at: int, stop: int) -> Tensor:
        """Updates from `at` to `stop` of the members that train; the sums of their losses."""
        shape = stop - at, len(self._clocks)
        positions: Integers = np.zeros((*shape, self.batch), dtype=np.int64)
        shares = np.zeros(shape, dtype=np.float32)
        for member in training:
            positions[:, member] = self._clocks[member].positions(at, stop)
            shares[:, member] = self._clocks[member].shares(at, stop)
        inputs, targets = self._rows.gather(positions)
        share = moved(shares, self.device)
        total = torch.zeros(len(self._clocks), dtype=torch.float64, device=self.device)
        for number in range(stop - at):
            drawn = {
                "inputs": inputs[number],
                "targets": targets[number],
                "share": share[number],
            }
            total += self._update(drawn, "all")["loss"]
        return total

    @property
    def settled(self) -> bool:
        """Whether the held-out loss of every member has stopped falling."""
        return all(clock.settled for clock in self._clocks)

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make, of the member that makes most."""
        return min(epochs * self._longest, self._total)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes."""
        told = {name: values.tolist() for name, values in self._told.items()}
        facts = {"clocks": [clock.state() for clock in self._clocks], "told": told}
        return {name: t.detach().cpu().numpy().copy() for name, t in self._named().items()}, facts

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state."""
        with torch.no_grad():
            for name, tensor in self._named().items():
                tensor.copy_(torch.from_numpy(np.array(arrays[name])))
        for clock, known in zip(self._clocks, facts["clocks"], strict=True):
            clock.restore(known)
        self._told = {name: np.array(values) for name, values in facts["told"].items()}
        self._update.forget()

    def policies(self) -> list[NetworkPolicy]:
        """What each member learned: its best weights on held-out steps, else the last."""
        return [
            NetworkPolicy(
                known.normaliser,
                known.actions,
                (self._best if len(clock.held) else self._net).layers(member),
                gaussian=self.options.head == "gaussian",
            )
            for member, (known, clock) in enumerate(zip(self.facts, self._clocks, strict=True))
        ]

    def epochs_of(self, member: int, epochs: int) -> int:
        """Epochs of the member's own data."""
        return self._clocks[member].epochs_after(self.updates_after(epochs))

    def about(self, member: int) -> dict[str, Any]:
        """The plan of a member as JSON values."""
        return asdict(self._clocks[member].plan)

    def _named(self) -> dict[str, Tensor]:
        groups = {
            "value": self._net.parameters,
            "first": self._first,
            "second": self._second,
            "best": self._best.parameters,
            "step": [self._step],
        }
        return {f"{n}.{i}": t for n, tensors in groups.items() for i, t in enumerate(tensors)}

    def _tensors(self) -> list[Tensor]:
        return [t.detach() for t in self._named().values()]

    def _train(self, drawn: Mapping[str, Tensor], way: str) -> dict[str, Tensor]:
        """Update every member by its share of a whole step; the losses of those that moved."""
        tensors = self._net.parameters
        losses = self._losses(self._net(drawn["inputs"][..., :-1]), drawn["targets"])
        gradients = torch.autograd.grad(losses.sum(), tensors)
        values = [tensor.detach() for tensor in tensors]
        before = [value.clone() for value in values]
        self._step.add_(1)
        torch._fused_adam_(
            values,
            list(gradients),
            self._first,
            self._second,
            [],
            [self._step] * len(values),
            lr=self.rate,
            beta1=0.9,
            beta2=0.999,
            weight_decay=0.0,
            eps=1e-8,
            amsgrad=False,
            maximize=False,
        )
        share = drawn["share"]
        for old, value in zip(before, values, strict=True):
            torch.lerp(old, value, share.view(-1, 1, 1), out=value)
        return {"loss": torch.where(share > 0, losses.detach(), torch.zeros_like(share))}

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
    def _judge(self, member: int) -> None:
        """Held-out loss of a member; weights that did better than before are remembered."""
        rows, found = self._clocks[member].held, 0.0
        one = StackedNet(
            [w[member : member + 1] for w in self._net.weights],
            [b[member : member + 1] for b in self._net.biases],
        )
        for start in range(0, len(rows), _BLOCK):
            part = rows[None, None, start : start + _BLOCK]
            inputs, targets = self._rows.gather(part, [member])
            loss = self._losses(one(inputs[0][..., :-1]), targets[0])
            found += float(loss) * part.size / len(rows)
        self._told["held_out_loss"][member] = found
        if self._clocks[member].judged(found):
            for best, now in zip(self._best.parameters, self._net.parameters, strict=True):
                best[member] = now[member]
