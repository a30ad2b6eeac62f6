"""The judge of recipe `auto`: who predicts a trajectory's actions better?

The first round imitates the seeds and looks for a split of the pile to start from; where no
valley is clear, several splits compete by how well they explain seeds that were held out.
Every later round imitates both sides of the split, and a trajectory's confidence is the log
ratio of the two residuals. A network never judges a trajectory that it was trained on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pubc.nets import pick_device
from pubc.pu.imitators import Apprenticeship
from pubc.pu.judge import Bench, Standing, Task, Training, Verdict
from pubc.pu.ratings import rate, rate_steps, units_of
from pubc.pu.start import Split, in_order, propose
from pubc.pu.view import View
from pubc.pu.workshop import MakePool, Workshop, free_of, over_free
from pubc.select import locate
from pubc.trajectory import TrajectorySet

__all__ = ["Residual"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

BLOCKS = 3
"""Parts in time of a lone seed, each judged by the imitator of the others."""


@dataclass(frozen=True, slots=True)
class Residual:
    """Judges trajectories by how well imitators of both sides predict their actions."""

    steps_per_trajectory: int = 192
    """Telling steps by which a trajectory is judged."""
    train_steps: int = 12_288
    """Rows on which one imitator is trained."""
    max_train_trajectories: int = 128
    """Most trajectories from which these rows come."""
    updates: int = 250
    """Gradient steps of an imitator."""
    contest_updates: int = 150
    """The same, for splits that compete."""
    folds: int = 3
    """Imitators of each side; each leaves out a share of its trajectories, to judge them."""
    average_rounds: int = 3
    """The confidence is the mean log ratio of so many last rounds."""
    jump: float = 0.1
    """A round that changed more than this starts a new average."""
    trim: float = 0.25
    """The trajectories of each side in this share next to the cut train nobody."""
    side_ratio: int = 4
    """One side trains on at most so many times the trajectories of the other."""
    keep_seeds: float = 0.8
    """A split keeps at least this share of the held-out seeds."""
    depth: float = 0.5
    """A valley is at most this dense, compared with the humps on both sides."""
    relaxed: float = 0.4
    """Evidence from which a valley may be proposed as a start."""
    attempts: int = 4
    """Splits to start from before giving up."""
    imitation: Apprenticeship = field(default_factory=Apprenticeship)
    """How imitators are trained."""

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

    def open(self, task: Task) -> tuple[Verdict, list[Split]]:
        """Imitate the seeds, and find splits to start from, best first."""
        view = self._view(task)
        scores, training = self._seed_scores(task, view)
        splits = propose(
            scores, view.seeds, keep=self.keep_seeds, depth=self.depth, relaxed=self.relaxed
        )
        worth: Floats | None = None
        if len(splits) > 1:
            worth, more = self._contest(task, view, splits)
            training += more
        first = scores[: view.mixed].copy()
        first[view.is_seed[: view.mixed]] = np.nan
        verdict = Verdict(
            confidence=scores[None, : view.mixed],
            seed_confidence=scores[None, view.seeds],
            training=tuple(training),
            held_out=True,
            first=first,
            seed_first=scores[view.seeds],
        )
        return verdict, [split.of(view.mixed) for split in in_order(splits, worth, self.attempts)]

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
        if before.start or before.changed > self.jump:
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

    def _seed_scores(self, task: Task, view: View) -> tuple[Floats, list[Training]]:
        """How well imitators of the seeds predict each trajectory; a seed only by others."""
        seeds, everyone = view.seeds, np.arange(view.count)
        if len(seeds) == 1:
            return self._lone_seed(task, view, int(seeds[0]))
        folds = min(5, len(seeds))
        fold = np.empty(len(seeds), np.int64)
        order = task.key.at("folds").rng().permutation(len(seeds))
        fold[order] = np.arange(len(seeds)) % folds
        groups = [seeds[fold != j] for j in range(folds)]
        workshop = self._workshop(task, view)
        pools = [workshop.pool(group) for group in groups]
        found, training = workshop.residuals(pools, everyone, "seeds", [1] * folds)
        mean = found.mean(axis=2, dtype=np.float64)
        return -over_free(mean, free_of(groups, view.count)), training

    def _lone_seed(self, task: Task, view: View, seed: int) -> tuple[Floats, list[Training]]:
        """One seed: three parts in time, each judged by the imitators of the other two."""
        steps = view.pick(seed, self.train_steps)
        length = int(view.lengths[seed])

        def block(of: Integers) -> Integers:
            return np.minimum(of * BLOCKS // length, BLOCKS - 1)

        workshop = self._workshop(task, view)
        parts = [steps[block(steps) != j] for j in range(BLOCKS)]
        parts = [part if len(part) else steps for part in parts]
        pools = [lambda part=part: view.take(seed, part) for part in parts]
        everyone, sides = np.arange(view.count), [1] * BLOCKS
        found, training = workshop.residuals(pools, everyone, "seeds", sides)
        scores = -found.mean(axis=(0, 2), dtype=np.float64)
        own = block(view.chosen[seed])
        scores[seed] = -found[own, seed, np.arange(view.steps)].mean(dtype=np.float64)
        return scores, training

    def _contest(
        self, task: Task, view: View, splits: Sequence[Split]
    ) -> tuple[Floats, list[Training]]:
        """Mean log ratio of held-out seeds under every split: largest for the right one."""
        seeds, rng = view.seeds, task.key.at("contest").rng()
        workshop = self._workshop(task, view, self.contest_updates)
        halves = [seeds] if len(seeds) == 1 else [seeds[::2], seeds[1::2]]
        pools: list[MakePool] = []
        owner: list[tuple[int, int, Mask]] = []
        for number, split in enumerate(splits):
            positive, rest = np.flatnonzero(split.positive), np.flatnonzero(split.rest)
            # The same size for both sides: else the poorer side loses for its size alone.
            size = min(64, max(4, min(len(positive), len(rest))))
            for half in halves:
                group = rng.permutation(np.setdiff1d(positive, half))[:size]
                pools.append(workshop.pool(group if len(group) else positive))
                owner.append((number, -1, np.isin(seeds, half)))
            pools.append(workshop.pool(rng.permutation(rest)[:size]))
            owner.append((number, 1, np.ones(len(seeds), dtype=np.bool_)))
        found, training = workshop.residuals(pools, seeds, "contest", [0] * len(pools))
        mean = found.mean(axis=2, dtype=np.float64)
        worth = np.zeros((len(splits), len(seeds)))
        for row, (number, sign, judged) in zip(mean, owner, strict=True):
            worth[number] += np.where(judged, sign * row, 0.0)
        return worth.mean(axis=1), training

    def _log_ratio(
        self, task: Task, view: View, positive: Mask, rest: Mask
    ) -> tuple[Floats, list[Training]]:
        """Log residual under imitators of the rest minus that under imitators of positives."""
        rng = task.key.at("folds").rng()
        groups, sides = [], []
        ones, others = np.flatnonzero(positive), np.flatnonzero(rest)
        for mark, side, other in ((1, ones, others), (-1, others, ones)):
            order = rng.permutation(side)
            most = min(self.max_train_trajectories, self.side_ratio * max(2, len(other)))
            for j in range(self.folds):
                groups.append(order[np.arange(len(order)) % self.folds != j][:most])
                sides.append(mark)
        workshop = self._workshop(task, view)
        pools = [workshop.pool(group) for group in groups]
        found, training = workshop.residuals(pools, np.arange(view.count), "sides", sides)
        mean, free = found.mean(axis=2, dtype=np.float64), free_of(groups, view.count)
        k = self.folds
        return over_free(mean[k:], free[k:]) - over_free(mean[:k], free[:k]), training

    def _workshop(self, task: Task, view: View, updates: int | None = None) -> Workshop:
        before = task.standing
        return Workshop(
            task,
            view,
            self.imitation,
            train_steps=self.train_steps,
            updates=self.updates if updates is None else updates,
            averaged=1 if before is None else len(self._remembered(before)) + 1,
        )
