"""What `pubc train` takes from a filter run: what it kept, or what each step counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pubc.cli.console import warn, warn_unsound
from pubc.errors import UsageError

if TYPE_CHECKING:
    from pubc.formats import ReadOptions
    from pubc.trajectory import TrajectorySet

__all__ = ["data_of", "judged_by", "kept_by", "read_lesson", "read_weights"]


def kept_by(path: Path) -> Path:
    """The dataset itself, or the trajectories that a filter run kept."""
    from pubc.runs.folder.run_folder import RunFolder, is_run

    if not is_run(path):
        return path
    kept = RunFolder(path).kept()
    warn_unsound(path, RunFolder(path).read())
    return kept


def read_lesson(path: Path, options: ReadOptions) -> TrajectorySet:
    """What to learn from: a dataset, or what a filter run kept.

    Raises:
        DataError: It is not what it should be.
        UsageError: There is no such thing.
    """
    from pubc.runs.folder.given_data import read_checked, read_given

    kept = kept_by(path)
    return (read_given if kept == path else read_checked)(kept, options, warn)


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


def read_weights(run: Path, how: Any, trajectories: TrajectorySet) -> Any:
    """The weight of every step, from a run that judged exactly this data.

    Raises:
        DataError: It judged other data, or is no finished run.
        UsageError: No step would weigh anything.
    """
    from pubc.runs.segments.trainer_tables import read_judged
    from pubc.runs.segments.weights import weigh_steps

    judged = read_judged(run)
    warn_unsound(run, judged.document)
    judged.check_data(trajectories)
    return weigh_steps(judged.confidence, how)
