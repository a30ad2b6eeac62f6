"""What promises the world is refused in five seconds and half a gigabyte.

Goal R12 of docs/dev/check-full.md.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reliability.bombs import BOMBS, SLOW_TO_MAKE

ROOT = Path(__file__).parents[2]
SECONDS = 5.0
MEMORY = 512 << 20

CHILD = """
import json, sys, time
from pathlib import Path
import numpy, h5py, pyarrow.parquet, zarr, lmdb
from tests.memory import peak
from tests.reliability.reader_worker import attempt
sys.setrecursionlimit(1000)
before = peak()
start = time.process_time()
answer = attempt(Path(sys.argv[1]))
answer["seconds"] = time.process_time() - start
answer["memory"] = peak() - before
print(json.dumps(answer))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_TO_MAKE)
def test_a_bomb_that_takes_minutes_to_make_is_refused_at_once(name: str, tmp_path):
    refuses(SLOW_TO_MAKE[name](tmp_path))


@pytest.mark.parametrize("name", BOMBS, ids=lambda name: name.replace(" ", "_"))
def test_a_bomb_is_refused_in_time_and_memory(name: str, tmp_path):
    refuses(BOMBS[name](tmp_path))


def refuses(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD, str(path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        timeout=120,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    )
    assert done.returncode == 0, done.stderr[-500:]
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer.get("error") == "DataError", answer
    assert not answer["unforeseen"], answer
    assert str(path) in answer["message"] or path.name in answer["message"]
    assert answer["seconds"] < SECONDS
    assert answer["memory"] < MEMORY
