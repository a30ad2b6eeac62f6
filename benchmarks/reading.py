"""How long reading takes, as a ratio to the format's own library on the same file.

    python benchmarks/reading.py [--trajectories 1000] [--steps 250] [--rounds 5]

Each format's file is made by its own library where that is installed. Every round reads once
with pubc (cache off) and once with the library, in turn, so that a busy machine slows both;
the best times are compared, since other work on the machine only ever adds. Ends with 1 if a
target is missed.

Targets: at most 1.2 times the library's time for Minari HDF5 (minari), LeRobot v3 (pyarrow)
and D4RL HDF5 (h5py); the second opening of the Minari set, through the cache, at least 10
times faster than the first.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from pubc import formats
from pubc.formats import ReadOptions
from pubc.trajectory import Columns, TrajectorySet

SLOWEST = 1.2
FASTER = 10.0
OBSERVATION, ACTION = 17, 6


def make_set(count: int, steps: int) -> TrajectorySet:
    rng = np.random.Generator(np.random.Philox(0))
    rows = count * steps
    timeouts = np.zeros(rows, dtype=bool)
    timeouts[steps - 1 :: steps] = True
    return TrajectorySet.from_flat(
        Columns(
            observations=rng.normal(size=(rows, OBSERVATION)).astype(np.float32),
            actions=np.tanh(rng.normal(size=(rows, ACTION))).astype(np.float32),
            rewards=rng.normal(size=rows).astype(np.float32),
            terminals=np.zeros(rows, dtype=bool),
            timeouts=timeouts,
        ),
        np.full(count, steps),
        final_observations=rng.normal(size=(count, OBSERVATION)).astype(np.float32),
        has_final=np.ones(count, dtype=bool),
    )


def make_minari(folder: Path, trajectories: TrajectorySet) -> Path:
    from gymnasium import spaces
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_storage import MinariStorage

    path = folder / "minari"
    storage = MinariStorage.new(
        path,
        observation_space=spaces.Box(-np.inf, np.inf, (OBSERVATION,), np.float32),
        action_space=spaces.Box(-1, 1, (ACTION,), np.float32),
    )
    storage.update_metadata({"dataset_id": "bench/reading-v0", "minari_version": "0.5.4"})
    storage.update_episodes(
        EpisodeBuffer(
            observations=np.vstack([t.steps.observations, t.final_observation[None]]),
            actions=t.steps.actions,
            rewards=t.steps.rewards,
            terminations=t.steps.terminals,
            truncations=t.steps.timeouts,
        )
        for t in trajectories
    )
    return path


def read_minari(path: Path) -> int:
    import minari

    return sum(len(e.rewards) for e in minari.MinariDataset(path).iterate_episodes())


def make_d4rl(folder: Path, trajectories: TrajectorySet) -> Path:
    path = folder / "d4rl.hdf5"
    with h5py.File(path, "w") as file:
        for name, column in trajectories.columns.named():
            file.create_dataset(name, data=column, compression="gzip")
    return path


def read_d4rl(path: Path) -> int:
    with h5py.File(path, "r") as file:
        return len({name: file[name][:] for name in file}["rewards"])


def make_lerobot(folder: Path, trajectories: TrajectorySet) -> Path:
    path = folder / "lerobot"
    formats.save(path, trajectories, format="lerobot")
    return path


def read_lerobot(path: Path) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = 0
    for file in sorted((path / "data").rglob("*.parquet")):
        # The quickest of pyarrow's ways: read_table takes twice as long on many row groups.
        table = pq.ParquetFile(file).read()
        for name in table.column_names:
            column = table.column(name).combine_chunks()
            if pa.types.is_fixed_size_list(column.type) or pa.types.is_list(column.type):
                flat = column.flatten().to_numpy(zero_copy_only=False)
                flat.reshape(len(column), -1)
            else:
                column.to_numpy(zero_copy_only=False)
        rows += table.num_rows
    return rows


CASES: dict[str, tuple[str, Callable, Callable]] = {
    "minari": ("minari", make_minari, read_minari),
    "lerobot": ("pyarrow", make_lerobot, read_lerobot),
    "d4rl": ("h5py", make_d4rl, read_d4rl),
}


def seconds(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def compare(name: str, path: Path, steps: int, rounds: int) -> dict[str, object]:
    """Best times of both readers on one file, in turn."""
    library, _, theirs = CASES[name]
    fresh = ReadOptions(cache=False)
    assert theirs(path) == formats.read(path, fresh).steps == steps
    ours, other = [], []
    for _ in range(rounds):
        ours.append(seconds(lambda: formats.read(path, fresh)))
        other.append(seconds(lambda: theirs(path)))
    ratio = min(ours) / min(other)
    return {
        "what": f"{name} against {library}",
        "pubc_s": round(min(ours), 4),
        "other_s": round(min(other), 4),
        "ratio": round(ratio, 3),
        "target": f"<= {SLOWEST}",
        "met": ratio <= SLOWEST,
    }


def compare_cache(path: Path, rounds: int) -> dict[str, object]:
    """First opening, which reads and keeps a flat copy, against the second."""
    first = seconds(lambda: formats.read(path))
    second = min(seconds(lambda: formats.read(path)) for _ in range(rounds))
    return {
        "what": "minari, second opening against first",
        "pubc_s": round(second, 4),
        "other_s": round(first, 4),
        "ratio": round(first / second, 1),
        "target": f">= {FASTER}",
        "met": first / second >= FASTER,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trajectories", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    trajectories = make_set(given.trajectories, given.steps)
    results = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["PUBC_CACHE"] = str(folder / "cache")
        for case, (_, make, _) in CASES.items():
            path = make(folder, trajectories)
            results.append(compare(case, path, trajectories.steps, given.rounds))
            if case == "minari":
                results.append(compare_cache(path, given.rounds))
    if given.json:
        print(json.dumps(results, indent=1))
    else:
        print(f"{given.trajectories:,} trajectories of {given.steps:,} steps")
        for r in results:
            met = "met" if r["met"] else "MISSED"
            print(
                f"{r['what']:<38} {r['pubc_s']:>8.3f} s {r['other_s']:>8.3f} s"
                f"  ratio {r['ratio']:>6}  ({r['target']}: {met})"
            )
    return 0 if all(r["met"] for r in results) else 1


if __name__ == "__main__":
    sys.exit(main())
