"""What `pubc train` takes from a filter run: what it kept, its seeds, or what each step counts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pubc.cli.console import warn, warn_unsound
from pubc.errors import DataError, UsageError

if TYPE_CHECKING:
    from pubc.formats import ReadOptions
    from pubc.trajectory import TrajectorySet

__all__ = ["Lesson", "data_of", "judged_by", "kept_by", "read_lesson", "read_weights"]

_LARGE = 2 << 30
"""Bytes of kept steps that nobody copies for a handful of seeds."""


@dataclass(frozen=True, slots=True, eq=False)
class Lesson:
    """What a policy is to learn from."""

    trajectories: TrajectorySet
    """All of it."""
    given: TrajectorySet
    """The data, or what a run kept of it."""
    seeds: TrajectorySet | None = None
    """What follows that: seeds of the run from another file."""

    def facts(self) -> dict[str, Any]:
        """What a policy is to say of it."""
        told = {"trajectories": len(self.trajectories), "steps": self.trajectories.steps}
        return told if self.seeds is None else {**told, "seeds": len(self.seeds)}


def kept_by(path: Path) -> Path:
    """The dataset itself, or the trajectories that a filter run kept."""
    from pubc.runs.folder.run_folder import RunFolder, is_run

    if not is_run(path):
        return path
    kept = RunFolder(path).kept()
    warn_unsound(path, RunFolder(path).read())
    return kept


def read_lesson(path: Path, options: ReadOptions, run: Path | None = None) -> Lesson:
    """What to learn from: a dataset, or what a filter run kept.

    Args:
        path: The dataset or the run.
        options: How to read it.
        run: A run whose seeds are learned from too, where they came from another file.

    Raises:
        DataError: It is not what it should be, or the seeds are others now.
        UsageError: There is no such thing.
    """
    from pubc.runs.folder.given_data import read_checked, read_given
    from pubc.runs.folder.run_folder import is_run

    kept = kept_by(path)
    given = (read_given if kept == path else read_checked)(kept, options, warn)
    if run is None or not is_run(run):
        return Lesson(given, given)
    return _add_seeds(run, given)


def _add_seeds(run: Path, given: TrajectorySet) -> Lesson:
    """What to learn from, with the seeds of a run that came from another file.

    They are known to be good, and where only parts of trajectories were kept they are the ones
    that show a task from its beginning to its end.
    """
    from pubc.runs.folder.run_folder import RunFolder
    from pubc.trajectory import concatenate

    seed = RunFolder(run).read().get("seed", {})
    if "outside" not in seed:
        return Lesson(given, given)
    if given.steps * (given.observation_size + given.action_size) * 4 > _LARGE:
        warn(f"the seeds of {run} are not learned from: its data is too large to be copied.")
        return Lesson(given, given)
    seeds = _read_seeds(run, seed)
    joined = concatenate([given, seeds])
    return Lesson(dataclasses.replace(joined, metadata=given.metadata), given, seeds)


def _read_seeds(run: Path, seed: Mapping[str, Any]) -> TrajectorySet:
    """The seeds that run.json names, if they are still where and what they were."""
    from pubc.pu.pile_statistics import survey
    from pubc.runs.folder.document_types import reading_options
    from pubc.runs.folder.given_data import read_given
    from pubc.runs.folder.run_folder import RunFolder

    place, outside = Path(seed.get("from") or ""), seed["outside"]
    if not seed.get("from") or not place.exists():
        raise UsageError(
            f"{place}, where the seeds of {run} were, is gone. Put it back, or learn from what was "
            "kept alone with --no-seeds."
        )
    options = dataclasses.replace(reading_options(RunFolder(run).read()), format=None)
    found, positions = read_given(place, options, warn), outside.get("positions")
    if positions and all(type(at) is int and 0 <= at < len(found) for at in positions):
        seeds: TrajectorySet = found[positions]
        if survey(seeds).fingerprint == outside.get("fingerprint"):
            return seeds
    raise DataError(
        f"{place}: not the seeds that {run} was made with; they were changed since. Put them back, "
        "or learn from what was kept alone with --no-seeds.",
        code="changed",
    )


def judged_by(*paths: Path | None) -> dict[str, Any]:
    """What a policy is to say, for whoever uses it, of the run behind its data; or nothing.

    Of several runs it names one that is not sound, where there is one, else the first.
    """
    from pubc.runs.folder.given_data import selected_by

    found = [run for path in paths if path is not None and (run := selected_by(path))]
    found.sort(key=lambda run: run.get("sound") is not False)
    return {"run": found[0]} if found else {}


def data_of(weights: Path | None) -> tuple[Path, ReadOptions]:
    """The data behind the run that weighs it, and how the run read it.

    Raises:
        UsageError: There is no such run, or its data was made in memory.
        DataError: It is no finished run.
    """
    from pubc.runs.folder.document_types import reading_options
    from pubc.runs.folder.run_folder import RunFolder

    if weights is None:
        raise UsageError("Say what to learn from: DATA, or --weights RUN for the data of a run.")
    document = RunFolder(weights).check_finished()
    place = document["data"]["path"]
    if place is None:
        raise UsageError(f"{weights}: its data was made in memory. Say where it is: DATA.")
    return Path(place), reading_options(document)


def read_weights(run: Path, how: Any, lesson: Lesson) -> Any:
    """The weight of every step, from a run that judged exactly this data; seeds weigh 1.

    Raises:
        DataError: It judged other data, or is no finished run.
        UsageError: No step would weigh anything.
    """
    import numpy as np

    from pubc.runs.segments.trainer_tables import read_judged
    from pubc.runs.segments.weights import weigh_steps

    judged = read_judged(run)
    warn_unsound(run, judged.document)
    judged.check_data(lesson.given)
    more = lesson.trajectories.steps - lesson.given.steps
    return np.concatenate([weigh_steps(judged.confidence, how), np.ones(more, dtype=np.float32)])
