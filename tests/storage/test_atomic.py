"""A write is whole or did not happen, whoever stops it and wherever."""

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pubc import storage
from pubc.errors import DataError, EnvironmentFailure, UsageError
from pubc.storage import append_lines, atomic_file, atomic_folder, read_json, verify, write_json
from pubc.storage import disk as disk_module


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_folder(path: Path, text: str, *, overwrite: bool = False) -> None:
    with atomic_folder(path, kind="test", overwrite=overwrite) as folder:
        (folder / "a.txt").write_text(text)
        (folder / "deep").mkdir()
        (folder / "deep" / "b.txt").write_text(text * 2)


def write_file(path: Path, text: str, *, overwrite: bool = False) -> None:
    with atomic_file(path, overwrite=overwrite) as temporary:
        temporary.write_text(text)


WRITERS = {"file": write_file, "folder": write_folder}


def content(path: Path) -> str | None:
    """What a reader sees: the text of a whole result, or nothing."""
    if not path.exists():
        return None
    if path.is_file():
        return path.read_text()
    assert verify(path) == []
    return (path / "a.txt").read_text()


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_existing_result_is_replaced_only_when_asked(tmp_path, write):
    target = tmp_path / "new" / "result"
    write(target, "old")
    with pytest.raises(UsageError, match="exists already"):
        write(target, "new")
    assert content(target) == "old"
    write(target, "new", overwrite=True)
    assert content(target) == "new"
    assert names(tmp_path / "new") == ["result"]


@pytest.mark.parametrize("write", WRITERS.values(), ids=WRITERS)
def test_an_exception_leaves_the_old_result_and_no_stump(tmp_path, write):
    target = tmp_path / "result"
    write(target, "old")
    door = atomic_file if write is write_file else atomic_folder
    rest = {} if write is write_file else {"kind": "test"}
    with pytest.raises(ZeroDivisionError):  # noqa: PT012, SIM117
        with door(target, overwrite=True, **rest) as temporary:
            (temporary / "x" if temporary.is_dir() else temporary).write_text("half")
            raise ZeroDivisionError
    assert content(target) == "old"
    assert names(tmp_path) == ["result"]


def test_force_never_replaces_a_folder_that_pubc_did_not_write(tmp_path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis.tex").write_text("years")
    with pytest.raises(UsageError, match="pubc did not write"):
        write_folder(home, "new", overwrite=True)
    with pytest.raises(UsageError, match="is a folder, where a file is to be written"):
        write_file(home, "new", overwrite=True)
    assert (home / "thesis.tex").read_text() == "years"


def test_an_empty_folder_may_be_filled(tmp_path):
    (tmp_path / "result").mkdir()
    write_folder(tmp_path / "result", "new", overwrite=True)
    assert content(tmp_path / "result") == "new"


# Each of these is one system call of a write; the process is killed as it enters the n-th.
KILLED = """
import json, os, signal, sys
from pathlib import Path
from tests.storage.test_atomic import WRITERS
import pubc.storage.disk as disk
def write(kind, target, number):
    calls = 0
    def fatal(real):
        def call(*a, **k):
            nonlocal calls
            calls += 1
            if calls == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*a, **k)
        return call
    for name in ("fsync", "replace", "rename", "open", "unlink", "rmdir", "mkdir"):
        setattr(os, name, fatal(getattr(os, name)))
    disk.exchange = fatal(disk.exchange)
    WRITERS[kind](target, "new", overwrite=True)
    return calls
for line in sys.stdin:
    kind, target, number = json.loads(line)
    child = os.fork()
    if not child:
        code = 255
        try:
            code = write(kind, Path(target), number)
        finally:
            os._exit(code)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Forks for each line; answers with the number of calls, or with what killed the fork."""


@pytest.fixture(scope="module")
def writer():
    words = [sys.executable, "-c", KILLED]
    with subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
    ) as process:
        yield process
        process.stdin.close()


def killed(writer: subprocess.Popen, kind: str, target: Path, number: int) -> int:
    writer.stdin.write(json.dumps([kind, str(target), number]) + "\n")
    writer.stdin.flush()
    return int(writer.stdout.readline())


