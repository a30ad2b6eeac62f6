"""However a command ends: one sentence, a code of the table, no traceback.

Goals R17 and R18 of docs/dev/check-full.md.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from pubc.cli import main as main_module
from pubc.cli.main import COMMANDS, _ours, main
from tests.cli.calling import run
from tests.reliability import samples

CODES = {0, 2, 3, 4, 5, 6}


def is_one_sentence(text: str) -> bool:
    return text.startswith("pubc: ") and text.count("\n") == 1 and "Traceback" not in text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_teaches_every_command(capsys, command):
    code, out, err = run(capsys, command, "--help")
    assert (code, err) == (0, "")
    assert "--json" in out


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_flag_is_one_sentence_and_one_document(capsys, command):
    code, out, err = run(capsys, command, "--no-such-flag")
    assert code == 2
    assert out == ""
    assert is_one_sentence(err), err
    code, out, err = run(capsys, command, "--no-such-flag", "--json")
    assert code == 2
    assert json.loads(out)["error"]["exit_code"] == 2


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (["inspct"], 2, "No command named 'inspct'. Did you mean 'inspect'?"),
        (["inspect"], 2, "Missing from pubc inspect"),
        (["inspect", "NOTHING"], 2, "does not exist"),
        (["inspect", "DATA", "more"], 2, "Unrecognized options: more"),
        (["inspect", "DATA", "--format", "d4lr"], 2, "Did you mean 'd4rl'?"),
        (["inspect", "DATA", "--episode-length", "many"], 2, "--episode-length"),
        (["inspect", "DATA", "--isolate", "maybe"], 2, "invalid choice 'maybe'"),
        (["inspect", "DATA", "--trailing", "eat"], 2, "invalid choice 'eat'"),
        (["inspect", "DATA", "--action-key", "torque"], 3, "torque: no such array"),
        (["inspect", "DATA", "--reward-key", "gain"], 3, "gain: no such array"),
        (["inspect", "DATA", "--observation-keys", "image"], 3, "image: no such array"),
        (["inspect", "DATA", "--format", "d4rl"], 3, "HDF5"),
        (["inspect", "BARE", "--episode-length", "0"], 2, "must be at least 1"),
        (["verify", "NOTHING"], 2, "does not exist"),
        (["verify", "DATA"], 2, "nothing to verify it against"),
        (["verify"], 2, "Missing from pubc verify"),
        (["formats", "extra"], 2, "Unrecognized options: extra"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else None,
)
@pytest.mark.parametrize("as_json", [False, True], ids=["text", "json"])
def test_bad_usage_says_what_to_do(capsys, tmp_path, words, code, told, as_json):
    bare = samples.flat()
    del bare["terminals"], bare["timeouts"]
    (tmp_path / "bare").mkdir()
    places = {
        "DATA": str(samples.npz(tmp_path)),
        "BARE": str(samples.npz(tmp_path / "bare", bare)),
        "NOTHING": str(tmp_path / "nothing"),
    }
    words = [places.get(word, word) for word in words]
    found, out, err = run(capsys, *words, *(["--json"] if as_json else []))
    assert found == code, err
    assert told in err
    assert is_one_sentence(err), err
    if as_json:
        error = json.loads(out)["error"]
        assert (error["exit_code"], told in error["message"]) == (code, True)
    else:
        assert out == ""


@pytest.mark.parametrize(
    ("sample", "library", "extra"),
    [
        ("lerobot", "pyarrow", "lerobot"),
        ("trifinger", "zarr", "zarr"),
        ("diffusion", "zarr", "zarr"),
    ],
)
def test_a_missing_extra_is_named(capsys, tmp_path, monkeypatch, sample, library, extra):
    path = samples.SAMPLES[sample](tmp_path)
    for name in [n for n in sys.modules if n.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    code, _, err = run(capsys, "inspect", str(path), "--isolate", "off", "--no-cache")
    assert code == 2, err
    assert f"[{extra}]" in err.split("pip install --constraint")[1]
    assert is_one_sentence(err)


def test_a_path_without_permission_is_an_environment_failure(capsys, tmp_path, monkeypatch):
    path = samples.npz(tmp_path)

    def refuse(*arguments, **rest):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("zipfile.ZipFile.__init__", refuse)
    monkeypatch.setattr("pubc.formats.npz_archive._ZIP_FAULTS", ())
    code, _, err = run(capsys, "inspect", str(path))
    assert code == 4
    assert is_one_sentence(err)


class Explodes:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def run(self) -> dict:
        raise self.error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (MemoryError(), 4),
        (OSError(28, "No space left on device", "/x"), 4),
        (KeyboardInterrupt(), 5),
        (ZeroDivisionError("a bug"), 1),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_whatever_happens_ends_in_one_sentence(capsys, monkeypatch, error, code):
    monkeypatch.setattr(main_module, "_parse", lambda words: Explodes(error))
    found, out, err = run(capsys, "inspect", "x", "--json")
    assert found == code
    assert is_one_sentence(err)
    assert json.loads(out)["error"]["exit_code"] == code


def test_a_bug_shows_its_trace_only_when_asked(capsys, monkeypatch):
    monkeypatch.setattr(main_module, "_parse", lambda words: Explodes(ZeroDivisionError("x")))
    assert "Please report it" in run(capsys, "inspect", "x")[2]
    monkeypatch.setenv("PUBC_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main(["inspect", "x"])


def test_a_result_that_is_no_number_is_null_in_json(capsys, monkeypatch):
    class Odd:
        def run(self) -> dict:
            return {"a": float("nan"), "b": [float("inf"), 1.5], "c": {"d": -float("inf")}}

    monkeypatch.setattr(main_module, "_parse", lambda words: Odd())
    assert json.loads(run(capsys, "inspect", "x", "--json")[1]) == {
        "a": None,
        "b": [None, 1.5],
        "c": {"d": None},
    }


STRICT = [sys.executable, "-X", "dev", "-W", "error", "-m", "pubc.cli.main"]


@pytest.mark.parametrize("words", [["inspect", "DATA"], ["inspect", "DATA", "--json"],
                                   ["formats"], ["verify", "STORE"], ["--help"], ["--version"],
                                   ["inspect", "BAD"]])  # fmt: skip
def test_no_warning_of_ours_under_python_development_mode(tmp_path, words):
    bad = samples.flat()
    bad["actions"] = bad["actions"][:3]
    (tmp_path / "bad").mkdir()
    places = {
        "DATA": str(samples.npz(tmp_path)),
        "STORE": str(samples.SAMPLES["store"](tmp_path)),
        "BAD": str(samples.npz(tmp_path / "bad", bad)),
    }
    done = subprocess.run(
        [*STRICT, *(places.get(word, word) for word in words)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == (3 if "BAD" in words else 0), done.stderr
    assert "Traceback" not in done.stderr
    assert "Warning" not in done.stderr
    assert done.stderr.count("\n") == (1 if "BAD" in words else 0)


SHELL = f"{sys.executable} -m pubc inspect %s"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (SHELL + " | head -1 > /dev/null; exit ${PIPESTATUS[0]}", 0),
        (SHELL + " --json | true; exit ${PIPESTATUS[0]}", 0),
        (SHELL + " > /dev/full", 4),
        (SHELL + " --json > /dev/full", 4),
        (SHELL + " >&-", 0),
        (SHELL + " <&-", 0),
        ("PYTHONIOENCODING=ascii " + SHELL + " > /dev/null", 0),
        ("cd / && mkdir -p /tmp/gone && cd /tmp/gone && rmdir /tmp/gone && " + SHELL, 0),
    ],
)
def test_odd_surroundings_do_not_end_in_a_traceback(tmp_path, line, code):
    path = samples.npz(tmp_path)
    done = subprocess.run(["bash", "-c", line % path], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_command_politely_and_leaves_nothing(tmp_path, number):
    """The reader waits in a child on a dataset that never ends: a pipe in its folder."""
    script = (
        # A shell that starts the tests in the background has them ignore Ctrl-C.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys, time; from pubc.cli import main\n"
        "from pubc.cli.data import inspect_command as inspect\n"
        "def run(self):\n"
        "    print('ready', flush=True); time.sleep(30)\n"
        "inspect.Inspect.run = run\n"
        "sys.exit(main.main(['inspect', 'x']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    start = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=10)
    assert time.monotonic() - start < 10
    assert process.returncode == 5
    assert err == "pubc: interrupted.\n"


def test_only_codes_of_the_table_are_documented(capsys):
    _, out, _ = run(capsys, "--help")
    told = {int(n) for n in re.findall(r"\b(\d) [a-z]", out.split("Exit codes:")[1])}
    assert told == CODES
    assert run(capsys)[0] == 2


def test_a_dataset_larger_than_the_terminal_is_still_one_line_per_fact(capsys, tmp_path):
    arrays = samples.flat() | {f"extra{n}": np.zeros(15) for n in range(30)}
    _, out, _ = run(capsys, "inspect", str(samples.npz(tmp_path, arrays)))
    assert "and 19 more" in out
    assert os.linesep.join(out.splitlines()) == out.rstrip()


def test_a_library_that_was_interrupted_while_it_loaded_is_an_interrupt():
    failed = ImportError("initialization failed")
    failed.__cause__ = KeyboardInterrupt()
    assert _ours(failed).exit_code == 5


@pytest.mark.parametrize("columns", ["1", "5", "0", "-3"])
def test_help_is_there_on_the_narrowest_terminal(columns):
    words = [sys.executable, "-m", "pubc", "filter", "--help"]
    env = {**os.environ, "COLUMNS": columns}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=env, timeout=60)
    assert "--seed-episodes" in done.stdout
