"""Where the residual judge has its imitators trained, a few at a time, and asks them.

Finished imitators lie on the shelf of the bench, so that a run that goes on trains none twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.nets import pick_device, save_tensors
from pubc.pu.auto.imitators import FLOOR, Imitators, Pool, train_imitators
from pubc.pu.auto.ratings import load_unit
from pubc.pu.auto.telling_steps import View
from pubc.pu.judge import Task, Training

__all__ = ["TRAIN_STEPS", "MakePool", "Workshop", "free_of", "over_free"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Logs = NDArray[np.float32]
"""Log residuals, in single precision."""
Mask = NDArray[np.bool_]
MakePool = Callable[[], Pool]
"""Makes the rows that an imitator is trained on, once they are needed."""

TRAIN_STEPS = 12_288
"""Rows on which one imitator is trained."""
TOGETHER = 3
"""Imitators trained as one batched product: one piece of work."""


@dataclass(frozen=True, slots=True, eq=False)
class Workshop:
    """Trains imitators for one round."""

    task: Task
    """The round."""
    view: View
    """The telling steps of all trajectories."""
    updates: int
    """Gradient steps of an imitator."""
    averaged: int
    """Rounds whose log ratios are averaged in this one, for whoever rates others later."""

    def pool(self, trajectories: Integers) -> MakePool:
        """What an imitator of some trajectories is trained on."""
        return lambda: self.view.pool(trajectories, TRAIN_STEPS)

    def residuals(
        self, pools: Sequence[MakePool], judged: Integers, stage: str, sides: Sequence[int]
    ) -> tuple[Logs, list[Training]]:
        """Train an imitator on each pool; log residuals of shape (pools, judged, steps).

        Args:
            pools: What each is trained on.
            judged: The trajectories that all of them are asked about.
            stage: What this is for; part of the names of files and random streams.
            sides: 1 for an imitator of positives, -1 of the rest, 0 of neither.
        """
        view, task = self.view, self.task
        # Everybody, in order, needs no copy of what may be a quarter of a gigabyte.
        some_only = len(judged) < view.count
        states = view.states[judged] if some_only else view.states
        actions = view.actions[judged] if some_only else view.actions
        rows = states.reshape(-1, states.shape[2]), actions.reshape(-1, actions.shape[2])

        def work(first: int) -> tuple[Logs, Training]:
            some = slice(first, first + TOGETHER)
            unit = first // TOGETHER
            name = f"round-{task.number:03d}-{stage}-{unit}"
            imitators, loss = self._unit(pools[some], name, sides[some])
            task.bench.tell(f"round {task.number}: {stage} {unit + 1}")
            found = imitators.residuals(*rows, stop=task.bench.stopped.is_set)
            return found, Training(name, tuple(loss), self.updates)

        parts = task.bench.map(work, range(0, len(pools), TOGETHER))
        found = np.concatenate([part for part, _ in parts])
        return found.reshape(len(pools), len(judged), view.steps), [t for _, t in parts]

    def _unit(
        self, pools: Sequence[MakePool], name: str, sides: Sequence[int]
    ) -> tuple[Imitators, list[float]]:
        """A few trained imitators, from the shelf where they are finished already."""
        bench = self.task.bench
        device = pick_device(bench.device)
        path = None if bench.shelf is None else bench.shelf / f"{name}.safetensors"
        if path is not None and path.exists():
            unit = load_unit(path, device)
            return unit.imitators, unit.loss
        imitators, loss = train_imitators(
            [make() for make in pools],
            self.updates,
            self.task.key.at(name).rng(),
            device=device,
            stop=bench.stopped.is_set,
        )
        if path is not None:
            about = {
                "kind": "imitators",
                "question": bench.question,
                "floor": FLOOR,
                "sides": list(sides),
                "averaged": self.averaged,
                "loss": loss,
            }
            save_tensors(path, {**imitators.tensors(), **self.view.scale.tensors()}, about)
        return imitators, loss


def free_of(groups: Sequence[Integers], count: int) -> Mask:
    """Where each imitator may judge: everywhere but on what it was trained on."""
    free = np.ones((len(groups), count), dtype=np.bool_)
    for row, group in zip(free, groups, strict=True):
        row[group] = False
    return free


def over_free(values: Floats, free: Mask) -> Floats:
    """Mean over the imitators that may judge; over all where none may."""
    total = np.where(free, values, 0.0).sum(axis=0)
    count = free.sum(axis=0)
    return np.asarray(np.where(count > 0, total / np.maximum(count, 1), values.mean(axis=0)))
