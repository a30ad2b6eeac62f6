"""What a learner sees where steps were judged, and what stands beside it as a measure.

A cell names its part: the segments that were found, all steps weighed by how sure they are, or the
steps that really are the expert's, each with the seeds, as `pubc train RUN` learns from them; or as
many clean steps of the expert as segments and seeds hold.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.collect.lapses import EXPERT_STEPS
from pubc.errors import DataError
from pubc.experiments.cell import Cell, StepFilterSpec
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stages.datasets import open_seed_pool
from pubc.experiments.stages.filters import FilterJob, draw_seeds, filter_key, read_filter
from pubc.experiments.stages.judged_steps import (
    MEASURES,
    expert_steps,
    read_confidence,
    segments_in,
)
from pubc.streams import stream
from pubc.trajectory import TrajectorySet, concatenate

__all__ = ["CLEAN", "EXPERT", "SEGMENTS", "WEIGHTS", "Lesson", "judged_of", "lesson_of"]

SEGMENTS, WEIGHTS = "segments and seeds", "weights and seeds"
EXPERT, CLEAN = "expert steps and seeds", "clean steps for segments and seeds"


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What a learner learns from."""

    trajectories: TrajectorySet
    """Whole ones, or segments of them."""
    weights: NDArray[np.float32] | None = None
    """How much each step counts; all the same if omitted."""

    @property
    def expert_share(self) -> float | None:
        """Share of what is learned that is the expert's own; None where nobody knows."""
        own = expert_steps(self.trajectories)
        if own is None or not len(own):
            return None
        return float(np.average(own, weights=self.weights))


def lesson_of(
    cell: Cell, mixed: TrajectorySet, selection: NDArray[np.bool_] | None, cache: Cache
) -> Lesson:
    """What the learner of a cell sees.

    Args:
        cell: What is asked for.
        mixed: The dataset.
        selection: The trajectories that a filter selected; all of them without one.
        cache: Where judged steps and the expert's own recordings lie.

    Raises:
        DataError: The data does not say which steps are the expert's, and a cell asks for them.
    """
    spec = cell.filter
    if not isinstance(spec, StepFilterSpec):
        return Lesson(mixed if selection is None else mixed[selection])
    assert spec.seeds is not None
    pool = open_seed_pool(cache, cell.dataset)
    seeds = draw_seeds(mixed, spec.seeds, cell.random_seed, pool)
    if seeds.columns is mixed.columns:  # what is judged holds them
        seeds = seeds[:0]
    if cell.part == EXPERT:
        return Lesson(_joined(_true_segments(mixed, spec), seeds))
    key = filter_key(FilterJob(cell.dataset, spec, cell.random_seed), cache)
    confidence = read_confidence(cache.path("filters", key))
    if cell.part == WEIGHTS:
        from pubc.runs.segments.weights import weigh_steps

        sure = np.ones(seeds.steps, dtype=np.float32)
        return Lesson(_joined(mixed, seeds), np.concatenate([weigh_steps(confidence), sure]))
    found = segments_in(mixed, confidence, shortest=spec.shortest, margin=spec.margin)
    if cell.part == CLEAN:
        return Lesson(_clean(cell, found.steps + seeds.steps, cache))
    return Lesson(_joined(found, seeds))


def judged_of(cell: Cell, cache: Cache) -> dict[str, Any]:
    """How right the judged steps are that a learner saw; nothing where it saw none."""
    if not isinstance(cell.filter, StepFilterSpec) or cell.part not in (SEGMENTS, WEIGHTS):
        return {}
    told = read_filter(cache, FilterJob(cell.dataset, cell.filter, cell.random_seed))
    return {**{name: told.get(name) for name in MEASURES}, "filter_seconds": told["seconds"]}


def _joined(found: TrajectorySet, seeds: TrajectorySet) -> TrajectorySet:
    """What was found, then the seeds, which are the expert's own from end to end."""
    if not len(seeds):
        return found
    columns = dict(seeds.columns.extras)
    if EXPERT_STEPS not in columns:
        columns[EXPERT_STEPS] = np.ones(len(seeds.columns.observations), dtype=np.bool_)
    clean = replace(seeds, columns=replace(seeds.columns, extras=columns))
    return concatenate([found, clean])


def _true_segments(mixed: TrajectorySet, spec: StepFilterSpec) -> TrajectorySet:
    own = expert_steps(mixed)
    if own is None:
        raise DataError(
            "The data does not say which steps are the expert's; expected a column expert_steps.",
            code="no_expert_steps",
            field="expert_steps",
        )
    return segments_in(mixed, own.astype(np.float32), shortest=spec.shortest, margin=0)


def _clean(cell: Cell, steps: int, cache: Cache) -> TrajectorySet:
    """So many steps of the expert that was recorded beside the data; the last one is cut."""
    pool = open_seed_pool(cache, cell.dataset)
    if pool is None or pool.steps < steps:
        there = 0 if pool is None else pool.steps
        raise DataError(
            f"Expected {steps:,} steps of the expert beside the dataset, found {there:,}; collect "
            "more of them.",
            code="too_few_clean_steps",
        )
    order = stream(cell.random_seed, "experiments", "clean steps").permutation(len(pool))
    count = int(np.searchsorted(np.cumsum(pool.lengths[order]), steps)) + 1
    chosen = pool[order[: count if steps else 0]]
    lengths = chosen.lengths.copy()
    if len(lengths):
        lengths[-1] -= chosen.steps - steps
    return TrajectorySet(chosen.columns, chosen.starts, lengths, chosen.ids)
