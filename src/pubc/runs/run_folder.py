"""A run on disk: what is written when, and how an interrupted run finds its way back.

docs/run-folder.md describes the files. Order is what makes a kill harmless: networks are
shelved as they finish, a round's arrays come before its line in rounds.jsonl, results come
after all rounds, and the manifest comes last.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.pu.algorithm import Round
from pubc.pu.judge import Training, Verdict
from pubc.pu.paper.threshold import Cut
from pubc.runs.find_expert import Result
from pubc.storage import (
    MANIFEST,
    Draft,
    append_line,
    atomic_file,
    read_json,
    read_manifest,
    seal,
    write_json,
)
from pubc.trajectory import TrajectorySet

__all__ = ["DRAFT", "KIND", "RunFolder", "keep_list", "plain_table", "score_table", "write_table"]

KIND = "filter"
DRAFT = Draft(
    "run.json",
    (
        "run.json", "keep.json", "scores.csv", "rounds.jsonl", "rounds/round-*.npz",
        "classifiers/*", "shards/*", "kept.*", "masked.hdf5", "steps.npy",
        "borderline_steps.npz", "report.html", "report.md", "report.json",
    ),
)  # fmt: skip
"""How an unfinished run is known; docs/run-folder.md lists its files."""
_ARRAYS = (
    "confidence", "seed_confidence", "votes", "selected", "centres", "counts", "curve",
    "history", "seed_history", "first", "seed_first", "positive", "rest",
)  # fmt: skip
_NOBODY = np.zeros(0, dtype=np.bool_)
_FORMULA = ("=", "+", "-", "@")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The folder of one run."""

    path: Path
    """Where it is."""

    @property
    def shelf(self) -> Path:
        """Where networks are kept."""
        return self.path / "classifiers"

    @property
    def shards(self) -> Path:
        """Where workers of an engine leave what they found, until the rounds are over."""
        return self.path / "shards"

    @property
    def finished(self) -> bool:
        """Whether the run came to its end."""
        return (self.path / MANIFEST).exists()

    def begin(self, document: Mapping[str, Any]) -> None:
        """Make the folder and write down what is to be done."""
        self.path.mkdir(parents=True, exist_ok=True)
        write_json(self.path / "run.json", document, overwrite=True)

    def read(self) -> dict[str, Any]:
        """What run.json says.

        Raises:
            DataError: This is not the folder of a filter run.
        """
        document = read_json(self.path / "run.json")
        if document.get("kind") != KIND:
            raise DataError(
                f"{self.path}: expected the folder of a filter run, found kind "
                f"{document.get('kind')!r} in its run.json.",
                code="wrong_kind",
                field="kind",
            )
        return document

    def check_finished(self) -> dict[str, Any]:
        """What run.json says of a finished run.

        Raises:
            DataError: It is not finished, or not a filter run.
        """
        document = self.read()
        if not self.finished:
            raise DataError(
                f"{self.path}: the run is not finished. Go on with: "
                f"pubc filter --resume {self.path}",
                code="unfinished",
            )
        read_manifest(self.path, kind=KIND)
        return document

    def save_round(self, done: Round) -> None:
        """Keep a finished round: its arrays first, then its line."""
        name = f"rounds/round-{done.number:03d}.npz"
        (self.path / "rounds").mkdir(exist_ok=True)
        arrays = {
            "confidence": done.verdict.confidence,
            "seed_confidence": done.verdict.seed_confidence,
            "votes": done.votes,
            "selected": done.selected,
            "centres": done.cut.centres,
            "counts": done.cut.counts,
            "curve": done.cut.curve,
            "history": done.verdict.history,
            "seed_history": done.verdict.seed_history,
            "first": done.verdict.first,
            "seed_first": done.verdict.seed_first,
            "positive": _NOBODY if done.verdict.split is None else done.verdict.split[0],
            "rest": _NOBODY if done.verdict.split is None else done.verdict.split[1],
        }
        with atomic_file(self.path / name, overwrite=True) as new, new.open("wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        append_line(
            self.path / "rounds.jsonl",
            {
                "round": done.number,
                "threshold": done.cut.threshold,
                "reason": done.cut.reason,
                "cut_status": done.cut.status,
                "evidence": done.cut.evidence,
                "attempt": done.attempt,
                "held_out": done.verdict.held_out,
                "told": done.verdict.told,
                "status": done.status,
                "kept": int(done.selected.sum()),
                "changed": done.changed,
                "arrays": name,
                "training": [
                    {"network": t.network, "loss": list(t.loss), "updates": t.updates}
                    for t in done.verdict.training
                ],
            },
            own=True,
        )

    def rounds(self, trajectories: int) -> list[Round]:
        """The rounds that are finished, in order.

        Raises:
            DataError: A round's arrays do not fit its line or the number of trajectories.
        """
        path = self.path / "rounds.jsonl"
        if not path.exists():
            return []
        found = []
        for number, line in enumerate(_whole_lines(path), 1):
            try:
                found.append(self._round(json.loads(line), number, trajectories))
            except (ValueError, KeyError, TypeError, OSError) as error:
                raise DataError(
                    f"{path}: line {number} cannot be read back ({error}). Start the run anew "
                    "with --force.",
                    code="bad_round",
                    index=number,
                ) from None
        return found

    def _round(self, line: dict[str, Any], number: int, trajectories: int) -> Round:
        name = f"rounds/round-{number:03d}.npz"
        if line["round"] != number or line["arrays"] != name:
            raise ValueError(f"expected round {number}")
        with np.load(self.path / name, allow_pickle=False) as file:
            arrays = {key: file[key] for key in _ARRAYS}
        if arrays["selected"].shape != (trajectories,):
            raise ValueError(f"{arrays['selected'].shape} selections, {trajectories} trajectories")
        training = tuple(
            Training(str(t["network"]), tuple(map(float, t["loss"])), int(t["updates"]))
            for t in line["training"]
        )
        drawn = {key: arrays[key] for key in ("centres", "counts", "curve")}
        cut = Cut(line["threshold"], line["reason"], line["cut_status"], line["evidence"], **drawn)
        sides = arrays["positive"], arrays["rest"]
        verdict = Verdict(
            arrays["confidence"],
            arrays["seed_confidence"],
            training,
            held_out=bool(line["held_out"]),
            split=sides if sides[0].size else None,
            history=arrays["history"],
            seed_history=arrays["seed_history"],
            first=arrays["first"],
            seed_first=arrays["seed_first"],
            told=bool(line["told"]),
        )
        return Round(
            number=number,
            verdict=verdict,
            cut=cut,
            votes=arrays["votes"],
            selected=arrays["selected"],
            changed=float(line["changed"]),
            status=line["status"],
            attempt=int(line["attempt"]),
        )

    def write_steps(self, blocks: Iterator[NDArray[np.float32]], steps: int) -> None:
        """Stream a value per step to steps.npy."""
        header = {"descr": "<f4", "fortran_order": False, "shape": (steps,)}
        with atomic_file(self.path / "steps.npy", overwrite=True) as new, new.open("wb") as file:
            npy.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(np.ascontiguousarray(block, dtype="<f4").data)

    def write_borderline(
        self, trajectories: TrajectorySet, positions: NDArray[np.int64], values: Iterator[Any]
    ) -> None:
        """Keep the steps of a few unsure trajectories, so that a report can show where."""
        flat = np.concatenate(list(values)) if len(trajectories) else np.zeros(0, np.float32)
        path = self.path / "borderline_steps.npz"
        with atomic_file(path, overwrite=True) as new, new.open("wb") as file:
            np.savez(file, allow_pickle=False, positions=positions, values=flat)

    def finish(
        self, document: Mapping[str, Any], report: Callable[[], object] = lambda: None
    ) -> None:
        """Write the last word, let a report be drawn of it, and seal the folder."""
        write_json(self.path / "run.json", document, overwrite=True)
        report()
        seal(self.path, kind=KIND)


