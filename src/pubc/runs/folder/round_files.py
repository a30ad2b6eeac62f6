"""The rounds of a run on disk: a line in rounds.jsonl and a file of arrays for each."""

from __future__ import annotations

import csv
import hashlib
import json
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.formats.core.findings import Findings
from pubc.formats.npz_archive import load_arrays
from pubc.pu.judge import Cut, Training, Verdict
from pubc.pu.rounds import Round
from pubc.storage import atomic_file, hash_file, parse_json

__all__ = ["UNREADABLE", "read_rounds", "save_round", "sealed_lines", "stored_arrays"]

UNREADABLE = (
    KeyError,
    ValueError,
    TypeError,
    IndexError,
    AttributeError,
    OverflowError,
    EOFError,
    OSError,
    RecursionError,
    MemoryError,
    NotImplementedError,
    csv.Error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What reading the damaged files of a run can raise."""

_EVIDENCE = ("history", "seed_history", "first", "seed_first")
_SIDES = ("positive", "rest")
_LINES = "rounds.jsonl"
_NOBODY = np.zeros(0, dtype=np.bool_)
_DIGEST, _QUESTION, _SEAL = "sha256", "question", "seal"
"""No manifest speaks for the rounds of a run that is not finished, so each line speaks for its
arrays, for its run and for itself. Lines of earlier versions have none of these."""


def save_round(folder: Path, done: Round, question: str) -> None:
    """Keep a finished round: its line says whose round it is, and what its arrays will be.

    The arrays get their name last: until then the line counts for nothing.

    Raises:
        DataError: The lines before it are not as they were written.
        UsageError: Something is where its arrays go.
        EnvironmentFailure: The disk said no.
    """
    name = _arrays_name(done.number)
    (folder / "rounds").mkdir(exist_ok=True)
    verdict, cut = done.verdict, done.cut
    sides = verdict.split or (_NOBODY, _NOBODY)
    arrays = {
        "confidence": verdict.confidence,
        "seed_confidence": verdict.seed_confidence,
        "votes": done.votes,
        "selected": done.selected,
        **{key: getattr(cut, key) for key in ("centres", "counts", "curve")},
        **{key: getattr(verdict, key) for key in _EVIDENCE},
        **dict(zip(_SIDES, sides, strict=True)),
    }
    with atomic_file(folder / name) as new:
        with new.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        line = {
            "round": done.number,
            "threshold": cut.threshold,
            "reason": cut.reason,
            "cut_status": cut.status,
            "evidence": cut.evidence,
            "attempt": done.attempt,
            "held_out": verdict.held_out,
            "status": done.status,
            "kept": done.kept,
            "changed": done.changed,
            "arrays": name,
            "training": [
                {"network": t.network, "loss": list(t.loss), "updates": t.updates}
                for t in verdict.training
            ],
            _DIGEST: hash_file(new),
            _QUESTION: question,
        }
        _write_lines(folder, [*_earlier(folder, done.number), {**line, _SEAL: _seal(line)}])


def _earlier(folder: Path, number: int) -> list[dict[str, Any]]:
    """The lines before a round; one of its own that a kill left without arrays goes."""
    try:
        return sealed_lines(folder)[: number - 1]
    except UNREADABLE as error:
        raise _unreadable(folder, error, number) from None


def _write_lines(folder: Path, lines: Sequence[dict[str, Any]]) -> None:
    text = "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)
    with atomic_file(folder / _LINES, overwrite=True) as new:
        new.write_text(text, encoding="utf-8")


def sealed_lines(folder: Path) -> list[dict[str, Any]]:
    """The lines of rounds.jsonl, if every one of them is as it was written.

    Raises:
        ValueError: One is not, or is half a line, which pubc never leaves.
        KeyError: One lacks something.
    """
    path = folder / _LINES
    if not path.exists():
        return []
    data = path.read_bytes()
    lines = [parse_json(line) for line in data.split(b"\n")[:-1]]
    if not data.endswith(b"\n") or any(line[_SEAL] != _seal(line) for line in lines):
        raise ValueError("a line is not as pubc wrote it: its seal does not fit")
    return lines


def read_rounds(folder: Path, trajectories: int, question: str | None = None) -> list[Round]:
    """The rounds that are finished, in order.

    Args:
        folder: The run.
        trajectories: How many each round judged.
        question: Where no manifest speaks for the run: what it asks, and its rounds must.

    Raises:
        DataError: A round's arrays do not fit its line or the number of trajectories, or either
            was changed since.
    """
    path = folder / _LINES
    if not path.exists():
        return []
    found: list[Round] = []
    lines = _whole_lines(path)
    for number, line in enumerate(lines, 1):
        try:
            told = parse_json(line)
            last = question is not None and number == len(lines)
            if last and not (folder / _arrays_name(number)).exists():
                break  # killed before the arrays had their name
            found.append(_round(folder, told, number, trajectories, question))
        except UNREADABLE as error:
            raise _unreadable(folder, error, number) from None
    return found


def _unreadable(folder: Path, error: Exception, number: int) -> DataError:
    return DataError(
        f"{folder / _LINES}: line {number} cannot be read back ({type(error).__name__}: {error}). "
        f"`pubc verify {folder}` says which file was changed; if the run is not finished, move it "
        "away and begin anew.",
        code="bad_round",
        index=number,
    )


def _round(
    folder: Path, line: dict[str, Any], number: int, trajectories: int, question: str | None
) -> Round:
    name = _arrays_name(number)
    if question not in (None, line.get(_QUESTION)):
        raise ValueError("it is a round of another run")
    if line["round"] != number or line["arrays"] != name:
        raise ValueError(f"expected round {number}")
    arrays = stored_arrays(folder / name)
    for key in ("selected", "votes", "confidence"):
        if arrays[key].shape[-1:] != (trajectories,):
            raise ValueError(f"{key} of shape {arrays[key].shape} for {trajectories}")
    sides = tuple(arrays.get(key, _NOBODY) for key in _SIDES)
    verdict = Verdict(
        arrays["confidence"],
        arrays["seed_confidence"],
        tuple(
            Training(str(t["network"]), tuple(map(float, t["loss"])), int(t["updates"]))
            for t in line["training"]
        ),
        held_out=bool(line.get("held_out")),
        split=(sides[0], sides[1]) if sides[0].size else None,
        **{key: arrays[key] for key in _EVIDENCE if key in arrays},
    )
    drawn = {key: arrays[key] for key in ("centres", "counts", "curve")}
    threshold = None if line["threshold"] is None else float(line["threshold"])
    _check_unchanged(folder / name, line)
    return Round(
        number=number,
        verdict=verdict,
        cut=Cut(threshold, str(line["reason"]), line["cut_status"], line.get("evidence"), **drawn),
        votes=arrays["votes"],
        selected=arrays["selected"].astype(np.bool_),
        changed=float(line["changed"]),
        status=line["status"],
        attempt=int(line.get("attempt") or 0),
    )


def _check_unchanged(arrays: Path, line: dict[str, Any]) -> None:
    if line.get(_DIGEST) not in (None, hash_file(arrays)):
        raise ValueError(f"{arrays} is not as pubc wrote it: its SHA-256 does not fit")
    if line.get(_SEAL) not in (None, _seal(line)):
        raise ValueError("the line is not as pubc wrote it: its seal does not fit")


def _seal(line: dict[str, Any]) -> str:
    """SHA-256 of all else that a line says."""
    said = {name: value for name, value in line.items() if name != _SEAL}
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def stored_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of an archive of ours.

    Raises:
        ValueError: It is packed, as ours never are: a small file could fill all memory.
        DataError: It is not a whole archive, or an array is larger than the file.
    """
    with path.open("rb") as raw, zipfile.ZipFile(raw) as archive:
        if any(entry.compress_type != zipfile.ZIP_STORED for entry in archive.infolist()):
            raise ValueError(f"{path.name} is compressed, which no file of a run is")
    return load_arrays(path, Findings(path))


def _arrays_name(number: int) -> str:
    return f"rounds/round-{number:03d}.npz"


def _whole_lines(path: Path) -> Sequence[bytes]:
    """Lines that end in a newline; a torn last one was never acknowledged."""
    data = path.read_bytes()
    return data[: data.rfind(b"\n") + 1].split(b"\n")[:-1]
