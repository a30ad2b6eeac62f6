"""From a table to its records: datasets, then filters, then learners, on any engine.

Each stage is a map of a pure function over what is missing; what a function makes lies in the
cache under its hash. The driver alone writes records. It can be killed and started again at any
time: what was finished is found, and the table comes out the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pubc.engine import Engine, Failure
from pubc.errors import MissingExtraError
from pubc.experiments.cell import Cell, DatasetSpec, Scale, Table
from pubc.experiments.cell_values import failed, learned, measured, trained
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stages.datasets import dataset_key, make_dataset
from pubc.experiments.stages.filters import FilterJob, filter_key, job_of, make_filter
from pubc.results import Record, key_of

__all__ = ["Plan", "Progress", "reproduce"]


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a table is."""

    done: int
    """Pieces of work that are finished: datasets, filters, learners."""
    total: int
    """Pieces of work in all, without those that earlier runs had finished."""
    word: str
    """What was just finished."""
    seconds_left: float | None
    """A guess, from the pace so far."""
    records: int
    """Cells that have a record."""
    cells: int
    """Cells in all."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A table at a scale: its cells, and what is known of them already."""

    table: Table
    """What is computed."""
    scale: Scale
    """How large."""
    random_seeds: int
    """How often, with other seeds."""
    cache: Cache
    """Where everything lies."""
    data: Mapping[str, DatasetSpec] = field(default_factory=dict)
    """The user's files by name."""
    only: str = ""
    """Only rows or columns that contain this."""
    skip: str = ""
    """No rows or columns that contain this."""
    columns: tuple[str, ...] = ()
    """Only columns with these names; all if empty."""

    def cells(self) -> list[Cell]:
        """The cells in the order of the table."""
        return [
            cell
            for cell in self.table.cells(self.scale, self.random_seeds, self.data)
            if _told(self.only, cell)
            and not (self.skip and _told(self.skip, cell))
            and (not self.columns or cell.column in self.columns)
        ]

    def identity(self, cell: Cell) -> dict[str, Any]:
        """Everything that fixes the values of a cell; its hash is the key of its record."""
        code = self.cache.code
        parts = {"dataset": code.dataset}
        if cell.filter is not None:
            parts["filter"] = code.filter
        if cell.learner is not None:
            parts["learner"] = code.learner
        return {**cell.identity(), "code": key_of(parts), "device": self.cache.device}

    def values(self, cell: Cell) -> dict[str, Any] | None:
        """The values of a finished cell, failed ones too; None where it is not finished."""
        if not cell.dataset.given:
            return self._wanted(cell)
        return self.cache.record(key_of(self.identity(cell)))

    def record(self, cell: Cell) -> Record | None:
        """The record of a finished cell."""
        values = self.values(cell)
        if values is None:
            return None
        kept = {k: v for k, v in values.items() if k not in _LARGE or k in cell.details}
        place = {
            "table": self.table.name,
            "scale": self.scale.name,
            "row": cell.row,
            "column": cell.column,
            "paper": cell.paper,
            "measure": cell.measure,
        }
        return Record(self.identity(cell), {**place, **kept})

    def _wanted(self, cell: Cell) -> dict[str, Any]:
        name = cell.dataset.name or ""
        what = self.table.data.get(name, "a dataset")
        return failed(Failure("data_not_given", f"Give --data {name}=PATH: {what}."), 0.0)


_LARGE = ("trace",)


def reproduce(
    plan: Plan,
    engine: Engine,
    *,
    retry_failed: bool = False,
    stack: int = 0,
    train_only: bool = False,
) -> Iterator[Progress]:
    """Compute what is missing of a table, and yield after every piece of work.

    Args:
        plan: The table.
        engine: Where the work is done.
        retry_failed: Try cells again that failed before.
        stack: Most trainings that are one computation; 0 trains every policy alone.
        train_only: Stop when all policies are there, and play none of them.
    """
    return _Run(plan, engine, retry_failed, stack, train_only).steps()


