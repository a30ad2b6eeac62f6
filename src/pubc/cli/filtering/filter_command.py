"""`pubc filter`: keep the trajectories that look like the target expert's."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pubc.cli.console import progress, say, warn, warn_unsound
from pubc.cli.dataset_flag import Dataset
from pubc.cli.filtering.filter_output import next_commands, round_line, show_plan, show_result
from pubc.errors import UnsoundResult, UsageError
from pubc.runs.filter_config import DEFAULTS, FilterConfig

if TYPE_CHECKING:
    from pubc.pu.rounds import Round
    from pubc.runs.filter_run import Finished, Listener

__all__ = ["COMMAND", "Filter"]


@dataclass(frozen=True)
class Filter:
    """Keep the trajectories that look like the target expert's.

    Give a pile of trajectories and a few that are known to be the expert's: by highest
    return (--seed-top), by name (--seed-episodes), from another file (--seed-from), or by
    the policy that acted (--seed-source). RUN then holds the kept trajectories in the format
    of the input (or a store, where pubc does not write that format), keep.json, scores.csv with
    a confidence for every trajectory, and all evidence; docs/run-folder.md describes every file.

    A killed run goes on with `pubc filter --resume RUN`, to an identical result.
    """

    data: Annotated[Dataset | None, tyro.conf.Positional] = None
    """Dataset of mixed quality: a file or a folder in any format `pubc formats` lists."""
    out: Path | None = None
    """Folder to make for the results."""
    resume: Path | None = None
    """Go on with an interrupted run in this folder; everything else is read from there."""
    config: FilterConfig = DEFAULTS
    """How to filter."""
    require_valley: bool = False
    """Exit with code 6 where no threshold separates the expert."""
    require_sound: bool = False
    """Exit with code 6 unless the rounds converged on a sound selection."""
    dry_run: bool = False
    """Say what would be done, and with which seeds; train and write nothing."""
    force: bool = False
    """Replace RUN if it is the folder of an earlier run, which stays until the new one is whole."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Filter, write the folder, and say what was found."""
        if self.resume is not None:
            return self._go_on(self.resume)
        if self.data is None or (self.out is None and not self.dry_run):
            raise UsageError("Say what to filter and where to put the results: DATA --out RUN.")
        if self.dry_run:
            return self._plan(self.data)
        from pubc.runs.filter_run import carry_out

        assert self.out is not None
        with self._listener() as listener:
            finished = carry_out(
                self.config, self.data, self.out, force=self.force, listener=listener
            )
        return self._told(finished, self.out)

    def _go_on(self, folder: Path) -> dict[str, Any]:
        from pubc.runs.filter_run import resume
        from pubc.runs.folder.run_succession import run_to_go_on_with

        if self.data is not None or self.out is not None:
            raise UsageError("--resume RUN stands alone: data and settings are read from RUN.")
        found = run_to_go_on_with(folder)
        document = found.read()
        if found.finished:
            found.check_parts()
            if not self.json:
                say(f"{folder} is finished already: {document['status']}.")
            warn_unsound(folder, document)
            return document
        if found.final is not None and not self.json:
            say(f"{folder} holds a finished run; going on with the one that is to replace it.")
        with self._listener() as listener:
            finished = resume(folder, self.config, listener=listener)
        return self._told(finished, folder)

    def _plan(self, data: Path) -> dict[str, Any]:
        from pubc.runs.plan_run import plan

        planned = plan(self.config, data, warn)
        if not self.json:
            show_plan(planned.document, planned.ready)
        return {**planned.document, "status": "planned"}

    def _told(self, finished: Finished, folder: Path) -> dict[str, Any]:
        document = finished.document
        if not self.json:
            show_result(document, finished.result, folder)
            for line in next_commands(folder, finished):
                say(line)
        status = document["status"]
        if self.require_valley and status == "no_valley":
            raise UnsoundResult(f"No threshold separates the expert: {document['advice'][0]}")
        if self.require_sound and not document["sound"]:
            raise UnsoundResult(f"The selection is not sound (status {status}); see run.json.")
        return document

    @contextmanager
    def _listener(self) -> Iterator[Listener]:
        """Progress and a line per round for people; the report in any case."""
        from pubc.report import draw_report
        from pubc.runs.filter_run import Listener

        def line(current: Round) -> None:
            if not self.json:
                say(round_line(current))

        with progress("filter", None, quiet=self.json) as show:
            done = itertools.count(1)
            yield Listener(
                on_round=line,
                tell=lambda word: show(next(done), word),
                warn=warn,
                draw=draw_report,
            )


COMMAND = Filter
