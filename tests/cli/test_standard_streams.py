"""Standard streams that are closed or full change neither the exit code nor the result."""

import json
import subprocess
import sys

import pytest

import pubc
from tests.pu.piles import pile

PUBC = f"{sys.executable} -m pubc"
WARNS = (
    "import sys, warnings; from pubc.cli import console, main; import pubc.__main__ as program; "
    "run = lambda self: warnings.warn('odd') or console.warn('odd') or {'a': 1}; "
    "main._parse = lambda words: type('C', (), {'run': run})(); "
    "sys.argv = ['pubc', 'inspect', '--json']; sys.exit(program.main())"
)
"""A command with two warnings and a result."""
SIGNALLED = (
    "import os, signal, sys; import pubc.__main__ as program; from pubc.cli import main; "
    "signal.signal(signal.SIGINT, signal.default_int_handler); "
    "main._parse = lambda words: os.kill(os.getpid(), signal.SIGINT); "
    "sys.argv = ['pubc', 'inspect', '--json']; sys.exit(program.main())"
)
"""An interrupt while a command still loads."""
SICK = ["2>&-", "2>/dev/full", "2> >(true)", "<&- 2>&-", "<&- >&- 2>&-"]


def shell(line: str, folder) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("filter --nonsense >&- 2>&-", 2), ("filter --help >&-", 0), ("cache --help >&-", 0),
        ("--help >&-", 0), ("verify >&-", 2), ("inspect nothere >&- 2>&-", 2),
        ("inspect nothere 2>/dev/full", 2), ("nonsense 2>/dev/full", 2),
        ("formats --json >/dev/full 2>/dev/full", 4), ("formats <&- >&- 2>/dev/full", 0),
    ],
)  # fmt: skip
def test_the_exit_code_is_that_of_sane_streams(words, code, tmp_path):
    done = shell(f"{PUBC} {words}", tmp_path)
    assert done.returncode == code, done.stderr
    assert "fault" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("streams", SICK)
def test_a_warning_that_cannot_be_said_is_not_among_the_result(streams, tmp_path):
    done = shell(f'{sys.executable} -c "{WARNS}" {streams}', tmp_path)
    assert done.returncode == 0
    assert ">&-" in streams.split() or json.loads(done.stdout) == {"a": 1}


@pytest.mark.parametrize("streams", [*SICK, ">/dev/full 2>/dev/full"])
def test_an_interrupt_that_cannot_be_said_is_still_one(streams, tmp_path):
    done = shell(f'{sys.executable} -c "{SIGNALLED}" {streams}', tmp_path)
    assert done.returncode == 5
    assert done.stderr == ""


@pytest.mark.parametrize("streams", ["<&- >&- 2>&-", "2>/dev/full >/dev/null"])
def test_work_is_done_whatever_becomes_of_the_words(streams, tmp_path):
    pubc.save(tmp_path / "d.npz", pile([4, 4], steps=30, states=3))
    line = f"{PUBC} train d.npz --out policy --updates 2 --device cpu {streams}"
    assert shell(line, tmp_path).returncode == 0
    assert shell(f"{PUBC} verify policy", tmp_path).returncode == 0


def test_children_inherit_streams_that_are_open(tmp_path):
    code = (
        "import subprocess, sys; from pubc.cli.standard_streams import mend_streams; "
        "mend_streams(); mine = open('mine'); assert mine.fileno() > 2; "
        "child = 'import os; [os.fstat(number) for number in range(3)]'; "
        "sys.exit(subprocess.call([sys.executable, '-c', child]))"
    )
    (tmp_path / "mine").touch()
    assert shell(f'{sys.executable} -c "{code}" <&- >&- 2>&-', tmp_path).returncode == 0
