"""What people said about trajectories: good or bad, the whole of one or a stretch of its steps.

`pubc review` writes labels.json at every mark; `pubc filter --labels` takes its good parts as
seeds and its bad parts as known to be no expert's. Flags of LeRobot's visualiser are read too:
the list that it copies, the list that it stores, or the command that it prints.

A whole mark covers every step of its trajectory, a stretch the steps from `start` up to but not
with `stop`; where marks overlap, the later one in the file counts. So "good, but for steps 40 to
60" is a whole mark followed by a stretch.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError, EnvironmentFailure, UnknownNameError
from pubc.storage import parse_json, write_json
from pubc.trajectory import TrajectorySet

__all__ = ["Label", "Labels", "Mark", "Parts", "parts_of", "read_labels", "save_labels"]

Label = Literal["good", "bad"]
_LABELS: tuple[str, ...] = get_args(Label)
_FIELDS = {"episode", "label", "start", "stop", "foretold"}
_LIMIT = 64 << 20
_MOST_MARKS = 1_000_000
_FARTHEST = 2**53
"""Beyond this, numbers of JSON are no longer exact in every program that reads it."""
_LONGEST_NAME = 10_000
_SHORTEST = 2
"""Steps that a stretch needs to show anything about how somebody acts."""
_INDICES = re.compile(r"episode_indices[\s=]+[\"']?\[([\d,\s]*)\]")
_NUMBERS = re.compile(r"\s*\d+(\s*[,\s]\s*\d+)*\s*,?\s*")


@dataclass(frozen=True, slots=True)
class Mark:
    """One thing that somebody said."""

    episode: str
    """Id of the trajectory."""
    label: Label
    """What they said."""
    start: int | None = None
    """First step of the stretch; None for the whole trajectory."""
    stop: int | None = None
    """The step after its last one."""
    foretold: Label | None = None
    """What a run had said of the whole trajectory before anybody marked it."""

    @property
    def whole(self) -> bool:
        """Whether the mark is about the whole trajectory."""
        return self.start is None

    def document(self) -> dict[str, Any]:
        """The mark as a JSON object."""
        found: dict[str, Any] = {"episode": self.episode, "label": self.label}
        if not self.whole:
            found |= {"start": self.start, "stop": self.stop}
        if self.foretold is not None:
            found["foretold"] = self.foretold
        return found


@dataclass(frozen=True, slots=True)
class Labels:
    """Everything that was said, in the order in which it counts."""

    marks: tuple[Mark, ...] = ()
    """Later ones count where they overlap earlier ones."""
    flags: bool = field(default=False, compare=False)
    """Whether they came from LeRobot's visualiser instead of `pubc review`."""

    def __len__(self) -> int:
        return len(self.marks)

    @property
    def digest(self) -> str:
        """SHA-256 of all marks in their order."""
        told = json.dumps([mark.document() for mark in self.marks], sort_keys=True)
        return hashlib.sha256(told.encode()).hexdigest()

    @property
    def foretold(self) -> tuple[bool, ...]:
        """For each mark that a run had said something of before, whether it was right."""
        return tuple(m.foretold == m.label for m in self.marks if m.whole and m.foretold)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What labels mean in a set: pieces of its trajectories."""

    good: TrajectorySet
    """Pieces that are the expert's: seeds."""
    bad: TrajectorySet
    """Pieces that are not."""
    good_positions: NDArray[np.int64]
    """Trajectories that are good from the first step to the last."""
    bad_positions: NDArray[np.int64]
    """Trajectories that are bad from the first step to the last."""
    bad_stretches: tuple[tuple[int, int, int], ...]
    """Bad steps of all others: position of the trajectory, first step, the step after the last."""


def read_labels(path: Path) -> Labels:
    """Read labels.json, or the flags of LeRobot's visualiser, which are bad ones.

    Raises:
        DataError: It is neither.
        EnvironmentFailure: It may not be read.
    """
    try:
        if path.exists() and not path.is_file():
            raise _bad(path, "is not a file.")  # a device or a pipe may never end
        if path.stat().st_size > _LIMIT:
            raise _bad(path, "is too large to be a file of labels.")
        text = path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise _bad(path, "no such file. `pubc review DATA` writes one.") from None
    except UnicodeDecodeError:
        raise _bad(path, "expected labels as JSON, found something that is not text.") from None
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {error.strerror}.") from error
    try:
        document = parse_json(text)
    except (ValueError, RecursionError):
        return Labels(_flags(path, text), flags=True)
    if isinstance(document, int) and not isinstance(document, bool):
        document = [document]
    if isinstance(document, list):
        return Labels(_flag_list(path, document), flags=True)
    return Labels(_own(path, document))


def save_labels(path: Path, labels: Labels, data: Path | None = None) -> None:
    """Write labels.json, whole or not at all."""
    document = {
        "kind": "labels",
        "version": 1,
        "data": None if data is None else str(data),
        "marks": [mark.document() for mark in labels.marks],
    }
    write_json(path, document, overwrite=True)


