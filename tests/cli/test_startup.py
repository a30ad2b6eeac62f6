"""The first moments and the edges of a command: interrupts, memory limits, warnings (L7)."""

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pubc
from tests.pu.piles import pile
from tests.reliability import samples

CODE = """
import os, signal, sys, runpy
wanted, number = sys.argv.pop(1), int(sys.argv.pop(1))
class Strike:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), number)
sys.meta_path.insert(0, Strike())
runpy.run_module("pubc", run_name="__main__", alter_sys=True)
"""


def strike(module: str, number: int, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command that gets a signal at the moment when it loads a module."""
    return subprocess.run(
        [sys.executable, "-c", CODE, module, str(number), *words],
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    ("module", "number"),
    [
        *((module, signal.SIGINT) for module in (
            "pubc.cli.main", "pubc.cli.startup", "pubc.errors", "pubc.cli.parsing", "tyro",
            "numpy", "numpy._core.multiarray")),
        ("pubc.cli.main", signal.SIGTERM), ("tyro", signal.SIGTERM), ("numpy", signal.SIGHUP),
    ],
)  # fmt: skip
def test_an_interrupt_while_libraries_load_is_one_sentence(module, number, tmp_path):
    done = strike(module, number, "inspect", str(tmp_path / "nowhere.npz"), "--json")
    assert done.returncode == 5, done.stderr
    assert done.stderr == "pubc: interrupted.\n"
    assert json.loads(done.stdout)["error"]["exit_code"] == 5


@pytest.mark.parametrize("module", ["pubc.cli", "pubc.cli.early_interrupt"])
def test_an_interrupt_before_the_first_sentence_can_be_said_is_silent(module):
    done = strike(module, signal.SIGINT, "--version")
    assert done.returncode == -signal.SIGINT
    assert done.stdout + done.stderr == ""


def test_nothing_loads_before_the_first_line_and_an_import_leaves_signals_alone():
    code = (
        "import sys, _signal; before = set(sys.modules); import pubc.__main__; "
        "assert set(sys.modules) - before == {'pubc', 'pubc.__main__'}, sys.modules; "
        "assert _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_after_the_last_word_is_one_sentence(number):
    """Python takes itself apart, which is a trace where an exception strikes."""
    code = (
        "import atexit, os, sys; sys.argv = ['pubc', '--version']; "
        f"atexit.register(os.kill, os.getpid(), {int(number)}); "
        "from pubc.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 5
    assert done.stderr == "pubc: interrupted.\n"


def test_an_interrupt_while_the_result_is_printed_is_one_sentence(monkeypatch, capsys):
    from pubc.cli import main as module

    def interrupted(document):
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_dump", interrupted)
    monkeypatch.setattr(module, "_forget_output", lambda: None)
    assert module.main(["formats", "--json"]) == 5
    assert capsys.readouterr().err == "pubc: interrupted.\n"


@pytest.mark.parametrize("kilobytes", [40_000, 100_000, 120_000, 140_000, 300_000, 700_000])
@pytest.mark.parametrize("command", ["filter", "inspect"])
def test_a_memory_limit_ends_in_exit_code_4_or_is_enough(kilobytes, command, tmp_path):
    data = samples.npz(tmp_path)
    more = ["--out", str(tmp_path / "run"), "--seed-episodes", "0"] if command == "filter" else []

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (kilobytes << 10, kilobytes << 10))

    done = subprocess.run(
        [sys.executable, "-m", "pubc", command, str(data), *more],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        timeout=120,
    )
    assert done.returncode in ((4,) if command == "filter" or kilobytes < 140_000 else (0, 4))
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert "memory" in done.stderr


STRUCK_WHERE_PYTHON_PASSES_OVER = """
import os, signal, sys, threading, time, weakref
from pubc.cli.startup import begin_work

class Thing:
    pass

def strike(_):
    os.kill(os.getpid(), getattr(signal, sys.argv[1]))

def start_slowly(thread, start=threading.Thread.start):
    start(thread)
    time.sleep(0.1)

{before}
begin_work()
thing = Thing()
{after}
try:
    del thing
    time.sleep(5)
except KeyboardInterrupt:
    time.sleep(0.2)
    sys.exit(5)
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "kept = weakref.ref(thing, strike)"),
        ("threading.Thread.start = start_slowly", "kept = weakref.ref(thing, strike)"),
        ("Thing.__del__ = lambda self: 1 / 0; sys.unraisablehook = strike", ""),
    ],
    ids=["callback of a weak reference", "the same on a busy machine", "told of another fault"],
)
def test_an_interrupt_where_python_passes_over_exceptions_is_heard(before, after):
    program = STRUCK_WHERE_PYTHON_PASSES_OVER.format(before=before, after=after)
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        done = subprocess.run(
            [sys.executable, "-c", program, name], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (5, "")


def test_a_library_that_turns_an_interrupt_into_bad_data_is_seen_through():
    """As safetensors does where a signal strikes while it looks at torch."""
    program = """
import os, signal, sys
from pubc.cli.main import main
from pubc.errors import DataError
import pubc.cli.data.inspect_command as command

def run(self):
    try:
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    except KeyboardInterrupt:
        raise DataError("no shape of a storage", code="bad_weights") from None

real = command.Inspect.run
command.Inspect.run = run
first = main(["inspect", sys.argv[2]])
command.Inspect.run = real
second = main(["inspect", "nowhere.npz"])
sys.exit(10 * first + second)
"""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        words = [sys.executable, "-c", program, name, "any.npz"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert done.returncode in (52, 53), done.stderr  # interrupted, then a mistake of its own
        assert done.stderr.startswith("pubc: interrupted.\n")
        assert done.stderr.count("interrupted") == 1


def test_an_interrupt_between_the_last_word_and_the_end_is_one_sentence():
    program = """
import pubc.cli.main

def main():
    raise KeyboardInterrupt

pubc.cli.main.main = main
from pubc.__main__ import main as program
program()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (5, "pubc: interrupted.\n")


@pytest.mark.parametrize("files", [10, 20, 40, 64])
def test_a_limit_on_open_files_is_one_sentence_or_enough(files, tmp_path):
    run = ["--out", str(tmp_path / "run"), "--seed-episodes", "0", "--engine", "processes"]
    program = "pubc" if files < 64 else "tests.brisk"

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    done = subprocess.run(
        [sys.executable, "-m", program, "filter", str(samples.npz(tmp_path)), *run],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        timeout=120,
    )
    if files < 64:
        assert (done.returncode, done.stderr.count("\n")) == (4, 1)
        assert "files may be open" in done.stderr
    else:
        assert done.returncode == 0, done.stderr


def test_a_limit_on_processor_time_ends_like_a_polite_kill(tmp_path):
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (3, 60))

    done = subprocess.run(
        [sys.executable, "-m", "pubc", "demo", "--out", str(tmp_path / "demo")],
        capture_output=True,
        text=True,
        preexec_fn=limit,
        timeout=120,
    )
    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr


def test_rewards_beyond_all_bounds_raise_no_warning(tmp_path):
    arrays = samples.flat()
    arrays["rewards"] = np.full(len(arrays["rewards"]), 1e308)
    data = samples.npz(tmp_path, arrays)
    done = subprocess.run(
        [sys.executable, "-m", "pubc", "inspect", str(data)], capture_output=True, text=True
    )
    assert done.returncode in (0, 3)
    assert "Warning" not in done.stderr


def test_a_warning_of_a_library_is_one_line_without_code():
    code = (
        "import sys, warnings; from pubc.cli import main; "
        "main._parse = lambda words: type('C', (), "
        "{'run': lambda self: warnings.warn('odd\\nnumber', RuntimeWarning) or {}})(); "
        "sys.exit(main.main(['inspect']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "pubc: a library warns: odd number\n"


def test_a_process_made_deaf_to_interrupts_stays_so():
    code = (
        "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); "
        "from pubc.cli.startup import begin_quietly, begin_work; begin_quietly(); begin_work(); "
        "assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=dict(os.environ))


def test_libraries_leave_nothing_among_temporary_files(tmp_path):
    pytest.importorskip("onnxruntime")
    pubc.save(tmp_path / "d.npz", pile([4, 4], steps=30, states=3))
    (tmp_path / "temporary").mkdir()
    for line in (
        "train d.npz --out policy --algo dwbc --top 0.5 --updates 2 --device cpu",
        "export policy policy.onnx",
    ):
        done = subprocess.run(
            [sys.executable, "-m", "pubc", *line.split()],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path / "temporary")},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert not [*(tmp_path / "temporary").iterdir()]


@pytest.mark.parametrize(
    ("name", "said", "stays"),
    [
        *(("OMP_NUM_THREADS", said, False) for said in ("0", "abc", "-3", "", "2,", "9" * 30)),
        *(("OMP_NUM_THREADS", said, True) for said in ("1", " 2 ", "4,2")),
        ("MKL_NUM_THREADS", "0", False), ("MKL_NUM_THREADS", "8", True),
        ("OMP_SCHEDULE", "often", False), ("OMP_SCHEDULE", "static,9999999999", False),
        ("OMP_SCHEDULE", "monotonic:Dynamic, 4", True),
        ("OMP_STACKSIZE", "much", False), ("OMP_STACKSIZE", "4M", True),
        ("OMP_DYNAMIC", "maybe", False), ("OMP_DYNAMIC", "TRUE", True),
        ("OMP_PROC_BIND", "tight", False), ("OMP_PROC_BIND", "spread,close", True),
        ("OMP_PLACES", "everywhere", False), ("OMP_PLACES", "{0:4},{4:4}", True),
        ("OMP_PLACES", "cores(2)", True), ("GOMP_CPU_AFFINITY", "all", False),
        ("GOMP_CPU_AFFINITY", "0-3 5", True), ("GOMP_SPINCOUNT", "ages", False),
        ("GOMP_SPINCOUNT", "infinity", True), ("GOMP_STACKSIZE", "much", False),
    ],
)  # fmt: skip
def test_a_setting_that_libraries_cannot_use_is_forgotten(monkeypatch, name, said, stays):
    from pubc.cli.startup import forget_odd_settings

    monkeypatch.setenv(name, said)
    forget_odd_settings()
    assert os.environ.get(name) == (said if stays else None)


def test_libraries_do_not_complain_of_odd_settings(tmp_path):
    odd = {"OMP_NUM_THREADS": "0", "MKL_NUM_THREADS": "abc", "OMP_SCHEDULE": "often",
           "OMP_PROC_BIND": "tight", "OMP_PLACES": "everywhere"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "pubc", "filter", str(samples.npz(tmp_path)), "--seed-episodes", "0",
         "--dry-run"],
        env={**os.environ, **odd},
        capture_output=True,
        text=True,
        timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "libgomp" not in done.stderr
    assert "a library warns" not in done.stderr


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_command_that_was_made_deaf_to_a_signal_goes_on(name: str):
    program = f"""
import os, signal
from pubc.cli.startup import begin_work

signal.signal(signal.{name}, signal.SIG_IGN)  # as nohup does
begin_work()
os.kill(os.getpid(), signal.{name})
print("goes on")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "goes on\n")
