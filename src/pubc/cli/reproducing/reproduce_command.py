"""`pubc reproduce`: a table of the paper, from nothing to numbers beside the paper's."""

from __future__ import annotations

import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from pubc.cli.console import facts, headline, progress, say
from pubc.cli.reproducing.given_files import hash_given, read_given
from pubc.cli.reproducing.reproduce_show import (
    show_places,
    state_of,
    time_left,
    warn_of_extras,
)
from pubc.errors import InterruptedRun, UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pubc.engine import Engine
    from pubc.experiments.cell import DatasetSpec
    from pubc.experiments.record_files import Planned, RecordFiles
    from pubc.experiments.run_table import Plan, Progress
    from pubc.experiments.stage_cache import Cache
    from pubc.experiments.trust.answers import SuitePlan

__all__ = ["COMMAND", "Reproduce"]

_STACK = 48
"""Members of a stack on a GPU: more are faster in all, but each of them is done later."""


@dataclass(frozen=True)
class Reproduce:
    """Compute a table of the paper from nothing, with the paper's numbers beside ours.

    TABLE is one of those that `pubc reproduce --list` names. Every number is a cell: a dataset,
    a filter, a learner and a random seed. Finished cells are records in OUT/records, and are not
    computed again; datasets and filters are shared between cells and tables through OUT/cache. A
    run that was stopped or killed goes on when the same command is given again.
    """

    table: Annotated[str | None, tyro.conf.Positional] = None
    """Which table; omit it with --list to see all of them."""
    scale: Literal["small", "paper"] = "small"
    """`small` takes hours on two cores; `paper` has the paper's sizes."""
    quick: bool = False
    """A first look in minutes: thirty small questions of the suite `trust`, tiny cells of
    `segments` and `steps`; instead of --scale and --random-seeds."""
    updates: int | None = None
    """Gradient steps of every learner, cloning too, instead of what the scale says."""
    random_seeds: int = 3
    """How many random seeds each cell is computed with, for a mean and a spread."""
    engine: Literal["serial", "processes", "ray"] = "serial"
    """One cell after the other, processes of this machine, or a Ray cluster."""
    workers: int = 0
    """Cells computed at the same time; 0 means one per core. Does not change results."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where networks train. `auto` takes a GPU where there is one. `cuda` without one goes on with
    what a machine with a GPU has left in --out: its policies are played here."""
    address: str | None = None
    """A Ray cluster to join; without it Ray is started on this machine."""
    out: Path = Path("reproduced")
    """Folder for records and cache; a shared one where several machines compute."""
    data: Annotated[tuple[str, ...], tyro.conf.UseAppendAction] = ()
    """A file of yours for rows that need one: NAME=PATH. --list says which names there are; give
    the flag once for each file."""
    only: str = ""
    """Only rows or columns that contain this text."""
    skip: str = ""
    """No rows or columns that contain this text."""
    columns: str = ""
    """Only columns with these names, commas between: "BC,IQL"."""
    stack: int | None = None
    """Most trainings that are one computation: those of one learner and one shape, whatever their
    random seeds and data. 0 trains every policy alone; if omitted, 48 on a GPU and 0 without."""
    train_only: bool = False
    """Stop when all policies are there: the same command without this plays them."""
    retry_failed: bool = False
    """Try cells again that failed before."""
    list: bool = False
    """Show the cells and which are finished; compute nothing."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Compute what is missing, write the records, and draw the table."""
        if self.table is None:
            return self._tables()
        from pubc.experiments.record_files import RecordFiles

        plan = self._plan()
        files = RecordFiles(self.out / "records", plan, self._command())
        if self.list:
            return self._show_cells(plan)
        began = time.monotonic()
        try:
            self._compute(plan, files, began)
        except KeyboardInterrupt:
            raise InterruptedRun(
                f"Stopped. Finished cells are kept in {self.out}; the same command goes on."
            ) from None
        finally:
            documents = files.write(time.monotonic() - began)
        if not self.json:
            self._show(plan, files)
        return {
            "table": self.table,
            "scale": plan.scale.name,
            "cells": len(plan.cells()),
            "failed": sum("failed" in document for document in documents),
            "records": str(files.lines),
            "head": str(files.head),
            "results": documents,
        }

    def _compute(self, plan: Planned, files: RecordFiles, began: float) -> None:
        from pubc.engine import open_engine

        with (
            open_engine(self.engine, workers=self.workers, address=self.address) as engine,
            progress(str(self.table), 100, quiet=self.json) as show,
        ):
            written = 0.0
            for now in self._work(plan, engine):
                share = now.done / now.total if now.total else 1.0
                words = f"%, {now.records:,} of {now.cells:,} cells{time_left(now.seconds_left)}"
                show(int(100 * share), f"{words} {now.word}".rstrip())
                if time.monotonic() - written > 5:
                    written = time.monotonic()
                    files.write(written - began)

    def _work(self, plan: Planned, engine: Engine) -> Iterator[Progress]:
        from pubc.experiments.run_table import Plan, reproduce

        if isinstance(plan, Plan):
            warn_of_extras(plan)
            return reproduce(
                plan,
                engine,
                retry_failed=self.retry_failed,
                stack=self._members(plan.cache.device),
                train_only=self.train_only,
            )
        from pubc.experiments.trust.answers import SuitePlan, answer_all

        assert isinstance(plan, SuitePlan)
        return answer_all(plan, engine, retry_failed=self.retry_failed)

    def _members(self, device: str) -> int:
        """Most members of a stack."""
        import torch

        if self.stack is not None:
            return self.stack
        return _STACK if device == "cuda" and torch.cuda.is_available() else 0

    def _plan(self) -> Planned:
        from pubc.experiments import SUITES

        if self.random_seeds < 1:
            raise UsageError(f"At least one random seed is needed. Got {self.random_seeds}.")
        if (self.stack or 0) < 0 or (self.updates is not None and self.updates < 1):
            raise UsageError("--stack is 0 or more, --updates at least 1.")
        if self.table in SUITES and (self.updates or self.columns or self.train_only):
            raise UsageError("--updates, --columns and --train-only are for tables.")
        plan = self._suite_plan() if self.table in SUITES else self._table_plan()
        if not plan.cells():
            raise UsageError(f"No row or column of {self.table} contains {self.only!r}.")
        return plan

    def _table_plan(self) -> Plan:
        from pubc.experiments import SUITES, TABLES, get_table
        from pubc.experiments.cell import SCALES
        from pubc.experiments.run_table import Plan

        assert self.table is not None
        table = get_table(self.table)
        scale, many = SCALES[self.scale], self.random_seeds
        if self.quick:
            if table.quick is None:
                quick = [*SUITES, *(name for name in TABLES if get_table(name).quick)]
                raise UsageError(f"--quick is for {', '.join(quick)}; {table.name} has --scale.")
            scale, many = table.quick, 1
        columns = tuple(name.strip() for name in self.columns.split(",") if name.strip())
        for name in columns:
            if name not in table.columns:
                raise UnknownNameError(f"column of {table.name}", name, table.columns)
        cache, data = self._opened(read_given(table.name, self.data, table.data))
        scale = replace(scale, fixed_updates=self.updates)
        return Plan(table, scale, many, cache, data, self.only, self.skip, columns)

    def _suite_plan(self) -> SuitePlan:
        from pubc.experiments.trust.answers import TABLE, SuitePlan

        files = {
            name: path.absolute()
            for name, path in read_given("trust", self.data, TABLE.data).items()
        }
        cache, data = self._opened(files)
        draws = 1 if self.quick else self.random_seeds
        return SuitePlan(cache, draws, self.quick, files, data, self.only, self.skip)

    def _opened(self, given: Mapping[str, Path]) -> tuple[Cache, dict[str, DatasetSpec]]:
        """The cache of --out, and the user's files by their content."""
        from pubc.experiments.cell import DatasetSpec
        from pubc.experiments.stage_cache import Cache
        from pubc.experiments.stage_versions import versions
        from pubc.nets import pick_device

        hashes = {name: hash_given(path) for name, path in given.items()}
        cache = Cache(
            self.out.absolute() / "cache",
            versions(),
            pick_device("auto").type if self.device == "auto" else self.device,
            {hashes[name]: str(path.absolute()) for name, path in given.items()},
            workers=0 if self.engine == "serial" else 1,
        )
        return cache, {n: DatasetSpec(name=n, sha256=sha256) for n, sha256 in hashes.items()}

    def _command(self) -> str:
        """The command that made the records, without the folders of this machine."""
        from pubc.experiments import SUITES

        size = "" if self.table in SUITES else f" --scale {self.scale}"
        words = [f"pubc reproduce {self.table}{' --quick' if self.quick else size}"]
        if not self.quick:
            words.append(f"--random-seeds {self.random_seeds}")
        if self.updates is not None:
            words.append(f"--updates {self.updates}")
        if self.engine != "serial":
            words.append(f"--engine {self.engine}")
        if self.device != "auto":
            words.append(f"--device {self.device}")
        words += [
            f"--data {w.partition('=')[0]}={Path(w.partition('=')[2]).name}" for w in self.data
        ]
        if self.only:
            words.append(f"--only {self.only!r}")
        if self.skip:
            words.append(f"--skip {self.skip!r}")
        if self.columns:
            words.append(f"--columns {self.columns!r}")
        return " ".join(words)

    def _tables(self) -> dict[str, Any]:
        from pubc.experiments import SUITES, TABLES, get_table
        from pubc.experiments.trust.families.file_families import GIVEN

        known = {**TABLES, **SUITES}
        if not self.list:
            raise UsageError(f"Say which table: {', '.join(known)}.")
        if not self.json:
            facts(list(known.items()))
            takes = {**{name: get_table(name).data for name in TABLES}, "trust": GIVEN}
            files = {entry: what for data in takes.values() for entry, what in data.items()}
            for entry, what in files.items():
                users = ", ".join(name for name, data in takes.items() if entry in data)
                say(f"\n--data {entry}=PATH for {users}:\n  {what}.")
        return {"tables": known}

    def _show_cells(self, plan: Planned) -> dict[str, Any]:
        cells = []
        for cell in plan.cells():
            values = plan.values(cell)
            failed = (values or {}).get("failed")
            place = {"row": cell.row, "column": cell.column, "random_seed": cell.random_seed}
            told = failed and failed["message"]
            cells.append({**place, "state": state_of(values, failed), "reason": told})
        if not self.json:
            show_places(cells)
        return {"table": self.table, "scale": plan.scale.name, "cells": cells}

    def _show(self, plan: Planned, files: RecordFiles) -> None:
        from pubc.report.tables import lines, read_table

        headline(plan.table.title)
        made = read_table(files.lines.parent, files.name).sheet
        for line in lines(made, width=shutil.get_terminal_size().columns):
            say(line)
        say(f"Scaled down: {plan.table.differences(plan.scale) or 'nothing'}")
        facts([("records", str(files.lines)), ("page", f"pubc report {files.lines.parent}")])


COMMAND = Reproduce