@pytest.mark.parametrize("kind", WRITERS)
def test_a_kill_at_any_system_call_leaves_the_old_result_or_the_new(tmp_path, writer, kind):
    calls = killed(writer, kind, tmp_path / "uncut", 0)
    assert 4 <= calls < 255
    assert content(tmp_path / "uncut") == "new"
    step = max(1, calls // 8)
    for number in [*range(1, calls, step), calls]:
        for old in ("old", None):
            target = tmp_path / f"{number}-{old}" / "result"
            if old:
                WRITERS[kind](target, old)
            assert killed(writer, kind, target, number) == -signal.SIGKILL
            assert content(target) in (old, "new"), f"killed at call {number} of {calls}"
            WRITERS[kind](target, "next", overwrite=True)
            assert content(target) == "next"
            assert names(target.parent) == ["result"], "the next write cleans up"


def test_a_folder_that_was_being_replaced_without_swapping_is_put_back(tmp_path, monkeypatch):
    target = tmp_path / "result"
    write_folder(target, "old")
    monkeypatch.setattr(disk_module.ctypes, "CDLL", lambda *a, **k: object())
    write_folder(target, "new", overwrite=True)
    assert content(target) == "new"
    dead = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"],
                          capture_output=True, text=True, check=True)  # fmt: skip
    hidden = disk_module.temporary(target, "old")
    hidden = hidden.with_name(hidden.name.replace(f"-{os.getpid()}-", f"-{int(dead.stdout)}-"))
    os.rename(target, hidden)  # as a kill between the two renames leaves it
    write_file(tmp_path / "other", "x")
    assert not target.exists(), "only a write to the same place looks after it"
    disk_module.temporary(target)
    assert content(target) == "new"
    assert names(tmp_path) == ["other", "result"]


def test_a_living_process_keeps_its_temporary(tmp_path):
    mine = disk_module.temporary(tmp_path / "result")
    mine.write_text("in progress")
    write_file(tmp_path / "result", "other")
    assert mine.read_text() == "in progress"


FAULTS = {
    errno.ENOSPC: "the disk is full",
    errno.EACCES: "no permission to write there",
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the disk reported an input/output error",
    errno.EDQUOT: "quota",
    errno.EMFILE: "too many open files",
}


@pytest.mark.parametrize("number", FAULTS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", ["fsync", "replace", "open"])
@pytest.mark.parametrize("kind", WRITERS)
def test_what_the_disk_refuses_is_told_in_words(tmp_path, monkeypatch, kind, call, number):
    target = tmp_path / "result"
    WRITERS[kind](target, "old")
    real = getattr(os, call)

    refused = []

    def refuse(*arguments, **rest):
        if refused or (call == "open" and str(tmp_path) not in str(arguments[0])):
            return real(*arguments, **rest)
        refused.append(call)
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, call, refuse)
        with pytest.raises(EnvironmentFailure) as caught:
            WRITERS[kind](target, "new", overwrite=True)
    assert caught.value.exit_code == 4
    assert str(target) in str(caught.value) or str(tmp_path) in str(caught.value)
    assert FAULTS[number] in str(caught.value)
    assert "MiB free" in str(caught.value)
    assert content(target) == "old"
    assert names(tmp_path) == ["result"]


@pytest.fixture
def small_disk(tmp_path):
    """Two megabytes of disk, where the system lets us have one."""
    place = tmp_path / "disk"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "none", str(place)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs the right to mount a tmpfs")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("kind", WRITERS)
def test_a_full_disk_changes_nothing_and_goes_on_after_space_is_made(small_disk, kind):
    target = small_disk / "result"
    WRITERS[kind](target, "old")
    (small_disk / "ballast").write_bytes(bytes((1 << 20) + (1 << 19)))
    with pytest.raises(EnvironmentFailure, match=r"the disk is full \(\d+ MiB free\)"):
        WRITERS[kind](target, "x" * (1 << 20), overwrite=True)
    assert content(target) == "old"
    assert names(small_disk) == ["ballast", "result"]
    (small_disk / "ballast").unlink()
    WRITERS[kind](target, "x" * (1 << 19), overwrite=True)
    assert content(target) == "x" * (1 << 19)


