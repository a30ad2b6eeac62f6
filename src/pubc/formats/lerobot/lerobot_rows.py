"""The frames of a LeRobot dataset, grouped by what each frame says of itself.

File offsets in the metadata are often stale, so rows are grouped by their `episode_index`
and ordered by their `frame_index`. What the metadata says of them is compared only then, by
`pubc.formats.lerobot.lerobot_check`.
"""

from __future__ import annotations

from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.formats.lerobot.lerobot_meta import Episodes, Info
from pubc.formats.parquet.parquet_read import OpenAhead, is_numeric, read_table, to_numpy
from pubc.trajectory import Array

__all__ = ["Rows", "read_rows"]

Integers = NDArray[np.int64]


@dataclass(slots=True)
class Rows:
    """Frames in order of episode and frame."""

    columns: dict[str, Array]
    """Numeric columns, one row per frame."""
    numbers: Integers
    """`episode_index` of each episode, ascending, shape (episodes,)."""
    starts: Integers
    """First row of each episode, shape (episodes,)."""
    lengths: Integers
    """Frames of each episode, shape (episodes,)."""
    files: dict[Path, set[int]] = field(default_factory=dict)
    """Files that were read, with the episodes each holds frames of."""
    lost: list[int] = field(default_factory=list)
    """Episodes whose file is missing or unreadable and was left out."""
    expected: dict[Path, list[int]] = field(default_factory=dict)
    """Files that should hold frames, with the episodes of each."""


def read_rows(
    info: Info,
    data: OpenAhead,
    episodes: Episodes | None,
    wanted: set[str] | None,
    options: ReadOptions,
    findings: Findings,
) -> Rows:
    """Read the data files and group their rows by episode.

    Args:
        info: What the dataset says of itself.
        data: Its data files.
        episodes: Its list of episodes, to know which files should be there.
        wanted: Columns to read; every numeric one where omitted.
        options: What to do about files that cannot be read.
        findings: Where problems are recorded.
    """
    expected = {} if episodes is None else episodes.expected_files(info)
    lost = _missing(info, expected, set(data.paths), options, findings)
    skipped = {name for name, about in info.features.items() if _is_image(about)}
    parts: list[dict[str, Array]] = []
    files: dict[Path, set[int]] = {}
    left: dict[str, str] = {}
    for file, opened in data:
        try:
            part = _read_file(file, opened, wanted, skipped, left)
        except DataError as error:
            lost += _unreadable(info, file, expected.get(file, []), error, options, findings)
            continue
        _check_columns(info, file, part, parts, findings)
        parts.append(part)
        files[file] = _distinct(part["episode_index"])
    if not parts:
        findings.refuse("empty", f"no data file fits {info.data_path!r}.", field="data_path")
    for name in sorted(skipped):
        findings.notice("image_left_out", f"{name} holds images or video; left out.", field=name)
    for name, kind in sorted(left.items()):
        findings.notice("column_left_out", f"{name} ({kind}) is no number; left out.", field=name)
    columns = {
        name: parts[0][name] if len(parts) == 1 else np.concatenate([p[name] for p in parts])
        for name in parts[0]
    }
    return replace(_group(columns, files, lost, findings), expected=expected)


def _is_image(about: dict[str, Any]) -> bool:
    return about.get("dtype") in ("image", "video")


def _read_file(
    file: Path,
    opened: Future[Any],
    wanted: set[str] | None,
    skipped: set[str],
    left: dict[str, str],
) -> dict[str, Array]:
    def take(name: str, kind: Any) -> bool:
        if name in skipped or (wanted is not None and name not in wanted):
            return False
        if not is_numeric(kind):
            left[name] = str(kind)[:60]
            return False
        return True

    table = read_table(file, take, opened=opened)
    return {name: to_numpy(file, table, name) for name in table.column_names}


