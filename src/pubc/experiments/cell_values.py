"""From a cell to its values: pieces of work that any engine can do."""

from __future__ import annotations

import time
from typing import Any

from pubc.engine import Failure
from pubc.experiments.cell import Cell
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stages.datasets import data_path, read_summary
from pubc.experiments.stages.filters import job_of, read_filter

__all__ = ["failed", "learned", "measured", "trained"]


def failed(failure: Failure, seconds: float | None) -> dict[str, Any]:
    """The values of a cell that has none."""
    return {"failed": {"kind": failure.kind, "message": failure.message}, "seconds": seconds}


def measured(cache: Cache, cell: Cell) -> dict[str, Any]:
    """The values of a cell without a learner: of its selection, or of a source of its data."""
    job = job_of(cell)
    if job is not None:
        values = read_filter(cache, job)
    else:
        summary = read_summary(cache, cell.dataset)
        values = {**summary["sources"].get(cell.part, summary), "seconds": None}
    if values.get(cell.measure) is None:
        why = f"The data does not say {_UNKNOWN.get(cell.measure, cell.measure)}."
        return failed(Failure("not_in_data", why), values["seconds"])
    return values


_UNKNOWN = {
    "accuracy": "which policy acted in each trajectory, so nobody knows what is right",
    "mean_return": "what was earned",
}


def learned(cache: Cache, cell: Cell) -> dict[str, Any]:
    """Train and evaluate; a piece of work of the engine."""
    from pubc.experiments.stages.assignments import selection_of
    from pubc.experiments.stages.learn import learn

    began = time.perf_counter()
    found = learn(cell, data_path(cache, cell.dataset), selection_of(cell, cache), cache)
    return {**found, "seconds": round(time.perf_counter() - began, 2)}


def trained(cache: Cache, cell: Cell) -> str | None:
    """Train if that is missing; a piece of work of the engine."""
    from pubc.experiments.stages.assignments import assignment_of, selection_of
    from pubc.experiments.stages.learn import DATA, train

    if cell.learner is None or cell.learner.algo == DATA:
        return None
    path = data_path(cache, cell.dataset)
    return train(assignment_of(cell, path, selection_of(cell, cache), cache), cache).name