class _Run:
    """One run over a plan."""

    def __init__(
        self, plan: Plan, engine: Engine, retry_failed: bool, stack: int, train_only: bool
    ) -> None:
        self.plan, self.engine, self.cache = plan, engine, plan.cache
        self.stack, self.train_only = stack, train_only
        self.cells = plan.cells()
        self.missing = [cell for cell in self.cells if self._is_missing(cell, retry_failed)]
        self.broken: dict[str, Failure] = {}
        self.began = time.monotonic()
        self.done = 0

    def _is_missing(self, cell: Cell, retry_failed: bool) -> bool:
        values = self.plan.values(cell)
        if values is None:
            return True
        if "failed" not in values or not cell.dataset.given:
            return False
        # What was not installed may be by now.
        return retry_failed or values["failed"]["kind"] == MissingExtraError.__name__

    def steps(self) -> Iterator[Progress]:
        by_seed = sorted(self.missing, key=lambda cell: cell.random_seed)
        datasets = _unique(
            ((dataset_key(c.dataset, self.cache), c.dataset) for c in self.missing),
            lambda key: self.cache.has("datasets", key),
        )
        # All cells of one random seed before those of the next: a stopped run leaves a table.
        jobs = _unique(
            ((filter_key(job, self.cache), job) for job in map(job_of, by_seed) if job),
            lambda key: self.cache.has("filters", key),
        )
        learning = [cell for cell in by_seed if cell.learner is not None]
        self.total = len(datasets) + len(jobs) + len(learning)
        yield self._progress("")
        for spec in self._map(make_dataset, datasets, share=True):
            yield self._progress(f"dataset {spec.recipe or spec.name}")
        self._settle()
        for job in self._map(make_filter, self._sound(jobs)):
            self._settle()
            data = job.dataset.recipe or job.dataset.name
            yield self._progress(f"filter of {data}, random seed {job.random_seed}")
        sound = [cell for cell in learning if self._trouble(cell) is None]
        if self.stack:
            yield from self._train_in_stacks(sound)
        yield from self._train_alone(sound) if self.train_only else self._learn(sound)
        self._settle()
        yield self._progress("")

    def _map(
        self, work: Callable[[Cache, Any], str], todo: Mapping[str, Any], *, share: bool = False
    ) -> Iterator[Any]:
        """Work through what is to be made; with `share`, workers too many help the others."""
        keys, items = list(todo), list(todo.values())
        cache = self.cache
        if share and cache.workers:
            each = max(1, self.engine.workers // max(1, len(items)))
            cache = replace(cache, workers=each)
        for outcome in self.engine.map(partial(work, cache), items):
            self.done += 1
            if outcome.error is not None:
                self.broken[keys[outcome.index]] = outcome.error
            yield items[outcome.index]

    def _sound(self, jobs: Mapping[str, FilterJob]) -> dict[str, FilterJob]:
        """The filters whose dataset could be made."""
        sound = {
            key: job
            for key, job in jobs.items()
            if dataset_key(job.dataset, self.cache) not in self.broken
        }
        self.done += len(jobs) - len(sound)
        return sound

    def _train_in_stacks(self, cells: Sequence[Cell]) -> Iterator[Progress]:
        """Train what can be stacked; what fails here is trained alone, and fails in words."""
        from pubc.experiments.stages.stacks import form_stacks, plan_member, train_stack

        found = [
            (cells[outcome.index], outcome.value)
            for outcome in self.engine.map(partial(plan_member, self.cache), list(cells))
            if outcome.error is None and outcome.value is not None
        ]
        jobs = form_stacks(found, self.stack, self.cache)
        self.total += len(jobs)
        for outcome in self.engine.map(partial(train_stack, self.cache), jobs):
            self.done += 1
            job = jobs[outcome.index]
            why = "" if outcome.error is None else f" failed: {outcome.error.message}"
            yield self._progress(f"stack of {len(job.cells)}, {job.cells[0].column}{why}")

    def _train_alone(self, cells: Sequence[Cell]) -> Iterator[Progress]:
        """Train what is in no stack, and play nothing."""
        for outcome in self.engine.map(partial(trained, self.cache), list(cells)):
            self.done += 1
            cell = cells[outcome.index]
            yield self._progress(f"{cell.row}, {cell.column}")

    def _learn(self, cells: Sequence[Cell]) -> Iterator[Progress]:
        for outcome in self.engine.map(partial(learned, self.cache), list(cells)):
            self.done += 1
            cell = cells[outcome.index]
            values = outcome.value if outcome.error is None else failed(outcome.error, None)
            self._keep(cell, values)
            yield self._progress(f"{cell.row}, {cell.column}")

    def _settle(self) -> None:
        """Write the records of cells about which everything is known."""
        for cell in list(self.missing):
            trouble = self._trouble(cell)
            if trouble is not None:
                self._keep(cell, failed(trouble, None))
            elif cell.learner is None and self._ready(cell):
                self._keep(cell, measured(self.cache, cell))

    def _ready(self, cell: Cell) -> bool:
        job = job_of(cell)
        if job is not None:
            return self.cache.has("filters", filter_key(job, self.cache))
        return self.cache.has("datasets", dataset_key(cell.dataset, self.cache))

    def _trouble(self, cell: Cell) -> Failure | None:
        job = job_of(cell)
        found = self.broken.get(dataset_key(cell.dataset, self.cache))
        return found or (self.broken.get(filter_key(job, self.cache)) if job else None)

    def _keep(self, cell: Cell, values: Mapping[str, Any]) -> None:
        self.cache.keep(key_of(self.plan.identity(cell)), values)
        self.missing.remove(cell)

    def _progress(self, word: str) -> Progress:
        spent = time.monotonic() - self.began
        left = spent / self.done * (self.total - self.done) if self.done else None
        records = len(self.cells) - len(self.missing)
        return Progress(self.done, self.total, word, left, records, len(self.cells))


def _told(word: str, cell: Cell) -> bool:
    return word.lower() in cell.row.lower() or word.lower() in cell.column.lower()


def _unique(pairs: Iterator[tuple[str, Any]], made: Callable[[str], bool]) -> dict[str, Any]:
    found = dict(pairs)
    return {key: item for key, item in found.items() if not made(key)}
