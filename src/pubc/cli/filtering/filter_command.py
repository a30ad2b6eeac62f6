"""`pubc filter`: keep the trajectories that look like the target expert's."""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import tyro
from numpy.typing import NDArray

from pubc import formats
from pubc.cli.console import progress, say, warn
from pubc.cli.dataset_flag import Dataset
from pubc.cli.engine_flags import HERE, Spread
from pubc.cli.filtering.filter_document import begin_document, check_same, finish_document, restore
from pubc.cli.filtering.filter_files import (
    check_format,
    most_unsure,
    open_folder,
    write_kept,
    write_masked,
)
from pubc.cli.filtering.filter_output import next_commands, round_line, show_plan, show_result
from pubc.cli.filtering.filter_seeds import choose_seeds, truth_mask
from pubc.errors import InterruptedRun, UnsoundResult, UsageError
from pubc.storage import lock, write_json
from pubc.storage.disk import remove

if TYPE_CHECKING:
    from pubc.pu.algorithm import Round
    from pubc.pu.recipes import Recipe
    from pubc.runs.find_expert import Prepared
    from pubc.runs.run_folder import RunFolder
    from pubc.trajectory import TrajectorySet

__all__ = ["COMMAND", "Filter"]


@dataclass(frozen=True)
class Filter:
    """Keep the trajectories that look like the target expert's.

    Give a pile of trajectories and a few that are known to be the expert's: by highest
    return (--seed-top), by name (--seed-episodes), from another file (--seed-from), or by
    the policy that acted (--seed-source). RUN then holds the kept trajectories in the format
    of the input, keep.json, scores.csv with a confidence for every trajectory, and all
    evidence; docs/run-folder.md describes every file.

    A killed run goes on with `pubc filter --resume RUN`, to an identical result.
    """

    data: Annotated[Dataset | None, tyro.conf.Positional] = None
    """Dataset of mixed quality: a file or a folder in any format `pubc formats` lists."""
    out: Path | None = None
    """Folder to make for the results."""
    resume: Path | None = None
    """Go on with an interrupted run in this folder; everything else is read from there."""
    seed_top: float | None = None
    """Seeds are this share of the trajectories, by highest return; at least two. This is the
    default, with 0.004."""
    seed_episodes: str | None = None
    """Seeds are these trajectories: ids separated by commas, such as 3,17."""
    seed_from: Dataset | None = None
    """Seeds are all trajectories of this other dataset."""
    seed_source: str | None = None
    """Seeds are trajectories of this policy, drawn by --random-seed; needs a dataset that
    says which policy acted."""
    seed_count: int = 2
    """How many to draw with --seed-source."""
    recipe: str = "auto"
    """`auto`; `paper` for the published method; `paper-guarded` for that with bounds of ours on
    its threshold and on the work of a round."""
    classifiers: int | None = None
    """Recipe paper: size of the ensemble, odd; more make the vote steadier."""
    order: int | None = None
    """Recipe paper: order of the polynomial through the histogram."""
    max_rounds: int | None = None
    """Most rounds before giving up."""
    truth: str | None = None
    """Name of the expert among the dataset's sources: measure accuracy. The filter itself
    never sees it."""
    random_seed: int = 0
    """Same seed, same data, same machine: same result."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """Where to compute."""
    workers: int = 0
    """Networks trained at the same time; 0 means one per core. Does not change results."""
    to: str | None = None
    """Format for the kept trajectories; the input's own if omitted."""
    mask: bool = False
    """robomimic: also write masked.hdf5, a copy of the whole file whose mask `pubc_keep` names
    the kept demonstrations, for `train.hdf5_filter_key`."""
    per_step: bool = False
    """Also write a value for every step, steps.npy."""
    require_valley: bool = False
    """Exit with code 6 where no threshold separates the expert."""
    require_sound: bool = False
    """Exit with code 6 unless the rounds converged on a sound selection."""
    dry_run: bool = False
    """Say what would be done, and with which seeds; train and write nothing."""
    force: bool = False
    """Replace RUN if it is the folder of an earlier run."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read the data."""
    spread: Spread = HERE
    """Who works."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Filter, write the folder, and say what was found."""
        from pubc.runs.run_folder import RunFolder

        if self.resume is not None:
            if self.data is not None or self.out is not None:
                raise UsageError("--resume RUN stands alone: data and settings are read from RUN.")
            folder = RunFolder(self.resume)
            document = folder.read()
            if folder.finished:
                if not self.json:
                    say(f"{self.resume} is finished already: {document['status']}.")
                return document
            return restore(self, document)._work(folder, document)
        if self.data is None or (self.out is None and not self.dry_run):
            raise UsageError("Say what to filter and where to put the results: DATA --out RUN.")
        return self._work(RunFolder(self.out or Path()), None)

    def _work(self, folder: RunFolder, before: dict[str, Any] | None) -> dict[str, Any]:
        from pubc.runs.find_expert import prepare

        assert self.data is not None
        started = time.time()
        recipe = self._recipe()
        check_format(self)
        mixed = formats.read(self.data, self.reading)
        seeds = choose_seeds(self, mixed)
        ready = prepare(mixed, seeds.trajectories)
        truth = truth_mask(mixed, self.truth)
        document = begin_document(self, mixed, ready, seeds, recipe)
        if self.dry_run:
            if not self.json:
                show_plan(document, ready)
            return {**document, "status": "planned"}
        if before is None:
            open_folder(folder.path, force=self.force)
        folder.path.mkdir(parents=True, exist_ok=True)
        with lock(folder.path), _resumable(folder.path):
            clock = {"started": started, "read": time.time() - started}
            if before is None:
                folder.begin(document)
            else:
                check_same(before, document)
            return self._finish(folder, mixed, ready, recipe, document, clock, truth)

    def _finish(
        self,
        folder: RunFolder,
        mixed: TrajectorySet,
        ready: Prepared,
        recipe: Recipe,
        document: dict[str, Any],
        clock: dict[str, Any],
        truth: NDArray[np.bool_] | None,
    ) -> dict[str, Any]:
        from pubc.pu.judge import Bench
        from pubc.runs.find_expert import conclude
        from pubc.runs.run_folder import keep_list, score_table, write_table

        assert self.data is not None
        with progress("filter", None, quiet=self.json) as show:
            done = itertools.count(1)

            def tell(word: str) -> None:
                show(next(done), word)

            bench = Bench(workers=self.workers, device=self.device, shelf=folder.shelf, tell=tell)
            with self.spread.open(
                self.data, self.reading, folder.shards, workers=self.workers, tell=tell
            ) as shards:
                crew = dataclasses.replace(bench, shards=shards)
                rounds = self._rounds(folder, ready, recipe, crew, clock)
        remove(folder.shards)
        began = time.time()
        result = conclude(ready, rounds, recipe)
        kept = write_kept(folder.path, self.data, mixed, result.mask, self)
        if self.mask:
            write_masked(folder.path, self.data, result.mask, self.reading)
        write_json(folder.path / "keep.json", keep_list(mixed, result.mask), overwrite=True)
        write_table(folder.path / "scores.csv", score_table(mixed, result), True)
        if self.per_step:
            values = recipe.judge.steps(folder.shelf, result.round, ready.mixed, bench)
            folder.write_steps(values, mixed.steps)
        unsure = most_unsure(result)
        some = ready.mixed[unsure]
        values = recipe.judge.steps(folder.shelf, result.round, some, bench)
        folder.write_borderline(some, unsure, values)
        clock["write"] = time.time() - began
        final = finish_document(document, mixed, result, kept, clock, truth)
        folder.finish(final, lambda: _draw_report(folder.path))
        if not self.json:
            show_result(final, result, folder.path)
            for line in next_commands(folder.path, self, mixed, result.mask):
                say(line)
        self._judge(final)
        return final

    def _rounds(
        self,
        folder: RunFolder,
        ready: Prepared,
        recipe: Recipe,
        bench: Any,
        clock: dict[str, Any],
    ) -> list[Round]:
        from pubc.streams import Key

        known = folder.rounds(len(ready.mixed))
        rounds: list[Round] = []
        clock["rounds"] = [None] * len(known)
        began = time.time()
        for current in recipe.rounds(ready.pile(bench, known), Key(self.random_seed)):
            if current.number > len(known):
                folder.save_round(current)
                clock["rounds"].append(time.time() - began)
            began = time.time()
            rounds.append(current)
            if not self.json:
                say(round_line(current))
        return rounds

    def _recipe(self) -> Recipe:
        from pubc.pu.recipes import get_recipe, with_settings

        settings = {
            "ensemble.classifiers": self.classifiers,
            "order": self.order,
            "loop.max_rounds": self.max_rounds,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        return with_settings(get_recipe(self.recipe), given)

    def _judge(self, document: dict[str, Any]) -> None:
        status = document["status"]
        if self.require_valley and status == "no_valley":
            raise UnsoundResult(f"No threshold separates the expert: {document['advice'][0]}")
        if self.require_sound and not document["sound"]:
            raise UnsoundResult(f"The selection is not sound (status {status}); see run.json.")


COMMAND = Filter


@contextmanager
def _resumable(path: Path) -> Iterator[None]:
    """Ctrl-C and polite kills end with the command that goes on."""
    try:
        yield
    except (KeyboardInterrupt, InterruptedRun):
        raise InterruptedRun(
            f"Interrupted. What was done is kept; go on with: pubc filter --resume {path}"
        ) from None


def _draw_report(path: Path) -> None:
    """Draw the report; whatever goes wrong with it, the hours before it are not lost."""
    from pubc.report import write_report

    try:
        write_report([path])
    except Exception as error:
        warn(f"the run is complete, but not its report ({error}). Try again: pubc report {path}")
