"""A store larger than the memory it may use is inspected, and half of it selected.

Goal R7 of docs/dev/check-full.md.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pubc.formats import store
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.storage import verify
from pubc.trajectory import Columns, TrajectorySet

ROOT = Path(__file__).parents[2]
WIDE = 120
LENGTH = 500

CHILD = """
import contextlib, io, json, sys
from pathlib import Path
import numpy as np
from pubc import formats
from pubc.cli.main import main
from tests.memory import peak
source, target = map(Path, sys.argv[1:])
printed = io.StringIO()
with contextlib.redirect_stdout(printed):
    code = main(["inspect", str(source), "--json"])
document = json.loads(printed.getvalue())
whole = formats.read(source)
kept = np.arange(len(whole)) % 2 == 1
formats.save(target, whole[kept])
print(json.dumps({"code": code, "steps": document["steps"], "peak": peak()}))
"""


def write_large(path: Path, size: int) -> int:
    """A store of about `size` bytes, streamed; returns its number of steps."""
    steps = size // (WIDE * 4 + 8 * 4 + 8) // LENGTH * LENGTH
    # One trajectory many times over: the set is large, its memory is not.
    rng = np.random.Generator(np.random.Philox(0))
    block = rng.normal(size=(LENGTH, WIDE)).astype(np.float32)
    flags = np.zeros(LENGTH, dtype=bool)
    ends = np.arange(LENGTH) == LENGTH - 1
    columns = Columns(block, block[:, :8], block[:, 0].astype(np.float64), flags, ends)
    count = steps // LENGTH
    named = TrajectorySet(
        columns,
        np.zeros(count, dtype=np.int64),
        np.full(count, LENGTH),
        np.arange(count).astype(str),
    )
    store.write(path, named, overwrite=False)
    return steps


def check(folder: Path, size: int, limit: int) -> None:
    source, target = folder / "large.store", folder / "half.store"
    steps = write_large(source, size)
    stored = sum(file.stat().st_size for file in source.iterdir())
    assert stored > 0.95 * size
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(source), str(target)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-1000:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["code"] == 0
    assert answer["steps"] == steps
    assert answer["peak"] < limit, f"{answer['peak'] >> 20} MiB"
    half = store.read(target, ReadOptions(), Findings(target))
    assert len(half) == steps // LENGTH // 2
    assert half.ids[:2].tolist() == ["1", "3"]
    assert verify(target) == []


def test_a_quarter_gigabyte_passes_through_a_fraction_of_it(tmp_path):
    check(tmp_path, 256 << 20, 160 << 20)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_four_gigabytes_pass_through_less_than_one(tmp_path):
    check(tmp_path, 4 << 30, 1 << 30)
