"""The suite as a plan: which questions are asked, which have an answer, and the run for the rest.

An answer is a record under the hash of its question and of the code that made and judged it, so
a run that was killed goes on, and nothing is asked twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache as remember
from functools import partial
from pathlib import Path
from typing import Any

from pubc.engine import Engine, Failure
from pubc.experiments.cell import Cell, DatasetSpec, Scale, Table
from pubc.experiments.run_table import Progress
from pubc.experiments.stage_cache import Cache
from pubc.experiments.trust.families.file_families import GIVEN, FileMixture
from pubc.experiments.trust.families.robot_recordings import RobotMixture, record_robot
from pubc.experiments.trust.judging import judge
from pubc.experiments.trust.question import QuestionSpec
from pubc.experiments.trust.suite import questions
from pubc.results import Record, key_of
from pubc.storage import hash_file
from pubc.threads import cores

__all__ = ["MEASURES", "TABLE", "Asking", "SuitePlan", "answer_all"]

QUESTIONS = 2
"""How often the questions have come to be others, or judged otherwise; raised by hand."""

MEASURES = {
    "accuracy": "accuracy",
    "precision": "precision",
    "recall": "recall",
    "sound": "sound",
    "coverage": "covered",
    "falsely confident": "falsely_confident",
    "unsure": "unsure",
}
"""Columns of the table, and the value of a record that each one shows the mean of."""


def _no_cells(scale: Scale, count: int, data: Mapping[str, DatasetSpec]) -> Sequence[Cell]:
    return ()


TABLE = Table(
    name="trust",
    title="Right, or says that it cannot tell",
    caption=(
        "Questions whose answer is known by construction, family by family: share of trajectories "
        "rightly kept or dropped, share of the kept that are the expert's and of the expert's "
        "that are kept, share of answers that claim to be sound, the same among questions that "
        "have an answer (coverage), sound answers with fewer than 95 % of the labels right "
        "(falsely confident; in a pile of one policy, with anything dropped), and share of "
        "trajectories left undecided."
    ),
    scaled_down={
        "quick": "Thirty small questions of the built-in tasks, each asked once.",
        "full": "Nothing.",
    },
    rows=(),
    columns=tuple(MEASURES),
    cells=_no_cells,
    direction="neither",
    data=GIVEN,
    extra={"measures": MEASURES, "figure": {"kind": "reliability"}},
)
"""How the answers are shown; questions are no cells, so a plan of its own lists them."""


@dataclass(frozen=True, slots=True)
class Asking:
    """A question in its place in the table."""

    spec: QuestionSpec
    """What is asked."""

    @property
    def row(self) -> str:
        """Its family."""
        return self.spec.family

    @property
    def column(self) -> str:
        """Its name."""
        return self.spec.name

    @property
    def random_seed(self) -> int:
        """Of the filter: always the same, because draws are questions of their own."""
        return 0


@dataclass(frozen=True, slots=True)
class SuitePlan:
    """The suite, and what is known of it already."""

    cache: Cache
    """Where everything lies."""
    random_seeds: int = 3
    """Draws of each question."""
    quick: bool = False
    """Only the quick ones."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """The user's files by name."""
    data: Mapping[str, DatasetSpec] = field(default_factory=dict)
    """The same by their content."""
    only: str = ""
    """Only families or names that contain this."""
    skip: str = ""
    """No families or names that contain this."""

    @property
    def scale(self) -> Scale:
        """Quick or full."""
        return Scale("quick" if self.quick else "full")

    @property
    def table(self) -> Table:
        """How the answers are shown, a row for each family."""
        return replace(TABLE, rows=tuple(dict.fromkeys(cell.row for cell in self.cells())))

    def cells(self) -> list[Asking]:
        """Every question in order."""
        found = questions(
            quick=self.quick,
            data=self.files,
            draws=self.random_seeds,
            only=self.only,
            cache=self.cache.root,
        )
        return [Asking(spec) for spec in found if not (self.skip and _told(self.skip, spec))]

    def identity(self, cell: Asking) -> dict[str, Any]:
        """Everything that fixes an answer; its hash is the key of its record."""
        build = cell.spec.build
        return {
            "family": cell.spec.family,
            "name": cell.spec.name,
            "data": hash_once(build.path) if isinstance(build, FileMixture) else None,
            "random_seed": cell.random_seed,
            "code": key_of(_code(self.cache, isinstance(build, RobotMixture))),
            "device": self.cache.device,
        }

    def values(self, cell: Asking) -> dict[str, Any] | None:
        """The values of an answer, failed ones too; None where there is none yet."""
        return self.cache.record(key_of(self.identity(cell)))

    def record(self, cell: Asking) -> Record | None:
        """The record of an answer."""
        values = self.values(cell)
        if values is None:
            return None
        place = {"table": "trust", "scale": self.scale.name, "row": cell.row, "column": cell.column}
        return Record(self.identity(cell), {**place, "measure": "accuracy", **values})


