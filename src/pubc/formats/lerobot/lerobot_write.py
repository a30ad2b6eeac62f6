"""Writing LeRobot datasets: the layout of v3.0 (and v2.1), re-indexed from zero.

A writer takes one episode after another as a table and keeps the books: running numbers,
statistics, tasks, the list of episodes, `meta/info.json`. A new set and a subset of an old
one go through the same writer, so both have the same layout.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import UsageError
from pubc.formats.lerobot.lerobot_meta import DATA_PATHS, INDEX
from pubc.formats.lerobot.lerobot_notes import features_of, write_notes
from pubc.formats.lerobot.lerobot_paths import fill
from pubc.formats.lerobot.lerobot_stats import episode_stats, join_stats
from pubc.formats.parquet.parquet_read import is_numeric, to_numpy
from pubc.formats.parquet.parquet_write import make_table, with_column, write_tables
from pubc.storage import atomic_folder, write_json
from pubc.trajectory import Trajectory, TrajectorySet

__all__ = ["CHUNK", "KIND", "VERSIONS", "Writer", "write"]

KIND = "lerobot"
VERSIONS = ("v3.0", "v2.1")
FILE_BYTES = 100_000_000
"""Where a data file is full, LeRobot's own default."""
CHUNK = 1000
"""Files per folder."""
FPS = 30
"""Frames per second of a set whose metadata does not say."""


