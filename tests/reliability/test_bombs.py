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
import json, os, sys, time
from pathlib import Path
import numpy, h5py, pyarrow.parquet, zarr, lmdb
from tests.memory import peak
from tests.reliability.reader_worker import attempt
sys.setrecursionlimit(1000)
for line in sys.stdin:
    if os.fork():
        _, status = os.wait()
        print(json.dumps({"exit": status}), flush=True)
        continue
    before = peak()
    start = time.process_time()
    answer = attempt(Path(json.loads(line)))
    answer["seconds"] = time.process_time() - start
    answer["memory"] = peak() - before
    print(json.dumps(answer), flush=True)
    os._exit(0)
"""
"""Loads the libraries once, and forks for each path: every bomb has a process of its own."""


@pytest.fixture(scope="module")
def reader():
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "ARROW_DEFAULT_MEMORY_POOL": "system"},
    ) as process:
        yield process
        process.stdin.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_TO_MAKE)
def test_a_bomb_that_takes_minutes_to_make_is_refused_at_once(name: str, reader, tmp_path):
    refuses(reader, SLOW_TO_MAKE[name](tmp_path))


@pytest.mark.parametrize("name", BOMBS, ids=lambda name: name.replace(" ", "_"))
def test_a_bomb_is_refused_in_time_and_memory(name: str, reader, tmp_path):
    refuses(reader, BOMBS[name](tmp_path))


def refuses(reader: subprocess.Popen, path: Path) -> None:
    reader.stdin.write(json.dumps(str(path)) + "\n")
    reader.stdin.flush()
    answer = json.loads(reader.stdout.readline())
    assert "exit" not in answer, "the process that read it died"
    assert json.loads(reader.stdout.readline()) == {"exit": 0}
    assert answer.get("error") == "DataError", answer
    assert not answer["unforeseen"], answer
    assert str(path) in answer["message"] or path.name in answer["message"]
    assert answer["seconds"] < SECONDS
    assert answer["memory"] < MEMORY
