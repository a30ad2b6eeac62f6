"""A command under a memory limit: however it ends, somebody says so in one sentence."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pubc.storage.disk import alive
from tests.reliability import samples

BEGIN = """
import os, sys, time
from pubc.cli.standard_streams import mend_streams
from pubc.cli.memory_guard import guard_memory
mend_streams()
guard_memory()
"""
LIMIT = 3 << 30


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))


def program(code: str, *arguments: str, limited: bool = True) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-c", BEGIN + code, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=limit if limited else None,
    )


def end_of(code: str, *arguments: str, limited: bool = True) -> tuple[int, str, str]:
    running = program(code, *arguments, limited=limited)
    out, err = running.communicate(timeout=60)
    return running.returncode, out, err


@pytest.mark.parametrize("code", [0, 2, 3, 4, 5, 6, 70, 130])
def test_the_end_of_a_command_is_its_own(code: int):
    ended = end_of(
        f"print('result'); print('word', file=sys.stderr); os.write(2, b'C\\n'); sys.exit({code})"
    )
    assert ended == (code, "result\n", "word\nC\n")


@pytest.mark.parametrize(
    ("end", "how"),
    [
        ("os.abort()", "signal 6"),
        ("os.kill(os.getpid(), 11)", "signal 11"),
        ("os.kill(os.getpid(), 7)", "signal 7"),
        ("os._exit(1)", "status 1"),
    ],
)
def test_a_crash_is_one_sentence_and_exit_code_4(end: str, how: str):
    crash = f"os.write(2, b'terminate called\\n'); {end}"
    code, out, err = end_of(crash)
    assert (code, out) == (4, "")
    assert err.count("\n") == 1
    assert err.startswith(f"pubc: a library ended the command ({how}) under a memory limit of 3,14")
    code, out, err = end_of(crash, "--json")
    assert code == json.loads(out)["error"]["exit_code"] == 4
    assert json.loads(out)["error"]["kind"] == "EnvironmentFailure"


def test_without_a_limit_there_is_no_second_process():
    code, out, _ = end_of("print(os.getppid())", limited=False)
    assert (code, int(out)) == (0, os.getpid())
    assert end_of("os.abort()", limited=False)[0] == -signal.SIGABRT


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_command(number: int):
    running = program(
        "from pubc.cli.startup import begin_work\n"
        "begin_work()\n"
        "try:\n"
        "    print('at work', flush=True)\n"
        # A signal just before a long sleep would be heard after it.
        "    for _ in range(3000):\n"
        "        time.sleep(0.01)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(5)\n"
    )
    assert running.stdout.readline() == "at work\n"
    running.send_signal(number)
    assert running.communicate(timeout=20) == ("", "")
    assert running.returncode == 5


def test_a_signal_that_ends_the_command_is_told_as_the_shell_does():
    assert end_of("os.kill(os.getpid(), 9)")[0] == 128 + signal.SIGKILL


def test_a_command_dies_with_the_process_that_waits_for_it():
    running = program("print(os.getpid(), flush=True); time.sleep(60)")
    child = int(running.stdout.readline())
    running.kill()
    running.wait()
    deadline = time.monotonic() + 20
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)
    running.communicate()


@pytest.mark.parametrize("kilobytes", [1_050_000, 1_300_000, 1_700_000])
def test_training_under_a_limit_ends_well_or_in_exit_code_4(tmp_path: Path, kilobytes: int):
    def tight() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (kilobytes << 10, kilobytes << 10))

    data, out = samples.npz(tmp_path), tmp_path / "p"
    words = ["train", str(data), "--out", str(out), "--epochs", "2", "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-m", "pubc", *words],
        capture_output=True,
        text=True,
        preexec_fn=tight,
        timeout=120,
    )
    assert done.returncode in (0, 4)
    assert "Traceback" not in done.stderr
    assert out.exists() == (done.returncode == 0)
    if done.returncode:
        assert "memory" in done.stderr
