"""`pubc report`: the page about runs and policies, and figures for papers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from pubc.cli.console import facts, say

__all__ = ["COMMAND", "Report"]


@dataclass(frozen=True)
class Report:
    """Draw what runs and policies left behind as one page that needs no network.

    One RUN rewrites the report inside it. Several are put side by side: what was asked of each,
    what came out, and on which trajectories they disagree. Policy folders add learning curves,
    files of records (`pubc evaluate --record FILE`) add scores with their intervals. Nothing is
    trained or evaluated, and the data is not needed.

        pubc report RUN
        pubc report RUN_A RUN_B --out comparison
        pubc report RUN policy-0 policy-1 policy-2 results.jsonl
        pubc report RUN --figures paper/figures
    """

    paths: Annotated[tuple[Path, ...], tyro.conf.Positional]
    """Folders of `pubc filter`, policy folders, and .jsonl files of records."""
    out: Path | None = None
    """Folder for the report. One RUN has it inside itself by default; others get a folder of
    their own beside the first."""
    figures: Path | None = None
    """Also draw figures for papers into this folder, each as PNG and SVG."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Write the report and the figures, and say where they are."""
        from pubc.report import write_report
        from pubc.report.write import find

        page = write_report(self.paths, self.out)
        document: dict[str, Any] = {
            "report": str(page),
            "bytes": page.stat().st_size,
            "figures": None,
        }
        if self.figures is not None:
            from pubc.report.figures import write_figures
            from pubc.report.policies import policies

            found = find(self.paths)
            learned = policies(found.folders, found.files)
            drawn = write_figures(found.runs, learned, self.figures)
            document["figures"] = [str(path) for path in drawn]
        if not self.json:
            _show(document)
        return document


COMMAND = Report


def _show(document: dict[str, Any]) -> None:
    facts([("report", f"{document['report']} ({document['bytes'] / 1e6:,.2f} MB)")])
    for path in document["figures"] or []:
        say(f"figure  {path}")
