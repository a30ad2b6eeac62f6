"""A finished run as plain values, read from its folder and checked.

docs/run-folder.md describes the files. Nothing here trains, scores or opens the dataset: the
report of a run can be drawn on a machine that has neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.labels import Labels, Mark, read_labels
from pubc.pu.rounds import Round
from pubc.runs.folder.round_files import UNREADABLE, stored_arrays
from pubc.runs.folder.run_folder import RunFolder
from pubc.runs.folder.run_tables import Scores, read_scores
from pubc.storage import final_name

__all__ = ["Run", "read_run", "unreadable"]

_READ = ("scores.csv", "rounds", "steps.", "borderline_steps.npz", "labels.json")
"""How the names of the files begin that a run is read from, beside run.json."""
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Run:
    """A finished filter run."""

    path: Path
    """Its folder."""
    document: dict[str, Any]
    """run.json."""
    scores: Scores
    """scores.csv."""
    rounds: list[Round]
    """Every round, first to last."""

    @property
    def name(self) -> str:
        """What to call it."""
        return final_name(self.path)

    @property
    def place(self) -> Path:
        """Its folder in full, or where that will be when the run has taken its place."""
        return self.path.resolve().with_name(self.name)

    @property
    def decisive(self) -> int:
        """Place of the round that holds the result: the last, unless the run says otherwise."""
        number = self.document.get("round")
        numbers = [done.number for done in self.rounds]
        return numbers.index(number) if number in numbers else len(numbers) - 1

    @cached_property
    def truth(self) -> Mask | None:
        """Which trajectories are the expert's, where the run was told with --truth."""
        report = self.document.get("truth_report")
        if not isinstance(report, dict) or self.scores.sources is None:
            return None
        return np.array([source == report.get("expert") for source in self.scores.sources])

    @cached_property
    def labels(self) -> Labels:
        """All that it was told: its marks, then seeds and bad ones that they do not name.

        Raises:
            DataError: labels.json holds no marks.
        """
        file = self.path / "labels.json"
        said = read_labels(file).marks if file.exists() else ()
        known = {mark.episode for mark in said}
        seeds = [self.scores.ids[at] for at in np.flatnonzero(self.scores.seed)]
        bad = self.document.get("bad", {}).get("ids", [])
        more = [Mark(name, "good") for name in seeds] + [Mark(str(name), "bad") for name in bad]
        return Labels((*said, *(mark for mark in more if mark.episode not in known)))

    def steps_of(self, positions: Integers) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Values of the steps of some trajectories, as far as the run kept them.

        Either steps.npy holds every step, or borderline_steps.npz those of the trajectories
        whose label is unsure.
        """
        lengths = self.scores.lengths
        everything = self.path / "steps.npy"
        if everything.exists():
            values = np.load(everything, mmap_mode="r", allow_pickle=False)
            if values.shape != (int(lengths.sum()),):
                raise _bad(everything, f"{lengths.sum():,} values", f"shape {values.shape}")
            ends = np.cumsum(lengths)
            for position in positions.tolist():
                yield (
                    position,
                    np.array(values[ends[position] - lengths[position] : ends[position]]),
                )
            return
        some = self.path / "borderline_steps.npz"
        if some.exists():
            arrays = stored_arrays(some)
            stored, values = arrays["positions"], arrays["values"]
            if values.shape != (int(lengths[stored].sum()),):
                raise _bad(some, "a value per step", f"shape {values.shape}")
            ends = np.cumsum(lengths[stored])
            where = {int(position): index for index, position in enumerate(stored)}
            for position in positions.tolist():
                if position in where:
                    end = ends[where[position]]
                    yield position, values[end - lengths[position] : end]


def read_run(path: Path, *, sealed: bool = True) -> Run:
    """Read the folder of a finished filter run.

    Args:
        path: The folder.
        sealed: Whether it must have its manifest and be as that says. Only who is finishing a run
            may go without: its report is drawn before the manifest is written.

    Raises:
        DataError: It is another kind of folder, not finished, or changed since it was written,
            or its files contradict each other.
    """
    folder = RunFolder(path)
    document = folder.check_finished() if sealed else folder.read()
    if sealed:
        folder.check_parts(*_READ)
    try:
        scores = read_scores(path / "scores.csv")
        _check(path, document, scores)
        rounds = folder.rounds(len(scores))
    except UNREADABLE as error:
        raise unreadable(path, error) from None
    return Run(path, document, scores, rounds)


def _check(path: Path, document: dict[str, Any], scores: Scores) -> None:
    if len(scores) != document["data"]["trajectories"]:
        raise _bad(path, f"{document['data']['trajectories']} trajectories", f"{len(scores)}")
    if int(scores.keep.sum()) != document["kept"]:
        raise _bad(path, f"{document['kept']} kept", f"{int(scores.keep.sum())} in scores.csv")


def _bad(path: Path, expected: str, found: str) -> DataError:
    return DataError(f"{path}: expected {expected}, found {found}.", code="bad_run")


def unreadable(path: Path, error: Exception) -> DataError:
    """What to say where the files of a run cannot be read."""
    return DataError(
        f"{path}: the run cannot be read ({type(error).__name__}: {error}). `pubc verify {path}` "
        "says which file was changed.",
        code="bad_run",
    )