def keep_list(mixed: TrajectorySet, mask: NDArray[np.bool_]) -> dict[str, list[int] | list[str]]:
    """keep.json: ids of the kept, as integers where all ids of the set are."""
    kept = [str(name) for name in mixed.ids[mask]]
    if all(name.isascii() and name.isdigit() for name in map(str, mixed.ids)):
        return {"episodes": [int(name) for name in kept]}
    return {"episodes": kept}


def score_table(mixed: TrajectorySet, result: Result) -> list[list[str]]:
    """scores.csv: a header and one row per trajectory."""
    more = {"seed": result.seeds, "borderline": result.quality.borderline}
    return plain_table(mixed, result.confidence, result.votes, result.mask, more)


def plain_table(
    trajectories: TrajectorySet,
    confidence: NDArray[np.float64],
    votes: NDArray[np.int64],
    keep: NDArray[np.bool_],
    more: Mapping[str, NDArray[np.bool_]] | None = None,
) -> list[list[str]]:
    """A header and one row per trajectory, as text that is safe in a spreadsheet."""
    marks = more or {}
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
    return [list(columns), *(list(row) for row in zip(*columns.values(), strict=True))]


def write_table(path: Path, rows: Sequence[Sequence[str]], overwrite: bool) -> None:
    """Write rows of text as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    with atomic_file(path, overwrite=overwrite) as new:
        new.write_text(text.getvalue(), encoding="utf-8")


def _guarded(word: object) -> str:
    """A word from the data, made harmless for spreadsheets."""
    text = str(word)
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def _number(value: float) -> str:
    return repr(float(value)) if np.isfinite(value) else ""


def _bits(mask: NDArray[np.bool_]) -> list[str]:
    return ["1" if value else "0" for value in mask]


def _whole_lines(path: Path) -> list[str]:
    """Lines that end in a newline; a torn last one was never acknowledged."""
    text = path.read_text(encoding="utf-8")
    return text[: text.rfind("\n") + 1].splitlines()
