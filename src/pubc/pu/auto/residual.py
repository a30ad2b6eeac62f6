"""The judge of recipe `auto`: who predicts a trajectory's actions better?

The first round imitates the seeds. Every later round imitates both sides of a split, and a
trajectory's confidence is the log ratio of the two residuals. A network sees one side only, and
never judges a trajectory that it was trained on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pubc.nets import pick_device
from pubc.pu.auto.imitator_training import Workshop, free_of, over_free
from pubc.pu.auto.ratings import rate, rate_steps, units_of
from pubc.pu.auto.seed_imitators import seed_scores
from pubc.pu.auto.telling_steps import View
from pubc.pu.judge import Bench, Standing, Task, Training, Verdict
from pubc.select import locate
from pubc.trajectory import TrajectorySet

__all__ = ["Residual"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

FOLDS = 3
"""Imitators of each side; each leaves out a share of its trajectories, to judge them."""
MOST = 128
"""Trajectories from which the rows of one imitator come."""
JUMP = 0.1
"""A round that changed more than this share starts a new average."""


@dataclass(frozen=True, slots=True)
class Residual:
    """Judges trajectories by how well imitators of both sides predict their actions."""

    steps_per_trajectory: int = 192
    """Telling steps by which a trajectory is judged."""
    updates: int = 250
    """Gradient steps of an imitator."""
    average_rounds: int = 3
    """The confidence is the mean log ratio of so many last rounds."""
    trim: float = 0.25
    """The trajectories of each side in this share next to the cut train nobody."""
    side_ratio: int = 4
    """One side trains on at most so many times the trajectories of the other."""

    def __call__(self, task: Task) -> Verdict:
        """Rate every trajectory of the pile, and every seed, by imitating both sides."""
        return self._compare(task, self._view(task))

    def apply(self, shelf: Path, number: int, trajectories: TrajectorySet, bench: Bench) -> Floats:
        """Rate other trajectories with the imitators of a finished round."""
        units = units_of(shelf, number, pick_device(bench.device))
        return rate(units, trajectories, self.steps_per_trajectory, bench)[None]

    def steps(
        self, shelf: Path, number: int, trajectories: TrajectorySet, bench: Bench
    ) -> Iterator[NDArray[np.float32]]:
        """Stream the log ratio of each step."""
        units = units_of(shelf, number, pick_device(bench.device))
        return rate_steps(units, trajectories, bench)

    def rate_by_seeds(self, task: Task) -> Verdict:
        """Rate every trajectory by imitators of the seeds alone."""
        view = self._view(task)
        scores, training = seed_scores(self._workshop(task, view))
        first = scores[: view.mixed].copy()
        first[view.is_seed[: view.mixed]] = np.nan
        return Verdict(
            confidence=scores[None, : view.mixed],
            seed_confidence=scores[None, view.seeds],
            training=tuple(training),
            held_out=True,
            first=first,
            seed_first=scores[view.seeds],
        )

    def _view(self, task: Task) -> View:
        found = task.bench.memory.get("view")
        if isinstance(found, View):
            return found
        places = locate(task.mixed, task.seed_positives)
        steps = self.steps_per_trajectory
        view = View(task.mixed, task.seed_positives, places, steps, task.bench)
        task.bench.memory["view"] = view
        return view

    def _compare(self, task: Task, view: View) -> Verdict:
        """Imitate both sides of the split that the round before left."""
        assert task.standing is not None
        before = task.standing
        positive, rest = self._sides(task, view)
        if min(positive.sum(), rest.sum()) < 2:
            return before.verdict
        ratio, training = self._log_ratio(task, view, positive, rest)
        history, seeds = ratio[None, : view.mixed], ratio[None, view.seeds]
        kept = len(self._remembered(before))
        if kept:
            history = np.concatenate([before.verdict.history[-kept:], history])
            seeds = np.concatenate([before.verdict.seed_history[-kept:], seeds])
        return Verdict(
            confidence=history.mean(axis=0, keepdims=True),
            seed_confidence=seeds.mean(axis=0, keepdims=True),
            training=tuple(training),
            held_out=True,
            split=(positive[: view.mixed], rest[: view.mixed]),
            history=history,
            seed_history=seeds,
            first=before.verdict.first,
            seed_first=before.verdict.seed_first,
        )

    def _remembered(self, before: Standing) -> Floats:
        """Log ratios of earlier rounds that are averaged with the next one."""
        if before.start or before.changed > JUMP:
            return np.zeros((0, 0))
        return before.verdict.history[1 - self.average_rounds :]

    def _sides(self, task: Task, view: View) -> tuple[Mask, Mask]:
        """Positives and rest to imitate, without the unsure next to the cut."""
        assert task.standing is not None
        before = task.standing
        positive, rest = view.is_seed.copy(), np.zeros(view.count, dtype=np.bool_)
        if before.start:
            assert before.verdict.split is not None
            positive[: view.mixed] |= before.verdict.split[0]
            rest[: view.mixed] = before.verdict.split[1]
        else:
            scores, cut = before.verdict.confidence[0], before.cut.threshold
            assert cut is not None
            top, bottom = scores[before.selected].mean(), scores[~before.selected].mean()
            positive[: view.mixed] |= scores >= cut + self.trim * (top - cut)
            rest[: view.mixed] = scores < cut - self.trim * (cut - bottom)
        return positive, rest & ~view.is_seed

    def _log_ratio(
        self, task: Task, view: View, positive: Mask, rest: Mask
    ) -> tuple[Floats, list[Training]]:
        """Log residual under imitators of the rest minus that under imitators of positives."""
        assert task.standing is not None
        rng = task.key.at("folds").rng()
        ones, others = np.flatnonzero(positive), np.flatnonzero(rest)
        ours = self._folds(ones, len(others), rng)
        theirs = self._folds(others, len(ones), rng)
        workshop, k = self._workshop(task, view), FOLDS
        groups, sides = ours + theirs, [1] * k + [-1] * k
        pools = [workshop.pool(group) for group in groups]
        found, training = workshop.residuals(pools, np.arange(view.count), "sides", sides)
        mean, free = found.mean(axis=2, dtype=np.float64), free_of(groups, view.count)
        return over_free(mean[k:], free[k:]) - over_free(mean[:k], free[:k]), training

    def _folds(self, side: Integers, other: int, rng: np.random.Generator) -> list[Integers]:
        """What each imitator of a side is trained on: all but a share, to judge it."""
        most = min(MOST, self.side_ratio * max(2, other))
        order = rng.permutation(side)
        share = np.arange(len(order)) % FOLDS
        return [order[share != j][:most] for j in range(FOLDS)]

    def _workshop(self, task: Task, view: View) -> Workshop:
        before = task.standing
        return Workshop(
            task,
            view,
            updates=self.updates,
            averaged=1 if before is None else len(self._remembered(before)) + 1,
        )