@dataclass(slots=True)
class Writer:
    """Keeps the books of one dataset folder while episodes are added."""

    folder: Path
    """An empty folder to fill."""
    version: str
    """`v3.0` or `v2.1`."""
    episodes: list[dict[str, Any]] = field(default_factory=list)
    """The list of episodes so far."""
    stats: list[dict[str, dict[str, Any]]] = field(default_factory=list)
    """Statistics of each."""
    frames: int = 0
    """Frames so far."""
    _tables: list[Any] = field(default_factory=list)
    _bytes: int = 0
    _files: int = 0

    def add(
        self,
        table: Any,
        tasks: Sequence[str],
        *,
        also: dict[str, Any] | None = None,
        stats: dict[str, dict[str, Any]] | None = None,
    ) -> None:
        """Add one episode.

        Args:
            table: Its frames, with every column of the dataset; running numbers are set here.
            tasks: What the robot was told to do.
            also: Further facts for the list of episodes.
            stats: Statistics of features that are not columns of numbers, such as images.
        """
        number, length = len(self.episodes), table.num_rows
        whole = np.arange(self.frames, self.frames + length, dtype=np.int64)
        table = with_column(table, "episode_index", np.full(length, number, dtype=np.int64))
        table = with_column(table, "index", whole)
        numeric = [f.name for f in table.schema if is_numeric(f.type)]
        columns = {name: to_numpy(self.folder, table, name) for name in numeric}
        self.stats.append({**(stats or {}), **episode_stats(columns)})
        entry = {"episode_index": number, "tasks": list(tasks), "length": length}
        if self.version == "v3.0":
            entry |= self._keep(table)
        else:
            values = {"episode_chunk": number // CHUNK, "episode_index": number}
            write_tables(self.folder / fill(DATA_PATHS["v2.1"], values), [table])
        self.episodes.append({**(also or {}), **entry})
        self.frames += length

    def _keep(self, table: Any) -> dict[str, int]:
        """Hold a table for the current file; where it will lie."""
        if self._tables and self._bytes + table.nbytes > FILE_BYTES:
            self._flush()
        self._tables.append(table)
        self._bytes += table.nbytes
        return {
            "data/chunk_index": self._files // CHUNK,
            "data/file_index": self._files % CHUNK,
            "dataset_from_index": self.frames,
            "dataset_to_index": self.frames + table.num_rows,
            "meta/episodes/chunk_index": 0,
            "meta/episodes/file_index": 0,
        }

    def _flush(self) -> None:
        values = {"chunk_index": self._files // CHUNK, "file_index": self._files % CHUNK}
        write_tables(self.folder / fill(DATA_PATHS["v3.0"], values), self._tables)
        self._tables, self._bytes, self._files = [], 0, self._files + 1

    def close(self, info: dict[str, Any], tasks: dict[int, str]) -> None:
        """Write everything below `meta`."""
        count = len(self.episodes)
        info = info | {
            "codebase_version": self.version,
            "total_episodes": count,
            "total_frames": self.frames,
            "total_tasks": len(tasks),
            "chunks_size": CHUNK,
            "splits": {"train": f"0:{count}"},
            "data_path": DATA_PATHS[self.version],
        }
        numbers = np.array(sorted(tasks), dtype=np.int64)
        words = [tasks[number] for number in sorted(tasks)]
        meta = self.folder / "meta"
        if self.version == "v3.0":
            self._flush()
            info |= {"data_files_size_in_mb": 100, "video_files_size_in_mb": 200}
            info = {k: v for k, v in info.items() if k not in ("total_chunks", "total_videos")}
            write_tables(
                meta / "episodes" / "chunk-000" / "file-000.parquet", [self._episode_table()]
            )
            tasks_table = make_table({"task_index": numbers, "task": words}, index="task")
            write_tables(meta / "tasks.parquet", [tasks_table])
            write_json(meta / "stats.json", _plain(join_stats(self.stats)))
        else:
            info |= {"total_chunks": -(-count // CHUNK)}
            _write_lines(meta / "episodes.jsonl", self.episodes)
            pairs = zip(numbers.tolist(), words, strict=True)
            _write_lines(meta / "tasks.jsonl", [{"task_index": n, "task": w} for n, w in pairs])
            lines = ({"episode_index": i, "stats": _plain(s)} for i, s in enumerate(self.stats))
            _write_lines(meta / "episodes_stats.jsonl", lines)
        write_json(meta / "info.json", info)

    def _episode_table(self) -> Any:
        names = dict.fromkeys(name for entry in self.episodes for name in entry)
        columns: dict[str, Any] = {
            name: [entry.get(name) for entry in self.episodes] for name in names
        }
        for name in self.stats[0]:
            for kind in self.stats[0][name]:
                values = [np.asarray(stats[name][kind]) for stats in self.stats]
                columns[f"stats/{name}/{kind}"] = np.stack(values)
        return make_table(columns)


def write(
    path: Path,
    trajectories: TrajectorySet,
    *,
    overwrite: bool,
    version: str = VERSIONS[0],
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write a new dataset folder.

    Args:
        path: Where; a folder that does not exist yet.
        trajectories: What to write.
        overwrite: Replace an existing folder.
        version: `v3.0`, or `v2.1` for tools that have not moved on.
        about: Further facts for the manifest.
    """
    if version not in VERSIONS:
        raise UsageError(f"LeRobot version must be v3.0 or v2.1. Got {version!r}.")
    features = features_of(trajectories)
    metadata = trajectories.metadata
    fps = metadata.get("fps")
    if not isinstance(fps, int | float) or isinstance(fps, bool) or not 0 < fps < 1e6:
        fps = FPS
    tasks = {0: "unknown"}
    if "task_index" in features.values():
        tasks = dict(enumerate(metadata["tasks"]))
    robot = metadata.get("robot_type")
    with atomic_folder(path, kind=KIND, overwrite=overwrite, about=about) as folder:
        writer = Writer(folder, version)
        for trajectory in trajectories:
            table = _frames(trajectory, features, float(fps))
            used = sorted(set(table.column("task_index").to_pylist()))
            writer.add(table, [tasks[number] for number in used])
        info = {
            "robot_type": robot if isinstance(robot, str) else None,
            "fps": fps,
            "video_path": None,
            "features": _feature_words(trajectories, features),
        }
        if version == "v2.1":
            info["total_videos"] = 0
        writer.close(info, tasks)
        write_notes(folder, trajectories)


def _frames(trajectory: Trajectory, features: dict[str, str], fps: float) -> Any:
    """One trajectory as a table of frames."""
    frame = np.arange(len(trajectory), dtype=np.int64)
    columns: dict[str, Any] = {}
    for name, column in trajectory.steps.named():
        wide = column.ndim == 2 and column.shape[1] == 1
        columns[features[name]] = column[:, 0] if wide else column
    columns["next.done"] = trajectory.steps.terminals | trajectory.steps.timeouts
    index = {
        "timestamp": (frame / fps).astype(np.float32),
        "frame_index": frame,
        "episode_index": frame,
        "index": frame,
        "task_index": np.zeros(len(frame), dtype=np.int64),
    }
    own = {name: columns.pop(name) for name in INDEX if name in columns}
    return make_table({**columns, **index, **own})


def _feature_words(trajectories: TrajectorySet, features: dict[str, str]) -> dict[str, Any]:
    def entry(dtype: str, shape: Sequence[int]) -> dict[str, Any]:
        return {"dtype": dtype, "shape": list(shape) or [1], "names": None}

    words = {
        features[name]: entry(column.dtype.name, column.shape[1:])
        for name, column in trajectories.columns.named()
    }
    words["next.done"] = entry("bool", ())
    kinds = ("float32", "int64", "int64", "int64", "int64")
    index = {name: entry(kind, ()) for name, kind in zip(INDEX, kinds, strict=True)}
    return {name: about for name, about in words.items() if name not in index} | index


def _plain(stats: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Statistics as JSON values; what is not finite becomes null."""
    return {
        name: {kind: _finite(np.asarray(value).tolist()) for kind, value in kinds.items()}
        for name, kinds in stats.items()
    }


def _finite(value: Any) -> Any:
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value if np.isfinite(value) else None


def _write_lines(path: Path, lines: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for line in lines:
            file.write(json.dumps(line, allow_nan=False) + "\n")
