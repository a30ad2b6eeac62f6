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
from pubc.cli.console import facts, histogram, progress, say, warn, warn_unsound
from pubc.cli.dataset_flag import Dataset
from pubc.errors import UsageError
from pubc.results import key_of
from pubc.runs.folder.given_data import read_given
from pubc.runs.spread import HERE, Spread
from pubc.storage import MANIFEST, WorkFolder, claim, hash_file, lock, sealed_file
from pubc.tensor_files import proves_itself

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
    """Which workers go over the data."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Rate the trajectories and say how many pass."""
        from pubc.runs.apply_run import open_filter
        from pubc.runs.folder.run_tables import score_table, write_table

        if self.out is not None:
            sources = (self.data, self.filter)
            claim(self.out, KIND, force=self.force, file=True, sources=sources)
            if self.spread.engine != "serial":
                _shards(self.out).about()
        trained, document = open_filter(self.filter)
        warn_unsound(self.filter, document)
        threshold = trained.check_threshold()
        trajectories = read_given(self.data, self.reading, warn)
        with self._bench() as bench:
            rated = trained.apply(trajectories, bench)
        if self.out is not None:
            rows = score_table(trajectories, rated.confidence, rated.votes, rated.keep)
            with sealed_file(self.out, kind=KIND, overwrite=self.force) as place:
                write_table(place, rows, False)
        kept = int(rated.keep.sum())
        if not self.json:
            _show(self, rated.confidence, kept, threshold)
        return {
            "data": str(self.data),
            "filter": str(self.filter),
            "threshold": threshold,
            "trajectories": len(trajectories),
            "kept": kept,
            "episodes": [str(name) for name in trajectories.ids[rated.keep]],
            "confidence": rated.confidence.tolist(),
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
        work = _shards(self.out)
        cell = {
            "data": dataset_key(self.data, self.reading),
            "filter": hash_file(self.filter / MANIFEST),
            "device": self.device,
        }
        work.begin()
        with lock(work.path):
            with (
                progress("score", None, quiet=self.json) as show,
                self.spread.open(
                    self.data,
                    self.reading,
                    work.path / key_of(cell),
                    workers=self.workers,
                    tell=lambda word: show(0, word),
                ) as shards,
            ):
                yield Bench(workers=self.workers, device=self.device, shards=shards)
            work.remove()


COMMAND = Score


def _shards(out: Path) -> WorkFolder:
    """Where workers of an engine leave what they found."""
    names = ("[0-9a-f]" * 16 + "/round-*-scores-*-*.safetensors",)
    return WorkFolder(out.with_name(f".{out.name}.shards"), "table of scores", names, proves_itself)


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