def test_a_read_only_disk_is_told_apart(small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    with pytest.raises(EnvironmentFailure, match="the file system is read-only"):
        write_file(small_disk / "result", "x")


def test_a_path_below_a_file_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(EnvironmentFailure, match="a part of the path is a file, not a folder"):
        write_file(tmp_path / "file" / "result", "x")
    with pytest.raises(EnvironmentFailure, match="the name is too long"):
        write_file(tmp_path / ("n" * 300), "x")


def test_json_is_written_whole_and_read_back(tmp_path):
    write_json(tmp_path / "a.json", {"b": [1, None], "ü": "ß"})
    assert read_json(tmp_path / "a.json") == {"b": [1, None], "ü": "ß"}
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(tmp_path / "b.json", {"x": float("nan")})
    assert names(tmp_path) == ["a.json"]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b"[1]", "bad_json"),
        (b'{"a": ', "bad_json"),
        (b"\xff\xfe{}", "bad_json"),
        (b'{"a":' * 100_000, "bad_json"),
        (b'{"a": ' + b"9" * 5000 + b"}", "bad_json"),
        (b" " * 2000, "too_large"),
    ],
)
def test_json_that_is_none_is_refused(tmp_path, text, code):
    path = tmp_path / "x.json"
    path.write_bytes(text)
    limit = 1000 if code == "too_large" else 64 << 20
    with pytest.raises(DataError) as caught:
        read_json(path, limit=limit)
    assert caught.value.code == code
    assert str(path) in str(caught.value)


def test_a_pipe_in_place_of_json_does_not_hang(tmp_path):
    os.mkfifo(tmp_path / "x.json")
    with pytest.raises(DataError, match="not a file"):
        read_json(tmp_path / "x.json")


def test_a_torn_line_of_somebody_is_not_cut_off(tmp_path):
    path = tmp_path / "journal.jsonl"
    append_lines(path, {"n": 1})
    with path.open("ab") as file:
        file.write(b'{"n": 2, "torn')
    with pytest.raises(DataError, match="last line is not a JSON object"):
        append_lines(path, {"n": 3})
    assert path.read_bytes().endswith(b"torn"), "a file that a user named is never cut"


def test_a_line_that_does_not_fit_leaves_the_journal_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "journal.jsonl"
    append_lines(path, {"n": 1})

    def refuse(_: int) -> None:
        raise OSError(errno.ENOSPC, "full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        with pytest.raises(EnvironmentFailure, match="the disk is full"):
            append_lines(path, {"n": 2})
    assert path.read_text() == '{"n": 1}\n'


def test_every_name_of_the_door_is_there():
    for name in storage.__all__:
        assert getattr(storage, name) is not None


def test_half_a_line_goes_only_where_a_note_proves_it_ours(tmp_path):
    from pubc.storage.disk import temporary

    path = tmp_path / "records.jsonl"
    append_lines(path, {"a": 1})
    whole = path.read_bytes()
    line = '{"b": 2}\n'
    note = temporary(path)
    gone = note.with_name(note.name.replace(f"-{os.getpid()}-", "-4194305-"))
    gone.write_text(json.dumps({"at": len(whole), "lines": line}))
    path.write_bytes(whole + b'{"b"')
    append_lines(path, {"c": 3})
    assert path.read_bytes() == whole + b'{"c": 3}\n'
    assert not gone.exists()
    gone.write_text(json.dumps({"at": len(whole), "lines": line}))
    path.write_bytes(whole + b"my own notes")  # a stranger's, although a note is there
    with pytest.raises(DataError, match="not a JSON object"):
        append_lines(path, {"c": 3})
    assert path.read_bytes() == whole + b"my own notes"


def test_what_came_to_stand_there_meanwhile_stays(tmp_path):
    def draw() -> None:
        with atomic_file(tmp_path / "film.gif") as new:
            new.write_bytes(b"ours")
            (tmp_path / "film.gif").write_bytes(b"mine")

    with pytest.raises(UsageError, match="exists already"):
        draw()
    assert (tmp_path / "film.gif").read_bytes() == b"mine"
    assert [path.name for path in tmp_path.iterdir()] == ["film.gif"]
