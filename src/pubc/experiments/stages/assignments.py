"""What the learner of a cell is given, and the key that its policy has in the cache.

A policy is known by the content of what it learned from, so mixtures whose filters found the
same trajectories share it.
"""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc import formats
from pubc.errors import DataError
from pubc.experiments.cell import Cell, LearnerSpec
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stages.datasets import data_path, open_seed_pool, within
from pubc.experiments.stages.filters import draw_seeds, job_of, read_mask
from pubc.experiments.stages.steps_to_learn import Lesson, lesson_of
from pubc.policies import WEIGHTED
from pubc.results import key_of
from pubc.trajectory import TrajectorySet

__all__ = ["Assignment", "assignment_of", "policy_key", "selection_of"]

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """What a learner learns from."""

    cell: Cell
    """Who asks."""
    spec: LearnerSpec
    """The learner."""
    lesson: Lesson
    """The selected trajectories."""
    positives: TrajectorySet | None
    """Seed positives of a learner that takes them."""


def selection_of(cell: Cell, cache: Cache) -> Mask | None:
    """What a learner may see of the file, shape (trajectories of the file,); None for all."""
    job = job_of(cell)
    mask = None if job is None else read_mask(cache, job)
    if cell.dataset.sources is None:
        return mask
    chosen = within(formats.read(data_path(cache, cell.dataset)), cell.dataset)
    if mask is not None:
        chosen[chosen] = mask
    return chosen


def assignment_of(cell: Cell, path: Path, selection: Mask | None, cache: Cache) -> Assignment:
    """Everything that the learner of a cell is given.

    Args:
        cell: What is asked for.
        path: Where its dataset lies.
        selection: Which trajectories to learn from; all of them without one.
        cache: Where the expert's own recordings lie.

    Raises:
        DataError: The filter kept nothing.
    """
    spec, mixed = cell.learner, formats.read(path)
    assert spec is not None
    lesson = lesson_of(cell, mixed, selection, cache)
    if not len(lesson.trajectories):
        raise DataError(
            "The filter kept no trajectories, so there is nothing to learn from.", code="empty"
        )
    return Assignment(cell, spec, lesson, _seeds(cell, spec, mixed, cache))


def policy_key(given: Assignment, cache: Cache) -> str:
    """Hash of a policy: of its learner, its random seed, and the content of what it saw."""
    from pubc.policies.training_rows import facts_of

    parts = (given.lesson.trajectories, given.positives)
    learned_from = [facts_of(part).fingerprint for part in parts if part is not None]
    return key_of({**_learning(given.spec), **_weighed(given.lesson), "data": learned_from,
                   "random_seed": given.cell.random_seed, "code": cache.code.learner,
                   "device": cache.device})  # fmt: skip


def _seeds(
    cell: Cell, spec: LearnerSpec, mixed: TrajectorySet, cache: Cache
) -> TrajectorySet | None:
    """The seed positives of a learner that takes them."""
    if spec.algo not in WEIGHTED or cell.filter is None or cell.filter.seeds is None:
        return None
    pool = open_seed_pool(cache, cell.dataset)
    return draw_seeds(mixed, cell.filter.seeds, cell.random_seed, pool)


def _learning(spec: LearnerSpec) -> dict[str, Any]:
    """What of a learner decides its policy and its curve."""
    known: dict[str, Any] = {
        k: v for k, v in asdict(spec).items() if k != "evaluation_trajectories"
    }
    return {**known, "options": dict(spec.options)}


def _weighed(lesson: Lesson) -> dict[str, Any]:
    """What weights add to the hash of a policy: nothing where there are none."""
    if lesson.weights is None:
        return {}
    return {"weights": hashlib.sha256(lesson.weights.tobytes()).hexdigest()}
