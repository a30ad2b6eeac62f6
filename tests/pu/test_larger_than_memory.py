"""A store larger than the memory it may use gives the same selection as in memory.

Goal R7 of docs/dev/check-full.md.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc import formats
from pubc.trajectory import Columns, TrajectorySet

CODE = """
import contextlib, sys
from pubc.cli.main import main
from tests.brisk import quickened
from tests.memory import peak
with quickened() if sys.argv.pop() == "brisk" else contextlib.nullcontext():
    code = main(sys.argv[1:])
print(peak() >> 20, file=sys.stderr)
sys.exit(code)
"""
ROOT = Path(__file__).parents[2]
STATES, ACTIONS, LENGTH = 60, 8, 1000
ROW = 4 * (STATES + ACTIONS + 1) + 2


def write_store(folder: Path, mebibytes: int) -> tuple[Path, int]:
    """A store of about so many MiB: every other trajectory is the expert's."""
    count = mebibytes * 2**20 // (ROW * LENGTH)
    rng = np.random.default_rng(0)
    policies = rng.normal(size=(2, STATES, ACTIONS)).astype(np.float32) / 6
    parts = {}
    for name, width in (("states", STATES), ("actions", ACTIONS)):
        parts[name] = np.lib.format.open_memmap(
            folder / f"{name}.npy", mode="w+", dtype=np.float32, shape=(count * LENGTH, width)
        )
    for index in range(count):
        rows = slice(index * LENGTH, (index + 1) * LENGTH)
        walk = rng.standard_normal((LENGTH, STATES), dtype=np.float32)
        parts["states"][rows] = walk
        parts["actions"][rows] = np.tanh(walk @ policies[index % 2])
    flags = np.zeros(count * LENGTH, dtype=np.bool_)
    mixed = TrajectorySet.from_flat(
        Columns(
            parts["states"], parts["actions"], np.zeros(count * LENGTH, np.float32), flags, flags
        ),
        [LENGTH] * count,
        sources=np.asarray(["expert", "other"])[np.arange(count) % 2],
    )
    path = folder / "pile.store"
    formats.save(path, mixed)
    for name in parts:
        (folder / f"{name}.npy").unlink()
    return path, count


def peak_of(path: Path, out: Path, training: str, *flags: str) -> int:
    """Filter a store in a process of its own; returns its peak memory in MiB."""
    words = ["filter", str(path), "--out", str(out), "--seed-episodes", "0,2", "--json"]
    words += ["--device", "cpu", "--workers", "2", "--truth", "expert", *flags]
    done = subprocess.run(
        [sys.executable, "-c", CODE, *words, training], capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    if training == "usual":
        document = json.loads(done.stdout)
        assert document["status"] == "converged"
        assert document["truth_report"]["accuracy"] == 1.0
    return int(done.stderr.split()[-1])


def test_three_hundred_mebibytes_are_not_held(tmp_path: Path):
    """A process that filters a small file takes 430; here `auto` trains little."""
    path, _ = write_store(tmp_path, 300)
    # What is held of a trajectory is a fixed number of steps, with room to work on them.
    assert peak_of(path, tmp_path / "run", "brisk") < 850


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_four_gibibytes_in_one_and_a_half(tmp_path: Path):
    path, count = write_store(tmp_path, 4096)
    peak = peak_of(path, tmp_path / "run", "usual")
    sys.stdout.write(f"peak: {peak} MiB\n")
    assert peak < 1536
    stored = pubc.load(path)
    loaded = TrajectorySet.from_flat(
        Columns(
            np.array(stored.columns.observations),
            np.array(stored.columns.actions),
            None,
            np.array(stored.columns.terminals),
            np.array(stored.columns.timeouts),
        ),
        stored.lengths,
    )
    found = pubc.find_expert(loaded, [0, 2], device="cpu")
    kept = json.loads((tmp_path / "run" / "keep.json").read_text())["episodes"]
    assert kept == np.flatnonzero(found.mask).tolist()
    assert len(kept) == (count + 1) // 2
    # Which steps are the expert's, and the segments, in the same memory.
    peak = peak_of(path, tmp_path / "segments", "usual", "--segments")
    sys.stdout.write(f"peak with --segments: {peak} MiB\n")
    assert peak < 1536
