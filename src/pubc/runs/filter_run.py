"""Carrying out a run: from a dataset and a configuration to a finished run folder.

`pubc filter` and Python share this. Nothing here prints: whoever wants to know how it goes
passes a `Listener`. `carry_out` begins a run, `resume` goes on with an interrupted one; both end
in `write_results`, which a finder that was fitted in memory uses too.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pubc.errors import InterruptedRun, UsageError
from pubc.labels import save_labels
from pubc.pu.judge import Bench
from pubc.pu.rounds import Round
from pubc.runs.filter_config import DEFAULTS, FilterConfig
from pubc.runs.find_expert import Result, conclude
from pubc.runs.folder.run_document import check_same, finish_document, restore
from pubc.runs.folder.run_files import question_of
from pubc.runs.folder.run_folder import RunFolder
from pubc.runs.folder.run_results import clear_results, staged_results
from pubc.runs.folder.run_succession import check_place, claim_run, run_to_go_on_with
from pubc.runs.folder.run_tables import keep_list, score_table, verdicts, write_table
from pubc.runs.kept_files import (
    most_unsure,
    write_borderline,
    write_kept,
    write_masked,
    write_steps,
)
from pubc.runs.plan_run import Plan, plan
from pubc.runs.segments.run_steps import judge_steps, segments_of
from pubc.runs.segments.steps_file import write_steps_file
from pubc.storage import check_target, lock, write_json
from pubc.streams import Key

__all__ = [
    "SILENT",
    "Clock",
    "Finished",
    "Listener",
    "carry_out",
    "resume",
    "run_rounds",
    "write_results",
]


@dataclass(frozen=True, slots=True)
class Listener:
    """What to call as a run goes on; by default nothing happens."""

    on_round: Callable[[Round], None] = lambda done: None
    """Called with each finished round."""
    tell: Callable[[str], None] = lambda word: None
    """Told what was just finished inside a round."""
    warn: Callable[[str], None] = lambda sentence: None
    """Told what the user should know."""
    draw: Callable[[Path, Path], object] = lambda run, place: None
    """Draws the report of a run, after its results and before its manifest, into a place."""


SILENT = Listener()
"""Tells nobody."""


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """A run that came to its end."""

    plan: Plan
    """What was done."""
    result: Result
    """What was found."""
    document: dict[str, Any]
    """run.json as the run ended."""


class Clock:
    """How long the parts of a run took, in seconds."""

    def __init__(self) -> None:
        self.started = time.time()
        self.parts: dict[str, Any] = {}

    @contextmanager
    def measure(self, part: str) -> Iterator[None]:
        """Count what happens inside."""
        began = time.time()
        yield
        self.parts[part] = time.time() - began


def carry_out(
    config: FilterConfig,
    data: Path,
    out: Path,
    *,
    force: bool = False,
    listener: Listener = SILENT,
) -> Finished:
    """Filter a dataset, and leave a finished run folder.

    Args:
        config: How to filter.
        data: The dataset.
        out: Folder to make for the results.
        force: Replace `out` if it is the folder of an earlier run, which stays as it is until
            the new one is whole.
        listener: Who is told how it goes.

    Raises:
        UsageError: The configuration contradicts itself or the data, or `out` is taken.
        DataError: The data is not fit for it.
        InterruptedRun: Somebody stopped it; `resume` goes on.
    """
    clock = Clock()
    check_target(out, data, config.seed_from, config.labels)
    check_place(out, force=force)
    with clock.measure("read"):
        planned = plan(config, data, listener.warn)
    folder = claim_run(out, force=force)
    folder.path.mkdir(parents=True, exist_ok=True)
    with lock(folder.path), _resumable(out):
        folder.begin(planned.document)
        return _finish(planned, folder, clock, listener)


def resume(out: Path, given: FilterConfig = DEFAULTS, *, listener: Listener = SILENT) -> Finished:
    """Go on with an interrupted run, to the result that it would have had.

    Args:
        out: The folder of the run.
        given: Who works; everything that shapes the result is read from the folder.
        listener: Who is told how it goes.

    Raises:
        UsageError: The data or the seeds changed since the run began, or it is finished.
        DataError: The folder cannot be read back.
        InterruptedRun: Somebody stopped it again.
    """
    clock, folder = Clock(), run_to_go_on_with(out)
    before = folder.read()
    if folder.finished:
        raise UsageError(f"{out} is finished already: {before['status']}.")
    folder.check_own()
    with clock.measure("read"):
        data, config = restore(before, given)
        planned = plan(config, data, listener.warn)
    with lock(folder.path), _resumable(out):
        check_same(before, planned.document, listener.warn)
        return _finish(planned, folder, clock, listener)


def _finish(planned: Plan, folder: RunFolder, clock: Clock, listener: Listener) -> Finished:
    config = planned.config
    assert planned.data is not None
    bench = dataclasses.replace(config.make_bench(), shelf=folder.shelf, tell=listener.tell)
    with config.spread.open(
        planned.data,
        config.reading,
        folder.shards,
        workers=config.workers,
        question=question_of(planned.document),
        tell=listener.tell,
    ) as shards:
        crew = dataclasses.replace(bench, shards=shards)
        rounds = run_rounds(planned, folder, crew, clock, listener)
    folder.remove_shards()
    # The bench of the rounds: it remembers what they looked at, so that nothing is looked at twice.
    silent = dataclasses.replace(bench, tell=SILENT.tell)
    key = Key(config.random_seed)
    result = conclude(planned.ready, rounds, planned.recipe, key, silent)
    bench.memory.clear()  # the steps of a large pile need the room
    return write_results(planned, folder, result, clock, listener)


def run_rounds(
    planned: Plan, folder: RunFolder, bench: Bench, clock: Clock, listener: Listener = SILENT
) -> list[Round]:
    """Go over the rounds of the recipe, and keep each one in the folder as it ends."""
    bench = dataclasses.replace(bench, question=question_of(planned.document))
    known = folder.rounds(len(planned.mixed), bench.question)
    rounds: list[Round] = []
    seconds: list[float | None] = [None] * len(known)
    key = Key(planned.config.random_seed)
    began = time.time()
    for current in planned.recipe.rounds(planned.ready.pile(bench, known), key):
        if current.number > len(known):
            folder.save_round(current, bench.question)
            seconds.append(time.time() - began)
        began = time.time()
        rounds.append(current)
        listener.on_round(current)
    clock.parts["rounds"] = seconds
    return rounds


def write_results(
    planned: Plan,
    folder: RunFolder,
    result: Result,
    clock: Clock,
    listener: Listener = SILENT,
) -> Finished:
    """Write everything that follows from a result."""
    config, mixed, ready = planned.config, planned.mixed, planned.ready
    bench = dataclasses.replace(config.make_bench(), shelf=folder.shelf)
    key = Key(config.random_seed)
    clear_results(folder.path)
    with clock.measure("write"), staged_results(folder.path) as place:
        taken = result.mask | result.unsure if config.unsure == "keep" else result.mask
        result = dataclasses.replace(result, mask=taken)
        with clock.measure("steps"):
            judged = judge_steps(ready, result, key, planned.recipe.step_settings)
            write_steps_file(place, judged, mixed.steps)
        parts = segments_of(place, planned, listener.warn) if config.segments else None
        kept = write_kept(place, planned.data, mixed, result.mask, config, listener.warn, parts)
        if config.mask:
            assert planned.data is not None
            write_masked(place, planned.data, result.mask, config.reading)
        if planned.marks is not None:
            # A copy: the file itself goes on changing, and may be gone when the run is looked at.
            about = None if planned.data is None else planned.data.resolve()
            save_labels(place / "labels.json", planned.marks, about)
        write_json(place / "keep.json", keep_list(mixed, result.mask, result.unsure))
        marks = {"seed": result.seeds, "borderline": result.quality.borderline}
        words = {"verdict": verdicts(result.mask, result.unsure), "reason": result.reasons}
        rows = score_table(mixed, result.confidence, result.votes, result.mask, marks, words)
        write_table(place / "scores.csv", rows, True)
        judge = planned.recipe.judge
        if config.per_step:
            values = judge.steps(folder.shelf, result.round, ready.mixed, bench)
            write_steps(place, values, mixed.steps)
        unsure = most_unsure(result)
        values = judge.steps(folder.shelf, result.round, ready.mixed[unsure], bench)
        write_borderline(place, unsure, values)
    final = finish_document(
        planned.document, mixed, result, kept, planned.truth, clock.started, clock.parts
    )
    if config.segments:
        final["kept_segments"] = 0 if parts is None else len(parts)
        final["kept_steps"] = 0 if parts is None else parts.steps
    folder.finish(final, lambda stage: _draw(folder, stage, listener))
    return Finished(planned, result, final)


def _draw(folder: RunFolder, stage: Path, listener: Listener) -> None:
    """Draw the report; whatever goes wrong with it, the hours before it are not lost."""
    try:
        listener.draw(folder.path, stage)
    except Exception as error:
        for half in stage.iterdir():
            half.unlink()
        listener.warn(
            f"the run is complete, but not its report ({error}). Try again: "
            f"pubc report {folder.final or folder.path}"
        )


@contextmanager
def _resumable(path: Path) -> Iterator[None]:
    """Ctrl-C and polite kills end with the command that goes on."""
    try:
        yield
    except (KeyboardInterrupt, InterruptedRun):
        raise InterruptedRun(
            f"Interrupted. What was done is kept; go on with: pubc filter --resume {path}"
        ) from None
