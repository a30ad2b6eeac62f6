"""The tables of a run: scores.csv and keep.json, written and read back in one place."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pubc.storage import atomic_file
from pubc.trajectory import TrajectorySet
from pubc.trajectory.numbered_ids import DIGITS

__all__ = ["Scores", "keep_list", "read_scores", "score_table", "verdicts", "write_table"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

_FORMULA = ("=", "+", "-", "@")
_NUMBERS = ("confidence", "votes", "keep", "seed", "return", "length", "borderline")
_WHOLE = ("votes", "length")
_FARTHEST = 2**53
"""Whole numbers up to here are exact in a table that is read as floats."""
_MAY_LACK = ("confidence", "return")
"""Columns that are empty where there is no such number."""


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
    verdict: list[str]
    """`kept`, `dropped` or `unsure`."""
    reason: list[str]
    """Why a trajectory is unsure or dropped."""

    def __len__(self) -> int:
        return len(self.ids)


def keep_list(mixed: TrajectorySet, mask: Mask, unsure: Mask) -> dict[str, list[int] | list[str]]:
    """keep.json: ids of the kept and of the unsure, as integers where all ids of the set are."""
    numbers = all(
        name.isascii() and name.isdigit() and len(name) <= DIGITS for name in map(str, mixed.ids)
    )

    def named(chosen: Mask) -> list[int] | list[str]:
        names = [str(name) for name in mixed.ids[chosen]]
        return [int(name) for name in names] if numbers else names

    return {"episodes": named(mask), "unsure": named(unsure)}


def verdicts(keep: Mask, unsure: Mask) -> list[str]:
    """`kept`, `dropped` or `unsure` for each trajectory."""
    return [
        "unsure" if doubtful else "kept" if kept else "dropped"
        for kept, doubtful in zip(keep, unsure, strict=True)
    ]


def score_table(
    trajectories: TrajectorySet,
    confidence: Floats,
    votes: Integers,
    keep: Mask,
    marks: Mapping[str, Mask] | None = None,
    words: Mapping[str, Sequence[str]] | None = None,
) -> list[list[str]]:
    """A header and one row per trajectory, as text that is safe in a spreadsheet.

    Args:
        trajectories: What was rated.
        confidence: Mean confidence of each.
        votes: Votes for each.
        keep: Which were kept.
        marks: Further columns `seed` and `borderline`, for the table of a run.
        words: Further columns `verdict` and `reason`, for the table of a run.
    """
    marks = marks or {}
    columns = {
        "episode": [_guarded(name) for name in trajectories.ids],
        "confidence": [_number(value) for value in confidence],
        "votes": [str(int(value)) for value in votes],
        "keep": _bits(keep),
    }
    if "seed" in marks:
        columns["seed"] = _bits(marks["seed"])
    columns["return"] = [_number(value) for value in trajectories.total_rewards()]
    columns["length"] = [str(int(value)) for value in trajectories.lengths]
    if trajectories.sources is not None:
        columns["source"] = [_guarded(name) for name in trajectories.sources]
    if "borderline" in marks:
        columns["borderline"] = _bits(marks["borderline"])
    for name, texts in (words or {}).items():
        columns[name] = [_guarded(text) for text in texts]
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]


def write_table(path: Path, rows: Sequence[Sequence[str]], overwrite: bool) -> None:
    """Write rows of text as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    with atomic_file(path, overwrite=overwrite) as new:
        new.write_text(text.getvalue(), encoding="utf-8")


def read_scores(path: Path) -> Scores:
    """The table of a run.

    Raises:
        ValueError: It is not one.
        KeyError: It lacks a column.
    """
    with path.open(encoding="utf-8", newline="") as file:
        reader = csv.reader(file)
        header = next(reader, [])
        rows = list(reader)
    if any(len(row) != len(header) for row in rows):
        raise ValueError(f"scores.csv has rows that are not {len(header)} columns wide")
    columns = {name: [row[index] for row in rows] for index, name in enumerate(header)}
    number = {name: _floats(name, columns[name]) for name in _NUMBERS}
    sources = columns.get("source")
    keep = number["keep"] == 1
    verdict = columns.get("verdict", verdicts(keep, np.zeros_like(keep)))
    for row, (said, kept) in enumerate(zip(verdict, keep, strict=True)):
        if said not in ("unsure", "kept" if kept else "dropped"):
            told = f"{said[:40]!r}, and its keep is {kept:d}"
            raise ValueError(f"scores.csv: row {row + 1} is {told}")
    return Scores(
        ids=[_unguarded(word) for word in columns["episode"]],
        confidence=number["confidence"],
        votes=number["votes"].astype(np.int64),
        keep=keep,
        seed=number["seed"] == 1,
        returns=number["return"],
        lengths=number["length"].astype(np.int64),
        sources=None if sources is None else [_unguarded(word) for word in sources],
        borderline=number["borderline"] == 1,
        verdict=verdict,
        reason=columns.get("reason", [""] * len(rows)),
    )


def _guarded(word: object) -> str:
    """A word from the data, made harmless for spreadsheets."""
    text = str(word)
    return f"'{text}" if _formula(text) else text


def _unguarded(word: str) -> str:
    return word[1:] if word.startswith("'") and _formula(word) else word


def _formula(text: str) -> bool:
    """Whether a word is a formula, or one that is guarded already: it is guarded once more."""
    return text.lstrip("'").lstrip().startswith(_FORMULA)


def _number(value: float) -> str:
    return repr(float(value)) if np.isfinite(value) else ""


def _floats(name: str, words: list[str]) -> Floats:
    """A column of numbers; what is none is named, for runs have empty cells in its place."""
    values = np.array([float(word) if word else np.nan for word in words], dtype=np.float64)
    lacks = np.array([not word and name in _MAY_LACK for word in words], dtype=np.bool_)
    wrong, told = ~np.isfinite(values) & ~lacks, "a number"
    if name in _WHOLE and not wrong.any():
        wrong, told = (values < 0) | (values > _FARTHEST) | (values % 1 != 0), "a whole number"
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"scores.csv: {name} of row {row + 1} is {words[row]!r}, not {told}")
    return values


def _bits(mask: Mask) -> list[str]:
    return ["1" if value else "0" for value in mask]
