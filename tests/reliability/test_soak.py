"""Many commands in one process tree, some of them failed at random, leave nothing behind (R19)."""

import os
import random
import threading
from pathlib import Path

import pytest

from tests.reliability import quick_recipe
from tests.reliability.fault_points import HOWS
from tests.reliability.fault_scenes import FILTER, SCENES
from tests.reliability.faults import Worker
from tests.reliability.test_faults import LOADED

assert quick_recipe  # imported for its recipe

GROWTH = 1.05


def resident(pid: int | str = "self") -> int:
    fields = Path(f"/proc/{pid}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def descriptors(pid: int | str = "self") -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def in_one_process(folder: Path, count: int, capsys, monkeypatch) -> None:
    """The same few commands over and over, as a long-lived program would give them."""
    from pubc.cli.main import main

    monkeypatch.chdir(folder)
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
        if number in (count // 3, count - 1):  # after a third every cache is warm
            seen.append((resident(), descriptors(), threading.active_count()))
    (memory, files, threads), (memory_after, files_after, threads_after) = seen
    assert memory_after <= GROWTH * memory
    assert files_after <= files
    assert threads_after <= threads
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_a_few_commands_in_one_process_leave_nothing(tmp_path, capsys, monkeypatch):
    in_one_process(tmp_path, 16, capsys, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_three_hundred_commands_in_one_process_leave_nothing(tmp_path, capsys, monkeypatch):
    in_one_process(tmp_path, 300, capsys, monkeypatch)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_three_hundred_commands_with_faults_at_random_leave_nothing(tmp_path):
    draw, worker = random.Random(5), Worker(*LOADED)
    folder = tmp_path / "here"
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
        assert ended["code"] in (0, 2, 3, 4, -9), ended["err"]
        assert "fault in pubc" not in ended["err"], ended["err"]
        if number == 30:
            before = resident(worker.process.pid), descriptors(worker.process.pid)
    assert before is not None
    assert resident(worker.process.pid) <= GROWTH * before[0]
    assert descriptors(worker.process.pid) <= before[1]
    for words in ((*FILTER, "--force"), *lines[2:]):
        assert worker.run(words, folder)["code"] == 0
    assert [path.name for path in folder.rglob(".*")] == []
    worker.close()
