"""One training run on disk: checkpoints while it lasts, a policy folder when it is done.

While a run lasts, everything of it lies in `OUT.training`: the last two checkpoints, each of which
proves by a SHA-256 in it that it is as it was written. A killed run goes on from the newest, and
ends with the same bytes as a run that was never killed: no state of any random generator is
stored, each epoch draws from a stream of its own name.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pubc.errors import DataError, InterruptedRun, UsageError
from pubc.policies.checkpoints_scored import ScoredCheckpoints
from pubc.policies.policy_folder import KIND, TrainedPolicy, save
from pubc.storage import WorkFolder, claim, lock
from pubc.tensor_files import load_arrays, proves_itself, save_arrays
from pubc.trajectory import Array

__all__ = ["Epoch", "Session", "Trainer", "check_unfinished", "shown", "unfinished"]

METRICS = "metrics.jsonl"
EVALUATIONS = "evaluations.jsonl"
_LOOK = "evaluation"
"""Under this name the history of a run holds what a checkup found after an epoch."""
_CHECKPOINT = re.compile(r"checkpoint-(\d{6})\.safetensors")
_NAMES = (f"checkpoint-{'[0-9]' * 6}.safetensors",)
"""Every file of a run that is not done."""
_KEEP = 2


class Trainer(Protocol):
    """A training run in memory, whatever the learner."""

    epochs: int
    """Epochs to go through unless it settles earlier."""
    fingerprint: str
    """Of the data."""

    def advance(self, epoch: int) -> dict[str, float]:
        """Train one epoch, numbered from 0, and say how it went."""
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

    def policy(self) -> TrainedPolicy:
        """What was learned so far."""
        ...

    def about(self) -> dict[str, Any]:
        """Every number that shaped the run, as JSON values."""
        ...


@dataclass(frozen=True, slots=True)
class Epoch:
    """How one epoch went."""

    number: int
    """1 for the first."""
    of: int
    """Epochs planned."""
    metrics: Mapping[str, float]
    """Loss and whatever else the learner has to say."""
    evaluation: Mapping[str, Any] | None = None
    """What a checkup after it found: returns, score."""


@dataclass(frozen=True, slots=True)
class Session:
    """A training run with its place on disk."""

    trainer: Trainer
    """What is trained."""
    out: Path
    """The policy folder to write."""
    about: Mapping[str, Any]
    """Learner, options and data, for the policy's config; a resumed run must say the same."""
    resume: bool = False
    """Go on from a checkpoint where there is one."""
    overwrite: bool = False
    """Replace an existing policy folder."""
    every: float = 30.0
    """Seconds between checkpoints."""
    checkups: ScoredCheckpoints | None = None
    """Evaluations on the way; the policy folder then holds them in evaluations.jsonl."""

    @property
    def folder(self) -> Path:
        """Where the run lives until it is done."""
        return unfinished(self.out).path

    def epochs(self) -> Iterator[Epoch]:
        """Train; the policy folder exists once the iteration has ended.

        Raises:
            UsageError: The policy exists, or a checkpoint belongs to another run.
            DataError: The loss is not finite any more.
            EnvironmentFailure: The disk said no.
        """
        self._check_place()
        check_unfinished(self.out, resume=self.resume)
        unfinished(self.out).begin()
        with lock(self.folder):
            history = self._pick_up()
            saved = time.monotonic()
            for number in range(len(history), self.trainer.epochs):
                if self.trainer.settled:
                    break
                metrics = self._advance(number)
                updates = self.trainer.updates_after(number + 1)
                history.append({"epoch": number + 1, "updates": updates, **metrics})
                self._look(history)
                if time.monotonic() - saved >= self.every:
                    self._checkpoint(history)
                    saved = time.monotonic()
                yield Epoch(number + 1, self.trainer.epochs, shown(metrics), history[-1].get(_LOOK))
            self._write(history)
            unfinished(self.out).remove()

    def _write(self, history: list[dict[str, Any]]) -> None:
        """Put what was learned in its place."""
        facts = {**self.about, "training": {**self.trainer.about(), "epochs": len(history)}}
        save(
            self.out,
            self.trainer.policy(),
            about=facts,
            files=self._files(history),
            overwrite=self.overwrite,
        )

    def _advance(self, number: int) -> dict[str, float]:
        try:
            return self.trainer.advance(number)
        except KeyboardInterrupt:
            kept = self._checkpoints()
            reached = _epochs(kept[-1]) if kept else 0
            raise InterruptedRun(
                f"Stopped in epoch {number + 1} of {self.trainer.epochs}. The same command with "
                f"--resume goes on after epoch {reached}."
            ) from None

    def _look(self, history: list[dict[str, Any]]) -> None:
        """Evaluate after the last epoch of the history, where that is due."""
        if self.checkups is None:
            return
        after = int(history[-1]["updates"])
        before = int(history[-2]["updates"]) if len(history) > 1 else 0
        last = len(history) == self.trainer.epochs or self.trainer.settled
        if last or self.checkups.due(before, after):
            found = self.checkups.measure(self.trainer.policy(), after)
            history[-1][_LOOK] = found.document()

    def _files(self, history: list[dict[str, Any]]) -> dict[str, bytes]:
        """What lies beside the policy: how training went, and what the checkups found."""
        files = {METRICS: [_told(line) for line in history]}
        if self.checkups is not None:
            files[EVALUATIONS] = [line[_LOOK] for line in history if _LOOK in line]
        return {
            name: "".join(json.dumps(line) + "\n" for line in lines).encode()
            for name, lines in files.items()
        }

    def _check_place(self) -> None:
        claim(self.out, KIND, force=self.overwrite)

    def _pick_up(self) -> list[dict[str, Any]]:
        kept = self._checkpoints()
        if not kept:
            return []
        arrays, facts = load_arrays(kept[-1])
        history = _history(kept[-1], facts)
        if facts["run"] != self._identity():
            raise UsageError(
                f"{self.folder} was begun with other data or options. Give the same ones, "
                "or delete it to start afresh."
            )
        self.trainer.restore(arrays, facts["trainer"])
        return history

    def _identity(self) -> dict[str, Any]:
        plan = json.loads(json.dumps(self.trainer.about()))
        return {"data": self.trainer.fingerprint, "about": dict(self.about), "plan": plan}

    def _checkpoints(self) -> list[Path]:
        return _checkpoints(self.folder)

    def _checkpoint(self, history: list[dict[str, Any]]) -> None:
        arrays, facts = self.trainer.state()
        path = self.folder / f"checkpoint-{len(history):06d}.safetensors"
        about = {"run": self._identity(), "history": history, "trainer": facts}
        save_arrays(path, arrays, about, overwrite=False)
        for old in self._checkpoints()[:-_KEEP]:
            unfinished(self.out).drop(old.name)


