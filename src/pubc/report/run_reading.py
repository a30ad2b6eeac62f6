"""A filter run as the report sees it: plain values, read from its folder and checked.

docs/run-folder.md describes the files. Nothing here trains, scores or opens the dataset: the
report of a run can be drawn on a machine that has neither.
"""

from __future__ import annotations

import csv
import json
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.storage import read_json

__all__ = ["Round", "Run", "Scores", "is_run", "read_run"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_FORMULA = ("=", "+", "-", "@")
_UNREADABLE = (
    KeyError,
    ValueError,
    TypeError,
    IndexError,
    EOFError,
    OSError,
    zipfile.BadZipFile,
    zlib.error,
)
_NUMBERS = ("confidence", "votes", "keep", "seed", "return", "length", "borderline")
_ARRAYS = ("confidence", "selected", "centres", "counts", "curve")


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """scores.csv, one entry per trajectory in the order of the dataset."""

    ids: list[str]
    """What the dataset calls each trajectory."""
    confidence: Floats
    """Mean confidence of the last round; NaN where there is none."""
    votes: Integers
    """Members of the last round at or above the threshold."""
    keep: Mask
    """What was kept."""
    seed: Mask
    """Which trajectories are seeds."""
    returns: Floats
    """Undiscounted returns; NaN where unknown."""
    lengths: Integers
    """Steps."""
    sources: list[str] | None
    """Which policy acted; None where the dataset does not say."""
    borderline: Mask
    """Whose label could go either way."""

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    """One line of rounds.jsonl with the arrays it names."""

    number: int
    """1 for the first."""
    attempt: int
    """Which start the round goes back to; 0 where there is one start only."""
    threshold: float | None
    """Where the confidences were cut."""
    reason: str
    """How the cut was found, or why there is none."""
    kept: int
    """Trajectories selected after the round."""
    changed: float
    """Share of all trajectories whose membership changed."""
    losses: list[tuple[str, list[float]]]
    """Each network's name and its mean losses, first to last."""
    confidence: Floats
    """Mean confidence of the members that did not abstain, shape (trajectories,)."""
    selected: Mask
    """What counted as the expert's after the round, shape (trajectories,)."""
    centres: Floats
    """Middle of each histogram bin; may be empty."""
    counts: Floats
    """Trajectories in each bin."""
    curve: Floats
    """The curve that the cut was read from."""


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
        return self.path.resolve().name

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
            with some.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                stored, values = file["positions"], file["values"]
            if values.shape != (int(lengths[stored].sum()),):
                raise _bad(some, "a value per step", f"shape {values.shape}")
            ends = np.cumsum(lengths[stored])
            where = {int(position): index for index, position in enumerate(stored)}
            for position in positions.tolist():
                if position in where:
                    end = ends[where[position]]
                    yield position, values[end - lengths[position] : end]


def is_run(path: Path) -> bool:
    """Whether a path looks like the folder of a filter run."""
    if not (path / "run.json").is_file():
        return False
    return read_json(path / "run.json").get("kind") == "filter"


def read_run(path: Path) -> Run:
    """Read the folder of a finished filter run.

    Raises:
        DataError: It is another kind of folder, not finished, or its files contradict
            each other.
    """
    document = read_json(path / "run.json")
    if document.get("kind") != "filter":
        raise _bad(path, "the folder of a filter run", f"kind {document.get('kind')!r}")
    if document.get("status") == "running":
        raise DataError(
            f"{path}: the run is not finished, so there is nothing to report yet. Go on with: "
            f"pubc filter --resume {path}",
            code="unfinished",
        )
    try:
        scores = _read_scores(path / "scores.csv")
        rounds = [_read_round(path, line) for line in _lines(path / "rounds.jsonl")]
        _check(path, document, scores, rounds)
    except _UNREADABLE as error:
        raise DataError(
            f"{path}: the run cannot be read ({type(error).__name__}: {error}). `pubc verify "
            f"{path}` says which file was changed.",
            code="bad_run",
        ) from None
    return Run(path, document, scores, rounds)


def _check(path: Path, document: dict[str, Any], scores: Scores, rounds: list[Round]) -> None:
    if len(scores) != document["data"]["trajectories"]:
        raise _bad(path, f"{document['data']['trajectories']} trajectories", f"{len(scores)}")
    if int(scores.keep.sum()) != document["kept"]:
        raise _bad(path, f"{document['kept']} kept", f"{int(scores.keep.sum())} in scores.csv")
    for done in rounds:
        if done.selected.shape != (len(scores),) or done.confidence.shape != (len(scores),):
            raise _bad(path, f"{len(scores)} trajectories", f"others in round {done.number}")


def _read_scores(path: Path) -> Scores:
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        rows = list(reader)
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"scores.csv has rows that are not {len(header)} columns wide")
    columns = {name: [row[index] for row in rows] for index, name in enumerate(header)}
    number = {name: _floats(columns[name]) for name in _NUMBERS}
    sources = columns.get("source")
    return Scores(
        ids=[_unguarded(word) for word in columns["episode"]],
        confidence=number["confidence"],
        votes=number["votes"].astype(np.int64),
        keep=number["keep"] == 1,
        seed=number["seed"] == 1,
        returns=number["return"],
        lengths=number["length"].astype(np.int64),
        sources=None if sources is None else [_unguarded(word) for word in sources],
        borderline=number["borderline"] == 1,
    )


def _read_round(path: Path, line: dict[str, Any]) -> Round:
    number = int(line["round"])
    name = path / f"rounds/round-{number:03d}.npz"
    # Opened here, or numpy would leave a file that is no archive open.
    with name.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
        arrays = {name: file[name] for name in _ARRAYS}
    return Round(
        number=number,
        attempt=int(line.get("attempt") or 0),
        threshold=None if line["threshold"] is None else float(line["threshold"]),
        reason=str(line["reason"]),
        kept=int(line["kept"]),
        changed=float(line["changed"]),
        losses=[(str(t["network"]), [float(v) for v in t["loss"]]) for t in line["training"]],
        confidence=_mean(arrays["confidence"]),
        selected=arrays["selected"].astype(np.bool_),
        centres=arrays["centres"],
        counts=arrays["counts"],
        curve=arrays["curve"],
    )


def _mean(confidence: Floats) -> Floats:
    """Mean over the members that judged, NaN where none did."""
    judged = ~np.isnan(confidence)
    total = np.where(judged, confidence, 0.0).sum(axis=0)
    count = judged.sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    text = path.read_text(encoding="utf-8")
    for line in text[: text.rfind("\n") + 1].split("\n"):
        if line:
            yield json.loads(line)


def _floats(words: list[str]) -> Floats:
    return np.array([float(word) if word else np.nan for word in words], dtype=np.float64)


def _unguarded(word: str) -> str:
    guarded = word.startswith("'") and word[1:].lstrip().startswith(_FORMULA)
    return word[1:] if guarded else word


def _bad(path: Path, expected: str, found: str) -> DataError:
    return DataError(f"{path}: expected {expected}, found {found}.", code="bad_run")
