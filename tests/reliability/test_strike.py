"""The fault harness takes any command line."""

import pytest

from tests.reliability import samples
from tests.reliability.strike import main

LINE = ["--target", "out.npz", "--points", "2", "--how", "kill,ENOSPC", "--"]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "before").mkdir()
    samples.npz(tmp_path / "before")
    return tmp_path / "before"


def test_a_command_that_loses_nothing_passes(folder, capsys):
    assert main([str(folder), *LINE, "convert", "set.npz", "out.npz"]) == 0
    out = capsys.readouterr().out
    assert "kill: " in out
    assert out.count(" 0 wrong states") == 2
    assert [path.name for path in folder.iterdir()] == ["set.npz"]


def test_one_that_does_not_write_what_was_said_fails(folder, capsys):
    line = [word.replace("out.npz", "other.npz") for word in LINE]
    assert main([str(folder), *line, "convert", "set.npz", "out.npz"]) == 1
    assert "given again: other.npz is old" in capsys.readouterr().out
