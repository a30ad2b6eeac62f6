"""LeRobot datasets as strangers write them: many shards, old layouts, stale metadata."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tests.formats.roundtrip import marker

FEATURES = {
    "observation.state": ("float32", [3]),
    "action": ("float32", [2]),
    "next.reward": ("float32", [1]),
    "next.done": ("bool", [1]),
    "timestamp": ("float32", [1]),
    "frame_index": ("int64", [1]),
    "episode_index": ("int64", [1]),
    "index": ("int64", [1]),
    "task_index": ("int64", [1]),
}


def episode(number: int, start: int, length: int) -> pa.Table:
    """Frames whose first state counts steps and whose first action marks them."""
    frame = np.arange(length)
    count = start + frame
    state = np.stack([count, np.sin(count), -count], axis=1).astype(np.float32)
    action = np.stack([marker(count), count], axis=1).astype(np.float32)
    return pa.table(
        {
            "observation.state": pa.FixedSizeListArray.from_arrays(pa.array(state.ravel()), 3),
            "action": pa.array(action.tolist(), pa.list_(pa.float32())),
            "next.reward": np.ones(length, dtype=np.float32),
            "next.done": frame == length - 1,
            "timestamp": (frame / 10).astype(np.float32),
            "frame_index": frame,
            "episode_index": np.full(length, number),
            "index": count,
            "task_index": np.full(length, number % 2),
        }
    )


def info(version: str, lengths: list[int], **changes) -> dict:
    path = {
        "v3.0": "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "v2.1": "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
    }[version]
    return {
        "codebase_version": version,
        "robot_type": "arm",
        "fps": 10,
        "total_episodes": len(lengths),
        "total_frames": sum(lengths),
        "total_tasks": 2,
        "chunks_size": 3,
        "splits": {"train": f"0:{len(lengths)}"},
        "data_path": path,
        "video_path": None,
        "features": {
            name: {"dtype": dtype, "shape": shape, "names": None}
            for name, (dtype, shape) in FEATURES.items()
        },
        **changes,
    }


def write_v3(
    root: Path, shards: list[tuple[int, int, list[int]]], lengths: list[int], **changes
) -> Path:
    """A v3.0 set; each shard is (chunk, file, episodes), the list of episodes in two shards."""
    starts = np.cumsum(lengths) - lengths
    where = {}
    for chunk, file, episodes in shards:
        path = root / f"data/chunk-{chunk:03d}/file-{file:03d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        tables = [episode(n, int(starts[n]), lengths[n]) for n in episodes]
        pq.write_table(pa.concat_tables(tables), path)
        where |= dict.fromkeys(episodes, (chunk, file))
    listed = {n: where.get(n, (0, 0)) for n in range(len(lengths))}
    rows = [
        {
            "episode_index": n,
            "tasks": [["push", "lift"][n % 2]],
            "length": length,
            "data/chunk_index": listed[n][0],
            "data/file_index": listed[n][1],
            "dataset_from_index": int(starts[n]),
            "dataset_to_index": int(starts[n]) + length,
            "operator": f"o{n % 3}",
        }
        for n, length in enumerate(lengths)
    ]
    write_episodes(root, rows)
    tasks = pa.table({"task_index": [0, 1], "task": ["push", "lift"]})
    pq.write_table(tasks, root / "meta/tasks.parquet")
    (root / "meta/info.json").write_text(json.dumps(info("v3.0", lengths, **changes)))
    return root


def write_episodes(root: Path, rows: list[dict]) -> None:
    """The list of episodes, split over chunk folders that repeat a file name."""
    half = (len(rows) + 1) // 2
    for chunk, part in enumerate((rows[:half], rows[half:])):
        path = root / f"meta/episodes/chunk-{chunk:03d}/file-000.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        if part:
            pq.write_table(pa.Table.from_pylist(part), path)


def read_listed(root: Path) -> list[dict]:
    """The list of episodes as it stands."""
    return [
        row
        for path in sorted(root.glob("meta/episodes/*/*.parquet"))
        for row in pq.read_table(path).to_pylist()
    ]


def write_v21(root: Path, lengths: list[int], **changes) -> Path:
    """A v2.1 set: one file per episode, three per folder."""
    starts = np.cumsum(lengths) - lengths
    lines = []
    for n, length in enumerate(lengths):
        path = root / f"data/chunk-{n // 3:03d}/episode_{n:06d}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(episode(n, int(starts[n]), length), path)
        lines.append({"episode_index": n, "tasks": [["push", "lift"][n % 2]], "length": length})
    meta = root / "meta"
    meta.mkdir(parents=True, exist_ok=True)
    (meta / "episodes.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    tasks = [{"task_index": 0, "task": "push"}, {"task_index": 1, "task": "lift"}]
    (meta / "tasks.jsonl").write_text("".join(json.dumps(line) + "\n" for line in tasks))
    (meta / "info.json").write_text(json.dumps(info("v2.1", lengths, **changes)))
    return root
