"""What a LeRobot dataset says about itself, read without believing it.

`meta/info.json` names the files through path templates; `meta/episodes` (v3.0) or
`meta/episodes.jsonl` (v2.1) lists the episodes. Templates are filled by a formatter of our
own that knows integers and a few names, because `str.format` on a stranger's text can reach
any attribute; every path must stay inside the dataset.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError, EnvironmentFailure
from pubc.formats.core.findings import Findings
from pubc.formats.lerobot.lerobot_paths import FIELD, NAMES, fill, inside, numbers_in
from pubc.formats.parquet.parquet_read import read_table, to_numpy
from pubc.storage import read_json

__all__ = [
    "DATA_PATHS",
    "INDEX",
    "Episodes",
    "Info",
    "read_episodes",
    "read_info",
    "read_lines",
    "read_tasks",
]

Integers = NDArray[np.int64]
DATA_PATHS = {
    "v3.0": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
    "v2.1": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
}
INDEX = ("timestamp", "frame_index", "episode_index", "index", "task_index")
"""The columns every LeRobot dataset has beside its features."""
_LINES_LIMIT = 1 << 30


@dataclass(frozen=True, slots=True)
class Info:
    """`meta/info.json`, checked."""

    root: Path
    """The dataset folder."""
    version: str
    """`v2.1` (also for v2.0, whose data lies the same way) or `v3.0`."""
    document: dict[str, Any]
    """All of it."""
    features: dict[str, dict[str, Any]]
    """Name to dtype and shape."""
    data_path: str
    """Template of the data files."""

    @property
    def videos(self) -> list[str]:
        """Features that live in video files."""
        return [name for name, about in self.features.items() if about.get("dtype") == "video"]

    def count(self, key: str) -> int | None:
        """A total that the file declares, if it does."""
        value = self.document.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def data_files(self) -> list[Path]:
        """Every data file on the disk, in the order of the numbers in its path."""
        pattern = FIELD.sub("*", self.data_path)
        found = [inside(self.root, file) for file in self.root.glob(pattern)]
        return sorted(found, key=numbers_in)

    def data_file(self, **numbers: int) -> Path:
        """Where a file should be; only files that `data_files` found are ever opened."""
        try:
            return self.root / fill(self.data_path, numbers)
        except DataError as error:
            raise DataError(f"{self.root}: {error}", code=error.code, field="data_path") from None


@dataclass(slots=True)
class Episodes:
    """The list of episodes in the metadata."""

    file: str
    """Where it stands, for messages."""
    numbers: Integers
    """`episode_index` of each, shape (episodes,)."""
    lengths: Integers
    """Frames of each, shape (episodes,)."""
    columns: dict[str, list[Any]] = field(default_factory=dict)
    """Whatever else the list says, one entry per episode."""

    def expected_files(self, info: Info) -> dict[Path, list[int]]:
        """Data files that should exist, with the episodes each should hold."""
        held: dict[tuple[Any, Any], list[int]] = {}
        # Python's own numbers: numpy's take ten times as long one by one.
        own, frames = self.numbers.tolist(), self.lengths.tolist()
        if info.version == "v2.1":
            size = max(1, info.count("chunks_size") or 1000)
            names = ("episode_chunk", "episode_index")
            places: Any = ((number // size, number) for number in own)
        else:
            names = ("chunk_index", "file_index")
            none = [None] * len(own)
            places = zip(*(self.columns.get(f"data/{name}", none) for name in names), strict=True)
        for place, number, length in zip(places, own, frames, strict=True):
            if length and isinstance(place[0], int) and isinstance(place[1], int):
                held.setdefault(place, []).append(number)
        return {
            info.data_file(**dict(zip(names, place, strict=True))): numbers
            for place, numbers in held.items()
        }


def read_info(root: Path, findings: Findings) -> Info:
    """Read and check `meta/info.json`."""
    document = read_json(inside(root, root / "meta" / "info.json"))
    version = document.get("codebase_version")
    if version == "v2.0":
        version = "v2.1"
    if version not in DATA_PATHS:
        findings.refuse(
            "unknown_version",
            f"meta/info.json: pubc reads LeRobot v2.0, v2.1 and v3.0. Found {version!r}.",
            field="codebase_version",
        )
    features = document.get("features")
    if not isinstance(features, dict) or not all(isinstance(f, dict) for f in features.values()):
        findings.refuse("bad_metadata", "meta/info.json: no table of features.", field="features")
    template = document.get("data_path") or DATA_PATHS[version]
    try:
        fill(str(template), dict.fromkeys(NAMES - {"video_key"}, 0))
    except DataError as error:
        findings.refuse(error.code, f"meta/info.json: {error}", field="data_path")
    return Info(root, version, document, features, str(template))


def read_episodes(info: Info, findings: Findings, *, stats: bool = False) -> Episodes | None:
    """Read the list of episodes, every shard of it; None where there is none.

    Args:
        info: What the dataset says of itself.
        findings: Where refusals are spoken.
        stats: Read the statistics and video positions too; they are most of the file.
    """
    if info.version == "v2.1":
        return _read_lines(info, findings)
    shards = sorted((info.root / "meta" / "episodes").glob("**/*.parquet"), key=numbers_in)
    if not shards:
        return None
    columns: dict[str, list[Any]] = {}
    numbers, lengths = [], []
    rows = 0
    for shard in shards:
        table = read_table(
            inside(info.root, shard),
            lambda name, kind: stats or not name.startswith(("stats/", "videos/")),
        )
        for name in ("episode_index", "length"):
            if name not in table.column_names:
                findings.refuse("missing_key", f"{_place(info, shard)} has no column {name}.")
        numbers.append(to_numpy(shard, table, "episode_index"))
        lengths.append(to_numpy(shard, table, "length"))
        for name in table.column_names:
            columns.setdefault(name, [None] * rows).extend(table.column(name).to_pylist())
        rows += table.num_rows
        for values in columns.values():
            values.extend([None] * (rows - len(values)))
    return _episodes(
        "meta/episodes", np.concatenate(numbers), np.concatenate(lengths), columns, findings
    )


def _read_lines(info: Info, findings: Findings) -> Episodes | None:
    path = info.root / "meta" / "episodes.jsonl"
    if not path.exists():
        return None
    lines = read_lines(inside(info.root, path))
    names = {name for line in lines for name in line}
    columns = {name: [line.get(name) for line in lines] for name in sorted(names)}
    place = "meta/episodes.jsonl"
    return _episodes(
        place,
        _whole(columns.get("episode_index", []), place, "episode_index", findings),
        _whole(columns.get("length", []), place, "length", findings),
        columns,
        findings,
    )


def _whole(values: list[Any], file: str, name: str, findings: Findings) -> Integers:
    for line, value in enumerate(values):
        if not isinstance(value, int) or isinstance(value, bool) or abs(value) >= 2**62:
            findings.refuse(
                "bad_metadata", f"{file}: line {line + 1} has {value!r}.", field=name, index=line
            )
    return np.array(values, dtype=np.int64)


def _episodes(
    file: str, numbers: Any, lengths: Any, columns: dict[str, list[Any]], findings: Findings
) -> Episodes:
    for name, values in (("episode_index", numbers), ("length", lengths)):
        if values.ndim != 1 or (len(values) and values.dtype.kind not in "iu"):
            findings.refuse("bad_dtype", f"{file}: {values.dtype}, not integers.", field=name)
    if len(lengths) != len(numbers) or (lengths < 0).any():
        findings.refuse("bad_metadata", f"{file}: lengths missing or negative.", field="length")
    unique, counts = np.unique(numbers, return_counts=True)
    if (counts > 1).any():
        first = int(unique[counts > 1][0])
        findings.refuse(
            "meta_conflict",
            f"{file}: lists episode {first} {int(counts.max())} times.",
            field="episode_index",
            index=first,
            count=int((counts > 1).sum()),
        )
    return Episodes(file, numbers.astype(np.int64), lengths.astype(np.int64), columns)


def read_tasks(info: Info) -> dict[int, str]:
    """The words of every task by its number; empty where the dataset has none."""
    if info.version == "v2.1":
        path = info.root / "meta" / "tasks.jsonl"
        if not path.exists():
            return {}
        lines = read_lines(inside(info.root, path))
        pairs = [(line.get("task_index"), line.get("task")) for line in lines]
    else:
        path = info.root / "meta" / "tasks.parquet"
        if not path.exists():
            return {}
        table = read_table(inside(info.root, path))
        names = [name for name in table.column_names if name != "task_index"]
        if "task_index" not in table.column_names or not names:
            return {}
        words = "task" if "task" in names else names[0]
        numbers = table.column("task_index").to_pylist()
        pairs = list(zip(numbers, table.column(words).to_pylist(), strict=True))
    return {n: str(words) for n, words in pairs if isinstance(n, int)}


def read_lines(path: Path) -> list[dict[str, Any]]:
    """Read a file of JSON objects, one per line."""
    try:
        if path.stat().st_size > _LINES_LIMIT:
            raise DataError(f"{path}: too large for a list of episodes.", code="too_large")
        lines = [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not lines of JSON ({error}).", code="bad_json") from None
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {error.strerror}.") from error
    if not all(isinstance(line, dict) for line in lines):
        raise DataError(f"{path}: expected one JSON object per line.", code="bad_json")
    return lines


def _place(info: Info, file: Path) -> str:
    return file.relative_to(info.root).as_posix()
