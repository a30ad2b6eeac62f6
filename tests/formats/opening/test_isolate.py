"""A file that crashes, hangs or bloats its reader ends as one error, with all its fields."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pubc import errors
from pubc.errors import DataError, EnvironmentFailure, MissingExtraError, PubcError
from pubc.formats import ReadOptions, read
from pubc.formats.opening.isolate import Limits, _facts, _raise, _understand
from pubc.formats.opening.open_dataset import open_dataset
from tests.reliability import samples

CHILD = ReadOptions(isolate="on", cache=False)
LIMITS = Limits(memory=1 << 20, processor=5)


@pytest.mark.parametrize("sample", ["npz", "d4rl"])
def test_a_child_reads_what_this_process_reads(tmp_path, sample):
    path = samples.SAMPLES[sample](tmp_path)
    alone, isolated = read(path), open_dataset(path, CHILD)
    assert isolated.isolated
    assert isolated.format == sample
    for name, column in alone.columns.named():
        np.testing.assert_array_equal(dict(isolated.trajectories.columns.named())[name], column)
        assert dict(isolated.trajectories.columns.named())[name].dtype == column.dtype
    assert isolated.trajectories.problems == alone.problems


def test_an_error_keeps_its_fields_on_the_way_out(tmp_path):
    arrays = samples.flat()
    arrays["observations"][6, 1] = np.nan
    path = samples.npz(tmp_path, arrays)
    raised = []
    for options in (ReadOptions(), CHILD):
        with pytest.raises(DataError) as caught:
            read(path, options)
        error = caught.value
        raised.append((str(error), error.code, error.field, error.index, error.count))
    assert raised[0] == raised[1]
    assert raised[1][3] == (1, 1, 1)


@pytest.mark.parametrize(
    "error",
    [
        DataError("x", code="c", field="f", index=3, count=2),
        MissingExtraError("Reading", "lerobot"),
        EnvironmentFailure("the disk is full"),
        errors.UnknownNameError("format", "x", ["y"]),
    ],
)
def test_every_kind_of_error_makes_the_trip(error: PubcError):
    with pytest.raises(type(error)) as caught:
        _raise(_facts(error))
    assert str(caught.value) == str(error)
    assert caught.value.exit_code == error.exit_code
    for name in ("code", "field", "index", "count", "extra"):
        assert getattr(caught.value, name, None) == getattr(error, name, None)


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (-signal.SIGSEGV, "ended by SIGSEGV"),
        (-signal.SIGKILL, "ended by SIGKILL"),
        (-signal.SIGPROF, "used up 5 seconds of processor time"),
        (-signal.SIGXCPU, "used up 5 seconds of processor time"),
        (1, "exit code 1 and without an answer"),
    ],
)
def test_a_death_is_told_in_words(code: int, told: str):
    with pytest.raises(DataError, match=told) as caught:
        _understand(Path("x.hdf5"), b"", code, LIMITS)
    assert caught.value.code == "reader_died"
    assert caught.value.exit_code == 3
    assert "x.hdf5" in str(caught.value)


MISBEHAVED = """
import os
if os.environ.get("PUBC_TEST_READER"):
    import pubc.formats.npz as npz
    def read(path, options, findings):
        exec(os.environ["PUBC_TEST_READER"])
    npz.read = read
"""
CRASH = "import ctypes; ctypes.string_at(0)"
BLOAT = "import numpy; numpy.ones(1 << 31)"
LOOP = "while True: pass"
STUBBORN = "import signal; signal.signal(signal.SIGPROF, signal.SIG_IGN)\n" + LOOP
NETWORK = """
import socket
from pubc.errors import UsageError
try:
    socket.create_connection(("127.0.0.1", int(os.environ["PUBC_TEST_PORT"])), 2)
except OSError as error:
    raise UsageError("no network")
raise UsageError("network")
"""


@pytest.fixture
def misbehave(tmp_path, monkeypatch):
    """Let the npz reader of every child process run some code instead."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(MISBEHAVED)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"), prepend=os.pathsep)

    def choose(code: str) -> None:
        monkeypatch.setenv("PUBC_TEST_READER", code)

    return choose


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (CRASH, "ended by SIGSEGV"),
        (BLOAT, "needs more than the 512 MiB"),
        (LOOP, "used up 1 seconds of processor time"),
        (STUBBORN, "used up 1 seconds of processor time"),
    ],
    ids=["crash", "bloat", "loop", "stubborn"],
)
def test_a_reader_that_misbehaves_dies_alone(tmp_path, misbehave, monkeypatch, code, told):
    monkeypatch.setattr("pubc.formats.opening.isolate.PATIENCE", 1)
    path = samples.npz(tmp_path)
    misbehave(code)
    before = set(os.listdir(os.environ.get("TMPDIR", "/tmp")))
    with pytest.raises(DataError, match=told) as caught:
        read(path, CHILD)
    assert caught.value.code == "reader_died"
    left = set(os.listdir(os.environ.get("TMPDIR", "/tmp"))) - before
    # Other processes may be reading something at the same time.
    assert not [name for name in left if re.match(rf"pubc-.*-{os.getpid()}-", name)]


