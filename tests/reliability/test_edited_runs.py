"""258 edited run folders: no exit code 1, at most 512 MiB and 5 seconds each (L6)."""

import os
import shutil
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import pubc
from pubc.runs.folder.run_files import COMING
from pubc.storage import MANIFEST
from tests.cli.calling import run
from tests.memory import peak
from tests.pu.piles import pile
from tests.reliability import quick_recipe
from tests.reliability.edited_runs import EDITS, VALUES, apply
from tests.reliability.own_folders import real_run

assert quick_recipe  # imported for its recipe

SECONDS = 5.0
MEMORY = 512 << 20
KINDS = {"type": 150, "truncation": 30, "shape": 32, "deep": 12, "bomb": 19, "traversal": 15}
COMMANDS: dict[str, tuple[str, ...]] = {
    "report": ("report", "run", "--out", "page"),
    "score": ("score", "mixed.npz", "--filter", "run", "--workers", "1"),
    "train": ("train", "run", "--out", "policy", "--updates", "2", "--device", "cpu"),
    "resume": ("filter", "--resume", "run", "--workers", "1"),
    "weights": ("weights", "run", "--for", "torch", "--out", "weights.npz"),
    "verify": ("verify", "run"),
}


def test_there_are_258_of_the_kinds_that_were_tried():
    assert Counter(name.split(":")[0] for name in EDITS) == KINDS
    assert len(EDITS) == 258


@pytest.fixture(scope="module")
def clean(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("edited")
    pubc.save(folder / "mixed.npz", pile([4, 4], steps=30, states=2))
    real_run(folder)
    return folder


def try_edits(clean: Path, folder: Path, commands: tuple[str, ...], take, capsys) -> Counter[str]:
    """Use each edited run by the commands that `take` names; say how all of that ended."""
    ended: Counter[str] = Counter()
    wrong, most, longest = [], 0, 0.0
    for number, name in enumerate(EDITS):
        for command in take(number, commands):
            here = folder / "here"
            shutil.rmtree(here, ignore_errors=True)
            shutil.copytree(clean, here)
            apply(name, here / "run")
            if command == "resume":  # of a run that was stopped
                (here / "run" / MANIFEST).rename(here / "run" / COMING)
            os.chdir(here)
            spent, grown, code, err = measured(capsys, *COMMANDS[command])
            most, longest = max(most, grown), max(longest, spent)
            ended[f"exit {code}"] += 1
            if code not in (0, 2, 3) or "fault in pubc" in err or "Warning" in err:
                wrong.append(f"{name}, {command}: exit {code}: {err[-300:]}")
            if spent > SECONDS or grown > MEMORY:
                wrong.append(f"{name}, {command}: {spent:.1f} s, {grown >> 20} MiB")
            if (here / "mixed.npz").read_bytes() != (clean / "mixed.npz").read_bytes():
                wrong.append(f"{name}, {command}: wrote outside the run")
    with capsys.disabled():
        sys.stdout.write(f"\n{dict(ended)}; slowest {longest:.2f} s, {most >> 20} MiB at most\n")
    assert not wrong, "\n".join(wrong)
    return ended


def measured(capsys, *words: str) -> tuple[float, int, int, str]:
    """Processor seconds, growth of the memory, exit code and words of a command."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, began = peak(), time.process_time()
    code, _, err = run(capsys, *words)
    return time.process_time() - began, peak() - before, code, err


def in_turn(at: int, commands: tuple[str, ...]) -> tuple[str, ...]:
    """One more on with every key, so that a value does not always meet the same command."""
    return (commands[(at + at // len(VALUES)) % len(commands)],)


def test_each_of_them_is_refused_or_used_by_a_command(clean, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    ended = try_edits(clean, tmp_path, tuple(COMMANDS), in_turn, capsys)
    assert sum(ended.values()) == len(EDITS)
    assert ended["exit 3"] > len(EDITS) / 4, "the edits must hurt"


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_each_of_them_is_refused_or_used_by_every_command(clean, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    ended = try_edits(clean, tmp_path, tuple(COMMANDS), lambda at, all_: all_, capsys)
    assert sum(ended.values()) == len(EDITS) * len(COMMANDS)
