"""`pubc score`: apply a trained filter to other data."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro

from pubc import formats
from pubc.cli.console import facts, histogram, progress, say
from pubc.cli.dataset_flag import Dataset
from pubc.cli.engine_flags import HERE, Spread
from pubc.errors import DataError, UsageError
from pubc.results import key_of
from pubc.storage import MANIFEST, claim, hash_file, lock, sealed_file, verify
from pubc.storage.disk import remove

if TYPE_CHECKING:
    from pubc.pu.judge import Bench

__all__ = ["COMMAND", "Score"]

KIND = "scores"


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
    """Replace an earlier table of `pubc score`."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read the data."""
    spread: Spread = HERE
    """Who works."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Rate the trajectories and say how many pass."""
        from pubc.pu.algorithm import majority
        from pubc.pu.judge import mean_confidence
        from pubc.pu.recipes import recipe_from_json
        from pubc.pu.shards import rate
        from pubc.runs.run_folder import RunFolder, plain_table, write_table

        if self.out is not None:
            claim(self.out, KIND, force=self.force)
        folder = RunFolder(self.filter)
        run = folder.check_finished()
        if run["threshold"] is None:
            raise DataError(
                f"{self.filter}: the run found no threshold (status {run['status']}), so it "
                "cannot rate other data.",
                code="no_threshold",
            )
        # Networks that were swapped or damaged would rate wrongly without a word.
        for fault in verify(self.filter, under=f"{folder.shelf.name}/"):
            raise DataError(
                f"{self.filter}: {fault.file} is not as `pubc filter` wrote it ({fault.reason}). "
                "Run the filter again.",
                code="bad_weights",
            )
        trajectories = formats.read(self.data, self.reading)
        _check_sizes(run["data"], trajectories)
        judge = recipe_from_json(run["recipe"]).judge
        with self._bench() as bench:
            confidence = rate(judge, folder.shelf, run["round"], trajectories, bench)
        votes, keep = majority(confidence, run["threshold"])
        mean = mean_confidence(confidence)
        if self.out is not None:
            with sealed_file(self.out, kind=KIND, overwrite=self.force) as place:
                write_table(place, plain_table(trajectories, mean, votes, keep), False)
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

    @contextmanager
    def _bench(self) -> Iterator[Bench]:
        """Where to work.

        What workers of an engine found lies beside the table until it is written, under a name
        that changes with the data and the filter: a killed command goes on when given again.
        """
        from pubc.formats.opening.open_dataset import dataset_key
        from pubc.pu.judge import Bench

        if self.spread.engine == "serial":
            with self.spread.open(self.data, self.reading, Path(), workers=self.workers):
                yield Bench(workers=self.workers, device=self.device)
            return
        if self.out is None:
            raise UsageError(
                "Workers of an engine leave what they found beside the table: pass --out TABLE.csv."
            )
        place = self.out.with_name(f".{self.out.name}.shards")
        cell = {
            "data": dataset_key(self.data, self.reading),
            "filter": hash_file(self.filter / MANIFEST),
            "device": self.device,
        }
        place.mkdir(parents=True, exist_ok=True)
        with (
            lock(place),
            progress("score", None, quiet=self.json) as show,
            self.spread.open(
                self.data,
                self.reading,
                place / key_of(cell),
                workers=self.workers,
                tell=lambda word: show(0, word),
            ) as shards,
        ):
            yield Bench(workers=self.workers, device=self.device, shards=shards)
        remove(place)


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