def unfinished(out: Path) -> WorkFolder:
    """Where a run lives until its policy is written."""
    return WorkFolder(out.with_name(out.name + ".training"), "training run", _NAMES, proves_itself)


def check_unfinished(out: Path, *, resume: bool) -> None:
    """See that a run may live there: it is free, or holds one of ours to go on with.

    Raises:
        UsageError: Something else is there, or a run that nobody asked to go on with.
    """
    work = unfinished(out)
    if work.about() is not None and not resume and _checkpoints(work.path):
        raise UsageError(
            f"{work.path} holds a run that did not finish. Pass --resume to go on with "
            "it, or delete it to start afresh."
        )


def _checkpoints(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(p for p in folder.iterdir() if _CHECKPOINT.fullmatch(p.name))


def _epochs(checkpoint: Path) -> int:
    """How many epochs were done when it was written."""
    found = _CHECKPOINT.fullmatch(checkpoint.name)
    assert found is not None
    return int(found[1])


def _history(path: Path, facts: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The epochs that a checkpoint tells of; one that anybody may have sealed is looked at."""
    history = facts.get("history")
    whole = isinstance(facts.get("trainer"), dict) and isinstance(facts.get("run"), dict)
    if not whole or not isinstance(history, list) or not all(isinstance(h, dict) for h in history):
        raise DataError(
            f"{path}: not a checkpoint. Delete the folder to start afresh.", code="bad_checkpoint"
        )
    return history


def shown(metrics: Mapping[str, float]) -> dict[str, float]:
    """Metrics of a run without those of single members, which are called NAME@SEED."""
    return {name: value for name, value in metrics.items() if "@" not in name}


def _told(line: Mapping[str, Any]) -> dict[str, Any]:
    """What metrics.jsonl says about an epoch."""
    return {name: value for name, value in line.items() if name != _LOOK}
