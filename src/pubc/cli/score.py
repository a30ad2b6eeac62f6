"""`pubc score`: apply a trained filter to other data."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import tyro

from pubc import formats
from pubc.cli.console import facts, histogram, say
from pubc.cli.dataset import Dataset
from pubc.errors import DataError, UsageError

__all__ = ["COMMAND", "Score"]


@dataclass(frozen=True)
class Score:
    """Apply a trained filter to other data of the same robot and task.

    The networks and the threshold of the last round of a finished run rate every trajectory;
    nothing is trained. Trajectories that the networks were trained on are rated too high:
    for those, scores.csv of the run itself is the fair table.
    """

    data: Annotated[Dataset, tyro.conf.Positional]
    """Dataset to rate."""
    filter: Path
    """Folder of a finished `pubc filter` run."""
    out: Path | None = None
    """Where to write a table of scores (CSV); only printed if omitted."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""
    workers: int = 0
    """Blocks scored at the same time; 0 means one per core. Does not change results."""
    force: bool = False
    """Replace the table if it exists."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read the data."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Rate the trajectories and say how many pass."""
        from pubc.pu.filter import majority
        from pubc.pu.judge import Bench, mean_confidence
        from pubc.pu.recipes import recipe_from_json
        from pubc.pu.runfolder import RunFolder, plain_table, write_table

        if self.out is not None and self.out.exists() and not self.force:
            raise UsageError(f"{self.out} exists already. Choose another name, or pass --force.")
        folder = RunFolder(self.filter)
        run = folder.check_finished()
        if run["threshold"] is None:
            raise DataError(
                f"{self.filter}: the run found no threshold (status {run['status']}), so it "
                "cannot rate other data.",
                code="no_threshold",
            )
        trajectories = formats.read(self.data, self.reading)
        _check_sizes(run["data"], trajectories)
        bench = Bench(workers=self.workers, device=self.device)
        judge = recipe_from_json(run["recipe"]).judge
        confidence = judge.apply(folder.shelf, run["round"], trajectories, bench)
        votes, keep = majority(confidence, run["threshold"])
        mean = mean_confidence(confidence)
        if self.out is not None:
            write_table(self.out, plain_table(trajectories, mean, votes, keep), self.force)
        if not self.json:
            _show(self, mean, int(keep.sum()), run["threshold"])
        return {
            "data": str(self.data),
            "filter": str(self.filter),
            "threshold": run["threshold"],
            "trajectories": len(trajectories),
            "kept": int(keep.sum()),
            "episodes": [str(name) for name in trajectories.ids[keep]],
            "confidence": mean.tolist(),
            "reading": dataclasses.asdict(self.reading),
        }


COMMAND = Score


def _check_sizes(before: dict[str, Any], trajectories: Any) -> None:
    now = {
        "observation_size": trajectories.observation_size,
        "action_size": trajectories.action_size,
    }
    for name, value in now.items():
        if value != before[name]:
            raise DataError(
                f"The filter was trained with {name.replace('_', ' ')} {before[name]}, this "
                f"data has {value}. Both must come from the same robot and task.",
                code="bad_shape",
                field=name.split("_")[0] + "s",
            )


def _show(command: Score, confidence: Any, kept: int, threshold: float) -> None:
    rows = [
        ("confidence", histogram(np.asarray(confidence))),
        ("threshold", f"{threshold:.4g}"),
        ("kept", f"{kept:,} of {len(confidence):,} trajectories"),
    ]
    if command.out is not None:
        rows.append(("scores", str(command.out)))
    facts(rows)
    if command.out is None:
        say("(--out TABLE.csv writes one line per trajectory)")
