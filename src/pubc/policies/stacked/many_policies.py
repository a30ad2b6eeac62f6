"""A stack of trainings as a run on disk: one checkpoint for all, a policy folder for each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from torch import Tensor

from pubc.errors import DataError, PubcError
from pubc.policies.networks import NetworkPolicy
from pubc.policies.policy_folder import CONFIG, KIND, save
from pubc.policies.training_run import METRICS, Session, shown
from pubc.storage import claim, read_json
from pubc.threads import threads
from pubc.trajectory import Array

__all__ = ["Many", "ManySession", "One", "Stack", "folder_of"]


class Stack(Protocol):
    """Trainings of one learner that differ in their random seeds, or in their data."""

    random_seeds: tuple[int, ...]
    """One of each member."""
    epochs: int
    """Epochs to go through unless all settle earlier."""
    fingerprint: str
    """Of the data of all."""

    def advance(self, epoch: int) -> dict[str, Tensor]:
        """Train one epoch, numbered from 0; losses by name, each of shape (members,)."""
        ...

    @property
    def settled(self) -> bool:
        """Whether more epochs would change nothing that matters."""
        ...

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make."""
        ...

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes: arrays, and JSON values."""
        ...

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state."""
        ...

    def policies(self) -> list[NetworkPolicy]:
        """What each member learned so far."""
        ...

    def about(self, member: int) -> dict[str, Any]:
        """Every number that shaped the training of a member, as JSON values."""
        ...

    def epochs_of(self, member: int, epochs: int) -> int:
        """How many epochs of its own a member has trained after so many of the stack."""
        ...


class Many:
    """A stack as a training run, with metrics of every member and of all."""

    def __init__(
        self, stack: Stack, names: Sequence[str] | None = None, *, go_on: bool = False
    ) -> None:
        """Take a stack as it is.

        Args:
            stack: What is trained.
            names: What to call each member; by its random seed if omitted.
            go_on: A member whose losses are not finite any more does not stop the others; it
                has no metrics then.
        """
        self.stack, self._goes_on = stack, go_on
        self.names = tuple(names or map(str, stack.random_seeds))
        self.epochs, self.fingerprint = stack.epochs, stack.fingerprint

    def advance(self, epoch: int) -> dict[str, float]:
        """Train one epoch; METRIC is the mean over the members, METRIC@NAME a member's own.

        Raises:
            DataError: The loss of a member is not finite any more, or those of all.
        """
        found = self.stack.advance(epoch)
        sound = [
            all(map(math.isfinite, own))
            for own in zip(*(values.tolist() for values in found.values()), strict=True)
        ]
        if not (any(sound) if self._goes_on else all(sound)):
            raise self._lost(found, sound.index(False), epoch)
        means = {name: float(values[sound].mean()) for name, values in found.items()}
        own = {
            f"{name}@{whose}": value
            for name, values in found.items()
            for whose, value, is_sound in zip(self.names, values.tolist(), sound, strict=True)
            if is_sound
        }
        return {**means, **own}

    def _lost(self, found: Mapping[str, Tensor], member: int, epoch: int) -> DataError:
        name, value = next(
            (name, float(values[member]))
            for name, values in found.items()
            if not math.isfinite(values[member])
        )
        return DataError(
            f"The {name.replace('_', ' ')} of random seed {self.stack.random_seeds[member]} "
            f"became {value} in epoch {epoch + 1}, so training stopped. Lower --learning-rate, "
            "or look for extreme values with `pubc inspect`.",
            code="nonfinite_loss",
        )

    @property
    def settled(self) -> bool:
        """Whether more epochs would change nothing that matters."""
        return self.stack.settled

    def updates_after(self, epochs: int) -> int:
        """Updates that so many epochs make."""
        return self.stack.updates_after(epochs)

    def state(self) -> tuple[dict[str, Array], dict[str, Any]]:
        """Everything that training changes."""
        return self.stack.state()

    def restore(self, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> None:
        """Go back to a state."""
        self.stack.restore(arrays, facts)

    def policy(self) -> NetworkPolicy:
        """What the first member learned so far."""
        return self.stack.policies()[0]

    def policies(self) -> list[NetworkPolicy]:
        """What each member learned so far."""
        return self.stack.policies()

    def about(self) -> dict[str, Any]:
        """Every number that shaped the training of the first member."""
        return self.stack.about(0)


class One(Many):
    """A stack of one as the training run that it is."""

    def advance(self, epoch: int) -> dict[str, float]:
        """Train one epoch."""
        # One thread: the sums inside would otherwise depend on how many there are.
        with threads(1):
            return shown(super().advance(epoch))


def folder_of(out: Path, random_seed: int) -> Path:
    """Where the policy of a member goes."""
    return out / f"seed-{random_seed}"


@dataclass(frozen=True, slots=True)
class ManySession(Session):
    """A stack with its place on disk: `out` holds one policy folder for each random seed."""

    def _write(self, history: list[dict[str, Any]]) -> None:
        policies = self._run().policies()
        for member, (place, policy) in enumerate(zip(self._places(), policies, strict=True)):
            self._save(place, member, policy, history)

    def _save(
        self, place: Path, member: int, policy: NetworkPolicy, history: list[dict[str, Any]]
    ) -> None:
        """Write the policy folder of a member."""
        run = self._run()
        lines = [_of_member(line, run.names[member]) for line in history]
        made = run.stack.epochs_of(member, len(history))
        save(
            place,
            policy,
            about=self._about(member, made),
            files={METRICS: "".join(json.dumps(line) + "\n" for line in lines).encode()},
            overwrite=self.overwrite or (self.resume and self._is_own(place, member, made)),
        )

    def _about(self, member: int, epochs: int) -> dict[str, Any]:
        """What a policy folder says of how a member came about."""
        stack = self._run().stack
        facts = {name: value for name, value in self.about.items() if name != "random_seeds"}
        training = {**stack.about(member), "epochs": epochs}
        return {**facts, "random_seed": stack.random_seeds[member], "training": training}

    def _is_own(self, place: Path, member: int, epochs: int | None = None) -> bool:
        """Whether a policy is what this run wrote before it was killed.

        Args:
            place: The policy.
            member: Whose it should be.
            epochs: How long it was trained; that is not known before the end.
        """
        try:
            told = read_json(place / CONFIG)
            made = int(told["training"]["epochs"]) if epochs is None else epochs
        except (PubcError, KeyError, TypeError, ValueError):
            return False
        asked = json.loads(json.dumps(self._about(member, made)))
        return all(told.get(name) == value for name, value in asked.items())

    def _places(self) -> list[Path]:
        return [folder_of(self.out, seed) for seed in self._run().stack.random_seeds]

    def _check_place(self) -> None:
        goes_on = self.resume and bool(self._checkpoints())
        for member, place in enumerate(self._places()):
            claim(place, KIND, force=self.overwrite or (goes_on and self._is_own(place, member)))

    def _run(self) -> Many:
        assert isinstance(self.trainer, Many)
        return self.trainer


def _of_member(line: Mapping[str, Any], name: str) -> dict[str, Any]:
    """A line of metrics as the member alone would have written it."""
    ending = f"@{name}"
    own = {k.removesuffix(ending): v for k, v in line.items() if k.endswith(ending)}
    return {"epoch": line["epoch"], "updates": line["updates"], **own}