def under(kilobytes: int, path: Path) -> subprocess.CompletedProcess[str]:
    """Inspect a file in a child where the user has set a memory limit."""
    words = ["inspect", str(path), "--isolate", "on", "--no-cache"]
    return subprocess.run(
        [sys.executable, "-m", "pubc", *words],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (kilobytes << 10,) * 2),
        timeout=120,
    )


def test_a_memory_limit_of_the_user_that_suffices_is_kept(tmp_path):
    done = under(600_000, samples.npz(tmp_path))
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("code", [CRASH, BLOAT], ids=["crash", "bloat"])
def test_a_death_under_a_memory_limit_of_the_user_names_the_limit(tmp_path, misbehave, code):
    path = samples.npz(tmp_path)
    misbehave(code)
    done = under(600_000, path)
    assert done.returncode == 4, done.stderr
    assert "memory limit (ulimit -v) of 600,000 kB; raise it" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_loop_in_a_small_file_is_told_within_five_seconds(tmp_path, misbehave):
    """The whole command, from its start to its sentence, in the time of the processor."""
    path = samples.npz(tmp_path)
    misbehave(LOOP)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "pubc.cli.main", "inspect", str(path), "--isolate", "on"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert done.returncode == 3
    assert str(path) in done.stderr
    assert done.stderr.count("\n") == 1
    assert 3 < used < 5


def test_a_child_has_no_network_where_the_system_allows_it(tmp_path, misbehave, monkeypatch):
    import socket

    allowed = subprocess.run(["unshare", "-n", "true"], capture_output=True, check=False)
    if allowed.returncode:
        pytest.skip("the system does not let us take the network away")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        monkeypatch.setenv("PUBC_TEST_PORT", str(server.getsockname()[1]))
        misbehave(NETWORK)
        with pytest.raises(PubcError, match="no network"):
            read(samples.npz(tmp_path), CHILD)


def test_limits_grow_with_the_dataset(tmp_path):
    (tmp_path / "small").write_bytes(b"x")
    (tmp_path / "large").write_bytes(bytes(10 << 20))
    small, large = Limits.of(tmp_path / "small"), Limits.of(tmp_path / "large")
    assert small.memory == (512 << 20) + 16
    assert large.memory == (512 << 20) + 160 * (1 << 20)
    assert large.processor == small.processor + 10


def test_a_process_that_forks_after_reading_reads_the_same(tmp_path):
    """No HDF5 handle stays open, so none is shared: such handles corrupt what they read."""
    path = samples.d4rl(tmp_path)
    first = read(path).columns.observations.tobytes()
    open_files = [os.readlink(f"/proc/self/fd/{n}") for n in os.listdir("/proc/self/fd")
                  if os.path.lexists(f"/proc/self/fd/{n}")]  # fmt: skip
    assert str(path) not in open_files
    script = (
        "import os, sys; from pubc.formats import read\n"
        f"first = read({str(path)!r}).columns.observations.tobytes()\n"
        "if os.fork() == 0:\n"
        f"    os._exit(read({str(path)!r}).columns.observations.tobytes() != first)\n"
        "sys.exit(os.waitstatus_to_exitcode(os.wait()[1]))"
    )
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert done.returncode == 0
    assert len(first) == 15 * 3 * 4


WAIT = """
import time
time.sleep(60)
"""


def begin_reading(path: Path, temporary: Path) -> tuple[subprocess.Popen[str], int]:
    """A command whose child has begun to parse, and the child."""
    command = subprocess.Popen(
        [sys.executable, "-m", "pubc", "inspect", str(path), "--isolate", "on", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    children = Path(f"/proc/{command.pid}/task/{command.pid}/children")
    until(lambda: any(temporary.glob("pubc-read-*")) and children.read_text().split())
    return command, int(children.read_text().split()[0])


def until(ready) -> None:
    end = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < end
        time.sleep(0.01)


def gone(pid: int) -> bool:
    try:
        return "Z" in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return True


def test_a_killed_parser_is_one_sentence_of_its_command_and_leaves_nothing(tmp_path, misbehave):
    path = samples.npz(tmp_path)
    (tmp_path / "tmp").mkdir()
    misbehave(WAIT)
    command, child = begin_reading(path, tmp_path / "tmp")
    os.kill(child, signal.SIGKILL)
    out, err = command.communicate(timeout=60)
    assert command.returncode == 3
    assert json.loads(out)["error"]["code"] == "reader_died"
    assert err.count("\n") == 1
    assert str(path) in err
    assert os.listdir(tmp_path / "tmp") == []


def test_a_command_killed_while_its_child_parses_leaves_nothing_for_long(tmp_path, misbehave):
    """The child ends with it, and the next command removes what both have left (L7)."""
    path = samples.npz(tmp_path)
    (tmp_path / "tmp").mkdir()
    misbehave(WAIT)
    command, child = begin_reading(path, tmp_path / "tmp")
    command.kill()
    command.communicate()
    until(lambda: gone(child))
    assert len(os.listdir(tmp_path / "tmp")) == 1
    misbehave("")
    done = subprocess.run(
        [sys.executable, "-m", "pubc", "inspect", str(path), "--isolate", "on", "--json"],
        capture_output=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "tmp")},
    )
    assert done.returncode == 0, done.stderr
    assert os.listdir(tmp_path / "tmp") == []