def parts_of(labels: Labels, trajectories: TrajectorySet) -> Parts:
    """Find what was marked in a set.

    Raises:
        UnknownNameError: A marked trajectory is not in the set.
        DataError: A stretch reaches beyond the end of its trajectory.
    """
    position = {str(name): at for at, name in enumerate(trajectories.ids)}
    steps: dict[int, NDArray[np.int8]] = {}
    for mark in labels.marks:
        at = position.get(mark.episode)
        if at is None:
            raise UnknownNameError("trajectory", mark.episode, list(position)[:3])
        length = int(trajectories.lengths[at])
        if mark.stop is not None and mark.stop > length:
            raise DataError(
                f"The labels mark steps {mark.start} to {mark.stop} of trajectory "
                f"{mark.episode}, which has {length:,} steps. Do they belong to this dataset?",
                code="bad_labels",
                field="stop",
            )
        values = steps.setdefault(at, np.zeros(length, dtype=np.int8))
        values[mark.start : mark.stop] = 1 if mark.label == "good" else -1
    whole = {
        side: np.array([at for at, v in sorted(steps.items()) if (v == side).all()], dtype=np.int64)
        for side in (1, -1)
    }
    good, bad = (_pieces(trajectories, steps, side) for side in (1, -1))
    stretches = tuple(
        (at, start, stop)
        for at, values in sorted(steps.items())
        if not (values == -1).all()
        for start, stop in _runs(values == -1)
    )
    return Parts(good, bad, whole[1], whole[-1], stretches)


def _runs(flags: NDArray[np.bool_]) -> Iterator[tuple[int, int]]:
    """First step and the step after the last of every unbroken run."""
    padded = np.concatenate([[False], flags, [False]])
    edges = np.flatnonzero(padded[1:] != padded[:-1]).tolist()
    yield from zip(edges[::2], edges[1::2], strict=True)


def _pieces(
    trajectories: TrajectorySet, steps: dict[int, NDArray[np.int8]], side: int
) -> TrajectorySet:
    """Every unbroken run of steps with one label, as a trajectory over the same columns."""
    owner, first, sizes = [], [], []
    for at, values in sorted(steps.items()):
        for start, stop in _runs(values == side):
            if stop - start >= _SHORTEST or stop - start == len(values):
                owner.append(at)
                first.append(int(trajectories.starts[at]) + start)
                sizes.append(stop - start)
    chosen = trajectories[np.array(owner, dtype=np.int64)]
    # A piece that ends early does not end with the observation after the last action.
    cut = np.asarray(sizes, dtype=np.int64) != chosen.lengths
    has = chosen.has_final
    return replace(
        chosen,
        starts=np.asarray(first, dtype=np.int64),
        lengths=np.asarray(sizes, dtype=np.int64),
        has_final=None if has is None else has & ~cut,
    )


def _own(path: Path, document: Any) -> tuple[Mark, ...]:
    if not isinstance(document, dict) or document.get("kind") != "labels":
        raise _bad(path, 'expected labels of `pubc review` (kind "labels").')
    if document.get("version") != 1:
        raise _bad(path, f"expected version 1 of labels, found {document.get('version')!r}.")
    unknown = set(document) - {"kind", "version", "data", "marks"}
    if unknown:
        # It would be lost when the marks are saved.
        raise _bad(path, f"labels have no {min(unknown)[:40]!r} beside their marks.")
    marks = document.get("marks")
    if not isinstance(marks, list) or len(marks) > _MOST_MARKS:
        raise _bad(path, f"expected `marks` to be a list of at most {_MOST_MARKS:,} marks.")
    return tuple(_mark(path, number, entry) for number, entry in enumerate(marks))


def _mark(path: Path, number: int, entry: Any) -> Mark:
    def wrong(what: str) -> DataError:
        return _bad(path, f"mark {number}: {what}", index=number)

    if not isinstance(entry, dict) or not {"episode", "label"} <= set(entry) <= _FIELDS:
        raise wrong("expected an object with episode, label, and for a stretch start and stop.")
    episode, label = entry["episode"], entry["label"]
    if _is_step(episode):
        episode = str(episode)
    if not isinstance(episode, str) or len(episode) > _LONGEST_NAME:
        raise wrong("expected `episode` to be the id of a trajectory.")
    if label not in _LABELS:
        raise wrong(f"expected `label` to be good or bad, found {str(label)[:40]!r}.")
    start, stop = entry.get("start"), entry.get("stop")
    if (start is None) != (stop is None):
        raise wrong("start and stop come together or not at all.")
    if start is not None and not (_is_step(start) and _is_step(stop) and start < stop):
        raise wrong("expected steps with 0 <= start < stop.")
    foretold = entry.get("foretold")
    if foretold is not None and (foretold not in _LABELS or start is not None):
        raise wrong("expected `foretold` to be good or bad, and only of a whole trajectory.")
    return Mark(episode, cast(Label, label), start, stop, cast(Label | None, foretold))


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _FARTHEST


def _flag_list(path: Path, numbers: Sequence[Any]) -> tuple[Mark, ...]:
    if len(numbers) > _MOST_MARKS or not all(map(_is_step, numbers)):
        raise _bad(path, "expected a list of episode numbers, as LeRobot's visualiser copies it.")
    return _as_bad(numbers)


def _flags(path: Path, text: str) -> tuple[Mark, ...]:
    """Flags as words: a list of numbers, or the command that deletes those episodes."""
    commands = _INDICES.findall(text)
    if not commands and (not _NUMBERS.fullmatch(text)):
        raise _bad(
            path,
            "expected labels.json of `pubc review`, or the flags of LeRobot's visualiser "
            "(numbers such as 3, 17 or its delete command).",
        )
    found = re.findall(r"\d+", " ".join(commands) if commands else text)
    if len(found) > _MOST_MARKS or any(len(word) > 15 for word in found):
        raise _bad(path, "expected episode numbers.")
    return _as_bad(map(int, found))


def _as_bad(numbers: Iterable[int]) -> tuple[Mark, ...]:
    return tuple(Mark(str(number), "bad") for number in dict.fromkeys(numbers))


def _bad(path: Path, message: str, index: int | None = None) -> DataError:
    return DataError(f"{path}: {message}", code="bad_labels", index=index)
