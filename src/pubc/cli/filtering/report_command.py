"""`pubc report`: the page about runs and policies, the paper's tables, and figures for papers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from pubc.cli.console import facts, say, warn_unsound, warn_unsound_policy
from pubc.errors import UsageError
from pubc.storage import check_apart

if TYPE_CHECKING:
    from pubc.report.tables import Table
    from pubc.report.write_report import Found

__all__ = ["COMMAND", "Report"]


@dataclass(frozen=True)
class Report:
    """Draw what runs and policies left behind as one page that needs no network.

    One RUN rewrites the report inside it. Several are put side by side: what was asked of each,
    what came out, and on which trajectories they disagree. Policy folders add learning curves,
    files of records (`pubc evaluate --record FILE`) add scores with their intervals. Nothing is
    trained or evaluated, and the data is not needed.

    The folder of `pubc reproduce` becomes a page of results: the paper's tables with its figures
    beside ours, results.md with pictures and one results.html.
    """

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of `pubc filter`, policy folders, and .jsonl files of records; or one folder of
    `pubc reproduce`."""
    out: Path | None = None
    """Folder for the report. One RUN has it inside itself by default; others get a folder of
    their own beside the first. For a page of results also a name that ends in .md or .html."""
    figures: Path | None = None
    """Also draw figures for papers into this folder, each as PNG and SVG."""
    force: bool = False
    """Replace an earlier report at --out and earlier figures; never anything else."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Write the report and the figures, and say where they are."""
        from pubc.report import write_report
        from pubc.report.tables import find_records
        from pubc.report.write_report import folder_for

        records = [place for path in self.paths if (place := find_records(path)) is not None]
        if records:
            return self._results(records)
        if self.figures is not None:
            check_apart(self.figures / "figures", folder_for(self.paths, self.out))
        drawn: list[Path] = []
        page = write_report(
            self.paths,
            self.out,
            force=self.force,
            first=lambda found: drawn.extend(self._draw(found)),
        )
        self._announce()
        document: dict[str, Any] = {
            "report": str(page),
            "bytes": page.stat().st_size,
            "figures": None if self.figures is None else [str(path) for path in drawn],
        }
        if not self.json:
            _show(document)
        return document

    def _draw(self, found: Found) -> list[Path]:
        """Figures for papers, where they are asked for."""
        if self.figures is None:
            return []
        from pubc.report.policies import policies
        from pubc.report.run_figures import write_figures

        learned = policies(found.folders, found.files)
        return write_figures(found.runs, learned, self.figures, force=self.force)

    def _announce(self) -> None:
        """Say of each run that is not sound, and of each policy that learned from one."""
        from pubc.policies.policy_folder import is_policy, read_config
        from pubc.runs.folder.run_folder import RunFolder, is_run

        for path in self.paths:
            if is_run(path):
                warn_unsound(path, RunFolder(path).read())
            elif is_policy(path):
                warn_unsound_policy(path, read_config(path))

    def _results(self, records: list[Path]) -> dict[str, Any]:
        from pubc.report.tables.pages.write_tables import write_results

        if len(self.paths) > 1 or self.figures is not None:
            raise UsageError(
                "A folder of `pubc reproduce` is reported alone, and its figures come with its "
                "page; leave the other paths and --figures away."
            )
        written = write_results(records[0], self.out, force=self.force)
        page = written.pages[-1]
        document = {
            "report": str(page),
            "bytes": page.stat().st_size,
            "pages": [str(path) for path in written.pages],
            "figures": [str(path) for path in written.figures],
            "tables": [_counted(table) for table in written.tables],
        }
        if not self.json:
            _show_results(document)
        return document


COMMAND = Report


def _show(document: dict[str, Any]) -> None:
    facts([("report", f"{document['report']} ({document['bytes'] / 1e6:,.2f} MB)")])
    for path in document["figures"] or []:
        say(f"figure  {path}")


def _counted(table: Table) -> dict[str, Any]:
    unexplained = [group.places for group in table.explained() if group.note is None]
    return {
        "table": table.sheet.head.table,
        "cells": len(table.sheet.records),
        "failed": table.sheet.failed,
        "differ": len(table.shortfalls),
        "unexplained": sum(map(len, unexplained)),
    }


def _show_results(document: dict[str, Any]) -> None:
    for table in document["tables"]:
        say(
            f"{table['table']}: {table['cells']:,} cells, {table['failed']:,} failed; "
            f"{table['differ']:,} places fall short or differ, "
            f"{table['unexplained']:,} of them not explained"
        )
    facts([("page", path) for path in document["pages"]])
    facts([("figure", path) for path in document["figures"]])
