"""Many commands in one process tree, some of them failed at random, leave nothing behind (R19)."""

import ctypes
import gc
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import astuple, dataclass
from pathlib import Path

import pytest

from tests.reliability import quick_recipe
from tests.reliability.fault_points import HOWS
from tests.reliability.fault_scenes import FILTER, SCENES
from tests.reliability.faults import Worker
from tests.reliability.test_faults import LOADED

assert quick_recipe  # imported for its recipe

GROWTH = 1.05


def own_memory(pid: int | str = "self") -> int:
    """Bytes that a process has asked for and not given back.

    Not all of its resident memory: pages of libraries come and go as other processes need room.
    """
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return sum(
        int(line.split()[1]) << 10 for line in lines if line.startswith(("RssAnon:", "VmSwap:"))
    )


def threads_of(pid: int | str = "self") -> int:
    """A thread that has ended is still listed for a moment."""
    counts = []
    for _ in range(20):
        counts.append(len(os.listdir(f"/proc/{pid}/task")))
        time.sleep(0.005)
    return min(counts)


def descriptors(pid: int | str = "self") -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


@dataclass(frozen=True)
class Held:
    """What a process holds."""

    memory: int
    descriptors: int
    threads: int
    temporary: int

    @classmethod
    def of(cls, temporary: Path, pid: int | str = "self") -> "Held":
        if pid == "self":  # what only waits to be used again, or collected, is not lost
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
        found = own_memory(pid), descriptors(pid), threads_of(pid), len(os.listdir(temporary))
        return cls(*found)

    @classmethod
    def typical(cls, several: "list[Held]") -> "Held":
        """The median of each: where an array happens to lie changes memory by some per cent."""
        rows = [astuple(one) for one in several]
        return cls(*(int(statistics.median(column)) for column in zip(*rows, strict=True)))


def compare(before: Held, after: Held, count: int) -> None:
    sys.stdout.write(f"{count} commands: {before} became {after}\n")  # `pytest -rP` shows it
    assert after.memory <= GROWTH * before.memory
    assert after.descriptors <= before.descriptors
    assert after.threads <= before.threads
    assert after.temporary <= before.temporary


def own_temporary_folder(folder: Path, monkeypatch) -> Path:
    """A temporary folder for these commands alone, so that what they leave can be counted."""
    place = folder / "tmp"
    place.mkdir()
    monkeypatch.setenv("TMPDIR", str(place))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return place


def in_one_process(folder: Path, count: int, capsys, monkeypatch) -> None:
    """The same few commands over and over, as a long-lived program would give them."""
    from pubc.cli.main import main

    monkeypatch.chdir(folder)
    own_temporary_folder(folder, monkeypatch)
    SCENES["filter"](folder)
    assert main(list(FILTER)) == 0
    lines = [
        [*FILTER, "--force"],
        ["report", "run", "--json"],
        ["inspect", "mixed.npz", "--json"],
        ["score", "mixed.npz", "--filter", "run", "--json", "--workers", "1"],
        ["convert", "mixed.npz", "out.store", "--force", "--json"],
        ["verify", "run", "--json"],
        ["filter", "--resume", "missing", "--json"],
        ["inspect", "run/report.html", "--json"],
    ]
    seen = []
    for number in range(count):
        code = main(lines[number % len(lines)])
        capsys.readouterr()
        assert code in (0, 3), lines[number % len(lines)]
        if number % len(lines) == len(lines) - 1:
            seen.append(Held.of(folder / "tmp"))
    warm = seen[len(seen) // 3 :]  # after a third every cache is
    half = len(warm) // 2
    compare(Held.typical(warm[:half]), Held.typical(warm[half:]), count)
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_a_few_commands_in_one_process_leave_nothing(tmp_path, capsys, monkeypatch):
    in_one_process(tmp_path, 24, capsys, monkeypatch)  # the first eight fill caches


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_three_hundred_commands_in_one_process_leave_nothing(tmp_path, capsys, monkeypatch):
    in_one_process(tmp_path, 300, capsys, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_three_hundred_commands_with_faults_at_random_leave_nothing(tmp_path, monkeypatch):
    temporary = own_temporary_folder(tmp_path, monkeypatch)
    draw, worker = random.Random(5), Worker(*LOADED)
    folder, codes = tmp_path / "here", Counter()
    folder.mkdir()
    SCENES["filter"](folder)
    lines = [
        (*FILTER, "--force"),
        ("filter", "--resume", "run", "--json"),
        ("report", "run", "--json"),
        ("convert", "mixed.npz", "out.npz", "--force", "--json"),
        ("convert", "mixed.npz", "out.store", "--force", "--json"),
        ("score", "mixed.npz", "--filter", "run", "--out", "s.csv", "--force", "--json"),
    ]
    before = None
    for number in range(300):
        fault = draw.random() < 0.5
        at, how = (draw.randrange(1, 180), draw.choice(HOWS)) if fault else (None, None)
        ended = worker.run(draw.choice(lines), folder, at, how)
        codes[ended["code"]] += 1
        assert ended["code"] in (0, 2, 3, 4, -9), ended["err"]
        assert "fault in pubc" not in ended["err"], ended["err"]
        if number == 30:
            before = Held.of(temporary, worker.process.pid)
    for words in ((*FILTER, "--force"), *lines[2:]):
        assert worker.run(words, folder)["code"] == 0
    sys.stdout.write(f"exit codes {dict(codes)}; ")
    assert before is not None
    compare(before, Held.of(temporary, worker.process.pid), 300)
    assert [path.name for path in folder.rglob(".*")] == []
    worker.close()