def _check_columns(
    info: Info,
    file: Path,
    part: dict[str, Array],
    parts: list[dict[str, Array]],
    findings: Findings,
) -> None:
    place = file.relative_to(info.root).as_posix()
    for name in ("episode_index", "frame_index"):
        column = part.get(name)
        if column is None or (len(column) and (column.ndim != 1 or column.dtype.kind not in "iu")):
            findings.refuse(
                "missing_key", f"{place}: every frame needs this whole number.", field=name
            )
    first = parts[0] if parts else part
    if set(first) != set(part):
        name = sorted(set(first) ^ set(part))[0]
        findings.refuse("missing_key", f"{place}: not every data file has this column.", field=name)
    for name, column in part.items():
        if len(column) and len(first[name]) and column.shape[1:] != first[name].shape[1:]:
            findings.refuse(
                "bad_shape",
                f"{place}: rows of shape {column.shape[1:]}, elsewhere {first[name].shape[1:]}.",
                field=name,
            )


def _distinct(column: Array) -> set[int]:
    changes = np.flatnonzero(column[1:] != column[:-1]) + 1
    return {*column[:1].tolist(), *column[changes].tolist()}


def _missing(
    info: Info,
    expected: dict[Path, list[int]],
    present: set[Path],
    options: ReadOptions,
    findings: Findings,
) -> list[int]:
    missing = [file for file in expected if file not in present]
    if not missing:
        return []
    lost = sorted(number for file in missing for number in expected[file])
    names = ", ".join(file.relative_to(info.root).as_posix() for file in missing[:5])
    said = (
        f"{len(missing):,} data files are missing ({names}{', ...' if missing[5:] else ''}) "
        f"with {len(lost):,} episodes, first {lost[0]}"
    )
    if options.trust != "data" and not options.skip_bad_files:
        findings.refuse(
            "missing_file",
            said + ". Finish the download, or go on without them: --skip-bad-files.",
            field="data",
            index=lost[0],
            count=len(missing),
        )
    findings.repair("missing_file", said + "; left out.", field="data", count=len(missing))
    return lost


def _unreadable(
    info: Info,
    file: Path,
    held: list[int],
    error: DataError,
    options: ReadOptions,
    findings: Findings,
) -> list[int]:
    place = file.relative_to(info.root).as_posix()
    words = ", ".join(map(str, held[:20])) + (", ..." if held[20:] else "")
    said = f"{error} It should hold episodes {words or 'unknown'}"
    if not options.skip_bad_files:
        findings.refuse(
            error.code,
            f"{said}. --skip-bad-files goes on without it.",
            field=error.field or place,
            index=held[0] if held else None,
            count=len(held) or None,
        )
    findings.repair(error.code, f"{said}; left out.", field=place, count=max(1, len(held)))
    return held


def _group(
    columns: dict[str, Array],
    files: dict[Path, set[int]],
    lost: list[int],
    findings: Findings,
) -> Rows:
    episode, frame = columns["episode_index"], columns["frame_index"]
    if not len(episode):
        findings.refuse("empty", "the data files hold no frame.", field="data")
    starts = _starts(episode)
    later = frame[1:] > frame[:-1]
    later[starts[1:] - 1] = episode[starts[1:]] > episode[starts[1:] - 1]
    if not later.all():
        order = np.lexsort((frame, episode))
        columns = {name: column[order] for name, column in columns.items()}
        episode, frame = columns["episode_index"], columns["frame_index"]
        starts = _starts(episode)
        _refuse_twice(episode, frame, findings)
    lengths = np.diff(np.append(starts, len(episode))).astype(np.int64)
    numbers = episode[starts].astype(np.int64)
    return Rows(columns, numbers, starts, lengths, files, lost)


def _starts(episode: Array) -> Integers:
    """Rows where another episode begins."""
    changes = np.flatnonzero(episode[1:] != episode[:-1]) + 1
    return np.concatenate([[0], changes]).astype(np.int64)


def _refuse_twice(episode: Array, frame: Array, findings: Findings) -> None:
    twice = (episode[1:] == episode[:-1]) & (frame[1:] == frame[:-1])
    if twice.any():
        row = int(np.argmax(twice))
        findings.refuse(
            "duplicate_frames",
            f"{int(twice.sum()):,} frames occur twice, first frame {int(frame[row])} of episode "
            f"{int(episode[row])}: a file may have been copied into the dataset twice.",
            field="frame_index",
            index=(int(episode[row]), int(frame[row])),
            count=int(twice.sum()),
        )
