"""The desk behind the page: a dataset, what was marked in it, what the last run said of it."""

from __future__ import annotations

import functools
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError, UsageError
from pubc.formats import ReadOptions
from pubc.formats.minari.minari_ids import find
from pubc.formats.opening.open_dataset import open_dataset
from pubc.labels import Label, Labels, Mark, parts_of
from pubc.labels_file import LabelsFile
from pubc.review.episode_videos import Videos, no_videos, videos_of
from pubc.review.features import Features, describe
from pubc.review.filter_job import FilterJob
from pubc.review.proposals import Evidence, Proposal, propose
from pubc.review.rendered_films import RenderedFilms, environment_of
from pubc.review.small_plots import Plots, plots_of
from pubc.runs.folder.document_types import reading_options
from pubc.runs.folder.run_folder import is_run
from pubc.runs.folder.run_reading import Run, read_run
from pubc.storage import check_target
from pubc.trajectory import TrajectorySet

__all__ = ["Desk", "open_desk"]

Integers = NDArray[np.int64]


@dataclass(eq=False)
class Desk:
    """Everything that the page shows and changes. Marks are on the disk before they count."""

    data: Path
    """The dataset."""
    reading: ReadOptions
    """How it was read."""
    trajectories: TrajectorySet
    """What it holds."""
    folder: Path
    """Where labels and runs go."""
    file: LabelsFile
    """Where the marks are saved."""
    labels: Labels
    """What was marked."""
    videos: Videos | RenderedFilms
    """Videos of the episodes, where the dataset has any or a simulator can draw them."""
    given: Run | None = None
    """The run that the review was opened with."""

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self.job = FilterJob(self.folder, self.data, self.reading)
        self._positions = {str(name): at for at, name in enumerate(self.trajectories.ids)}
        self._read: dict[int, Run] = {}
        self._proposed: set[int] = set()
        self.plots: Plots = plots_of(self.trajectories)
        self.returns = self.trajectories.total_rewards()

    @property
    def labels_path(self) -> Path:
        """Where the marks are saved."""
        return self.file.path

    @functools.cached_property
    def features(self) -> Features:
        """Numbers about every trajectory."""
        return describe(self.trajectories)

    @property
    def run(self) -> Run | None:
        """The latest finished run."""
        done = self.job.finished()
        return self._finished(done[-1]) if done else self.given

    @property
    def run_before(self) -> Run | None:
        """The finished run before the latest."""
        done = self.job.finished()
        return self._finished(done[-2]) if len(done) > 1 else self.given if done else None

    def marks(self) -> dict[int, list[dict[str, Any]]]:
        """The marks of every marked trajectory by its position."""
        found: dict[int, list[dict[str, Any]]] = {}
        for mark in self.labels.marks:
            entry = {"label": mark.label, "start": mark.start, "stop": mark.stop}
            found.setdefault(self._positions[mark.episode], []).append(entry)
        return found

    def set_marks(self, changes: Sequence[tuple[int, Sequence[Mapping[str, Any]]]]) -> None:
        """Replace what is said about some trajectories, and save it.

        Raises:
            DataError: A mark is none, or lies outside its trajectory.
            UsageError: Somebody else wrote to the file of marks since.
            EnvironmentFailure: It could not be saved; nothing was changed.
        """
        with self._lock:
            said: dict[str, list[Mark]] = {}
            for at, marks in changes:
                if not 0 <= at < len(self.trajectories):
                    raise DataError(f"There is no trajectory {at}.", code="bad_labels")
                name = str(self.trajectories.ids[at])
                foretold = self._foretold(at, name)
                said[name] = [_checked(entry, name, foretold) for entry in marks]
            rest = [mark for mark in self.labels.marks if mark.episode not in said]
            labels = Labels((*rest, *(mark for marks in said.values() for mark in marks)))
            parts_of(labels, self.trajectories)
            self._make_folder()
            self.file.save(labels, self.data)
            self.labels = labels

    def proposals(self) -> list[Proposal]:
        """What to look at next."""
        parts = parts_of(self.labels, self.trajectories)
        good = _places(self._positions, parts.good)
        bad = np.setdiff1d(_places(self._positions, parts.bad), good)
        run = self.run
        found = propose(self.features, good, bad, None if run is None else _said_by(run))
        self._proposed |= {proposal.at for proposal in found}
        return found

    def start_run(self) -> int:
        """Filter with the marks as they are now.

        Raises:
            UsageError: Nothing is marked good, or a run is at work.
        """
        with self._lock:
            if not len(parts_of(self.labels, self.trajectories).good):
                raise UsageError(
                    "Mark at least one trajectory good: the filter looks for its like."
                )
            self._make_folder()
            self._proposed = set()
            return self.job.start(self.labels)

    def close(self) -> None:
        """Stop the run at work, and take drawn films away."""
        self.job.stop()
        if isinstance(self.videos, RenderedFilms):
            self.videos.close()

    def _foretold(self, at: int, name: str) -> Label | None:
        """What a run had said of a trajectory that it proposed, before it was marked.

        Trajectories that somebody else chose are no test: the easy ones may be chosen.
        """
        known = [mark for mark in self.labels.marks if mark.episode == name]
        if known:
            return known[0].foretold
        run = self.run
        if run is None or at not in self._proposed:
            return None
        told = any(mark.episode == name for mark in run.labels.marks)
        words: dict[str, Label] = {"kept": "good", "dropped": "bad"}
        return None if told else words.get(run.scores.verdict[at])

    def _make_folder(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.labels_path.parent.mkdir(parents=True, exist_ok=True)

    def _finished(self, number: int) -> Run:
        if number not in self._read:
            run = read_run(self.job.path(number))
            _check_run(run, self.trajectories)
            self._read[number] = run
        return self._read[number]


def open_desk(
    path: Path,
    reading: ReadOptions,
    *,
    folder: Path | None = None,
    labels: Path | None = None,
    environment: str | None = None,
) -> Desk:
    """Open a dataset or a run for review.

    Args:
        path: A dataset, or the folder of a finished filter run.
        reading: How to read the dataset; a run says it itself.
        folder: Where labels and runs go; `NAME-review` beside `path` if omitted.
        labels: The file of marks; labels.json in the folder if omitted.
        environment: Where it was recorded, to draw films; what the dataset says if omitted.

    Raises:
        DataError: The dataset, the run or the labels are not what they should be.
        UsageError: There is nothing at the path, or marks would go into a sealed folder or a link.
    """
    place = folder or Path(f"{path.resolve()}-review")
    if is_run(place):
        raise UsageError(f"{place} is the folder of a run, and marks go beside it. Choose another.")
    check_target(place / "labels.json")
    run = read_run(path) if is_run(path) else None
    data = find(path) if run is None else _data_of(run)
    if run is not None:
        told = reading_options(run.document)
        reading = replace(told, cache=reading.cache, isolate=reading.isolate)
    opened = open_dataset(data, reading)
    trajectories = opened.trajectories
    if run is not None:
        _check_run(run, trajectories)
    file = LabelsFile(labels or place / "labels.json")
    marks = file.read()
    if marks is None:
        check_target(file.path)
        marks = Labels() if run is None else run.labels
    if marks.flags or is_run(file.path.parent):
        # Flags of another program and marks inside a run stay: ours go to a file that comes first.
        file = LabelsFile(place / "labels.json")
        own = (file.read() or Labels()).marks
        known = {mark.episode for mark in own}
        marks = Labels((*own, *(mark for mark in marks.marks if mark.episode not in known)))
    parts_of(marks, trajectories)  # labels of another dataset are refused before anything else
    videos: Videos | RenderedFilms = no_videos()
    drawn_in = environment or environment_of(trajectories.metadata)
    if opened.format == "lerobot":
        videos = videos_of(data, trajectories)
    if drawn_in is not None and not videos.cameras:
        videos = RenderedFilms(drawn_in, trajectories)
    return Desk(data.resolve(), reading, trajectories, place, file, marks, videos, run)


def _data_of(run: Run) -> Path:
    path = run.document["data"].get("path")
    if not isinstance(path, str):
        raise DataError(
            f"{run.path}: the run was made of data in memory, so there is no dataset to look at. "
            "Save it with pubc.save and review the file.",
            code="no_data",
        )
    found = find(Path(path))
    if not found.exists():
        raise DataError(
            f"{run.path}: the run was made of {path}, which is not there any more. Move or link "
            "the data back to that place, or filter it where it is now.",
            code="no_data",
        )
    return found


def _check_run(run: Run, trajectories: TrajectorySet) -> None:
    if run.scores.ids != [str(name) for name in trajectories.ids]:
        raise DataError(
            f"{run.path}: the run is about other trajectories than {len(trajectories):,} of the "
            "dataset as it is now. Filter it again, or review the dataset alone.",
            code="other_data",
        )


def _said_by(run: Run) -> Evidence:
    """What a run said, for proposals: where evidence decided, its votes tell what is unsure."""
    scores, opinion = run.scores, run.document.get("second_opinion") or {}
    divided = np.array([word == "unsure" for word in scores.verdict], dtype=np.bool_)
    return Evidence(
        confidence=scores.confidence,
        keep=scores.keep,
        unsure=divided if opinion.get("decided") else scores.borderline,
        threshold=run.document.get("threshold"),
        sound=bool(run.document.get("sound")),
    )


def _checked(entry: Any, name: str, foretold: Label | None) -> Mark:
    if not isinstance(entry, Mapping):
        raise DataError("A mark is an object with a label.", code="bad_labels")
    label: Any = entry.get("label")
    start: Any = entry.get("start")
    stop: Any = entry.get("stop")
    whole = start is None and stop is None
    steps = all(isinstance(n, int) and not isinstance(n, bool) for n in (start, stop))
    if label not in ("good", "bad") or not (whole or (steps and 0 <= start < stop)):
        raise DataError(
            "A mark is good or bad, and a stretch has a start and a stop.", code="bad_labels"
        )
    return Mark(name, label, start, stop, foretold if whole else None)


def _places(positions: Mapping[str, int], pieces: TrajectorySet) -> Integers:
    found = sorted({positions[str(name)] for name in pieces.ids})
    return np.array(found, dtype=np.int64)
