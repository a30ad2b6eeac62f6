"""Writing LeRobot datasets: the layout of v3.0 (and v2.1), re-indexed from zero.

A writer takes one episode after another as a table and keeps the books: running numbers,
statistics, tasks, the list of episodes, `meta/info.json`. A new set and a subset of an old
one go through the same writer, so both have the same layout.
"""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import UsageError
from pubc.formats.findings import Findings
from pubc.formats.lerobot_meta import (
    DATA_PATHS,
    INDEX,
    Info,
    fill,
    inside,
    read_episodes,
    read_info,
    read_lines,
    read_tasks,
)
from pubc.formats.lerobot_notes import features_of, read_notes, write_notes
from pubc.formats.lerobot_stats import episode_stats, join_stats
from pubc.formats.parquet import (
    is_numeric,
    join,
    make_table,
    pick,
    read_table,
    to_numpy,
    with_column,
    write_tables,
)
from pubc.storage import atomic_folder, write_json
from pubc.trajectory import Trajectory, TrajectorySet

__all__ = ["Writer", "keep_command", "subset_of", "write"]

KIND = "lerobot"
FILE_BYTES = 100_000_000
"""Where a data file is full, LeRobot's own default."""
CHUNK = 1000
"""Files per folder."""
FPS = 30
"""Frames per second of a set whose metadata does not say."""
_QUIET = Findings(Path())


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
    path: Path, trajectories: TrajectorySet, *, overwrite: bool, version: str = "v3.0"
) -> None:
    """Write a new dataset folder.

    Args:
        path: Where; a folder that does not exist yet.
        trajectories: What to write.
        overwrite: Replace an existing folder.
        version: `v3.0`, or `v2.1` for tools that have not moved on.
    """
    if version not in DATA_PATHS:
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
    with atomic_folder(path, kind=KIND, overwrite=overwrite) as folder:
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


def subset_of(info: Info, target: Path, numbers: Sequence[int], *, overwrite: bool) -> None:
    """Copy the given episodes with every column, renumbered in the order given.

    Args:
        info: The source.
        target: Where to write.
        numbers: `episode_index` of each episode to keep.
        overwrite: Replace an existing target.
    """
    if info.version == "v3.0" and info.videos:
        with atomic_folder(target, kind="lerobot-keep", overwrite=overwrite) as folder:
            document = {
                "source": str(info.root),
                "episodes": [int(number) for number in numbers],
                "commands": keep_command(info.root, numbers).splitlines(),
            }
            write_json(folder / "keep.json", document)
        return
    listed = read_episodes(info, _QUIET, stats=True)
    rows = {} if listed is None else {int(n): i for i, n in enumerate(listed.numbers)}
    facts = {} if listed is None else listed.columns
    image_stats = _image_stats(info, facts, rows)
    tasks = read_tasks(info) or {0: "unknown"}
    with atomic_folder(target, kind=KIND, overwrite=overwrite) as folder:
        writer = Writer(folder, info.version)
        for number, table in _episode_tables(info, numbers):
            also = {
                name: values[rows[number]]
                for name, values in facts.items()
                if number in rows and not name.startswith(("stats/", "videos/"))
            }
            used = also.pop("tasks", None)
            used = used if isinstance(used, list) else []
            writer.add(table, used, also=also, stats=image_stats.get(number))
        document = dict(info.document)
        if info.version == "v2.1":
            document["total_videos"] = len(info.videos) * len(numbers)
            _copy_videos(info, folder, numbers)
        writer.close(document, tasks)
        notes = read_notes(info)
        if notes is not None:
            order = sorted(rows) if rows else sorted(numbers)
            places = {number: place for place, number in enumerate(order)}
            notes.write(folder, [places[number] for number in numbers])


def _episode_tables(info: Info, numbers: Sequence[int]) -> Iterator[tuple[int, Any]]:
    """The frames of each episode with all columns, in order; one file in memory at a time."""
    where: dict[int, list[Path]] = {}
    for file in info.data_files():
        column = to_numpy(
            file, read_table(file, lambda n, _: n == "episode_index"), "episode_index"
        )
        for number in np.unique(column).tolist():
            where.setdefault(int(number), []).append(file)
    held: tuple[Path, Any, Any] | None = None
    for number in numbers:
        parts = []
        for file in where[number]:
            if held is None or held[0] != file:
                table = read_table(file)
                held = (file, table, to_numpy(file, table, "episode_index"))
            parts.append(pick(held[1], np.flatnonzero(held[2] == number)))
        table = parts[0] if len(parts) == 1 else join(parts)
        frame = to_numpy(where[number][0], table, "frame_index")
        if (np.diff(frame) < 0).any():
            table = pick(table, np.argsort(frame, kind="stable"))
        yield number, table.combine_chunks()


def _image_stats(
    info: Info, facts: dict[str, list[Any]], rows: dict[int, int]
) -> dict[int, dict[str, dict[str, Any]]]:
    """Statistics of features that are no columns of numbers, as the source has them."""
    images = {n for n, about in info.features.items() if about.get("dtype") in ("image", "video")}
    if info.version == "v2.1":
        path = info.root / "meta" / "episodes_stats.jsonl"
        lines = read_lines(inside(info.root, path)) if path.exists() else []
        return {
            int(line["episode_index"]): {n: s for n, s in line["stats"].items() if n in images}
            for line in lines
        }
    found: dict[int, dict[str, dict[str, Any]]] = {number: {} for number in rows}
    for column, values in facts.items():
        if column.startswith("stats/"):
            name, _, kind = column.removeprefix("stats/").rpartition("/")
            for number, row in rows.items():
                if name in images:
                    found[number].setdefault(name, {})[kind] = values[row]
    return found


def _copy_videos(info: Info, folder: Path, numbers: Sequence[int]) -> None:
    """v2.1 keeps one video per episode, so a copy needs no encoding."""
    template = str(info.document.get("video_path") or "")
    size = max(1, info.count("chunks_size") or CHUNK)
    for new, old in enumerate(numbers):
        for key in info.videos:
            there = {"episode_index": old, "episode_chunk": old // size, "video_key": key}
            here = {"episode_index": new, "episode_chunk": new // CHUNK, "video_key": key}
            source = inside(info.root, info.root / fill(template, there))
            target = inside(folder, folder / fill(template, here))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)


def keep_command(root: Path, kept: Sequence[int]) -> str:
    """The lerobot commands that use only the kept episodes: to train, and to cut a new set.

    Args:
        root: The dataset folder.
        kept: `episode_index` of each episode to keep.
    """
    info = read_info(root, Findings(root))
    total = info.count("total_episodes") or 0
    keep = sorted(int(number) for number in kept)
    drop = sorted(set(range(total)) - set(keep))
    name = shlex.quote(root.resolve().name)
    place = shlex.quote(str(root.resolve()))
    train = (
        f'lerobot-train --dataset.repo_id={name} --dataset.root={place} --dataset.episodes="{keep}"'
    )
    edit = (
        f"lerobot-edit-dataset --repo_id {name} --root {place} --new_repo_id {name}_kept "
        f'--operation.type delete_episodes --operation.episode_indices "{drop}"'
    )
    return f"{train}\n{edit}" if drop else train


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