def answer_all(
    plan: SuitePlan, engine: Engine, *, retry_failed: bool = False
) -> Iterator[Progress]:
    """Ask what has no answer yet, and yield after every one.

    Args:
        plan: The suite.
        engine: Where the work is done.
        retry_failed: Ask again where asking failed before.
    """
    cells = plan.cells()
    known = [plan.values(cell) for cell in cells]
    missing = [
        cell
        for cell, values in zip(cells, known, strict=True)
        if values is None or (retry_failed and "failed" in values)
    ]
    robots = sorted({c.spec.build.robot for c in missing if isinstance(c.spec.build, RobotMixture)})
    began, total = time.monotonic(), len(robots) + len(missing)
    before = len(cells) - len(missing)
    yield Progress(0, total, "", None, before, len(cells))
    for done, (word, answered) in enumerate(_work(plan, engine, robots, missing), start=1):
        left = (time.monotonic() - began) / done * (total - done)
        yield Progress(done, total, word, left, before + answered, len(cells))


def _work(
    plan: SuitePlan, engine: Engine, robots: Sequence[str], missing: Sequence[Asking]
) -> Iterator[tuple[str, int]]:
    """What was just finished, and how many answers there are; robots are recorded first."""
    for outcome in engine.map(partial(_record, plan.cache), robots):
        yield f"recordings of {robots[outcome.index]}", 0
    ask: Callable[[Asking], dict[str, Any]] = partial(_answer, plan.cache)
    for number, outcome in enumerate(engine.map(ask, missing), start=1):
        cell = missing[outcome.index]
        values = outcome.value if outcome.error is None else _failed(outcome.error)
        plan.cache.keep(key_of(plan.identity(cell)), values)
        yield f"{cell.row}, {cell.column}", number


def _record(cache: Cache, robot: str) -> int:
    """Play a robot's policies if that is missing; a piece of work of the engine."""
    return len(record_robot(cache.root, robot, processes=cache.workers or cores()))


def _answer(cache: Cache, cell: Asking) -> dict[str, Any]:
    """Make a question and judge the answer; a piece of work of the engine."""
    return judge(cell.spec.make(), device=cache.device, workers=cache.workers)


def _failed(failure: Failure) -> dict[str, Any]:
    return {"failed": {"kind": failure.kind, "message": failure.message}, "seconds": None}


def _code(cache: Cache, robot: bool) -> dict[str, str]:
    """Versions of what makes a question, and of the filter that answers it."""
    made = {"question": str(QUESTIONS), "filter": cache.code.filter}
    return {**made, "dataset": cache.code.dataset} if robot else made


@remember
def hash_once(path: Path) -> str:
    """Hash of a file's content; files do not change while a suite runs."""
    return hash_file(path)


def _told(word: str, spec: QuestionSpec) -> bool:
    return word.lower() in f"{spec.family}, {spec.name}".lower()
