"""Nothing of a hostile dataset is executed, and nothing outside it is opened.

Goal R11 of docs/dev/check-full.md.
"""

import ctypes
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from pubc.cli.main import main
from tests.reliability.hostile import TRAPS, Place, Trap

ROOT = Path(__file__).parents[2]
_IN_OPEN, _IN_ACCESS = 0x20, 0x1


class OpenWatch:
    """Tells which files of a folder were opened, by whomever: libhdf5 asks no audit hook."""

    def __init__(self, folder: Path) -> None:
        self.library = ctypes.CDLL(None, use_errno=True)
        self.handle = self.library.inotify_init1(os.O_NONBLOCK)
        self.names = {}
        for file in [f for f in folder.rglob("*") if f.is_file()]:
            mask = ctypes.c_uint32(_IN_OPEN | _IN_ACCESS)
            self.names[self.library.inotify_add_watch(self.handle, os.fsencode(file), mask)] = file

    def opened(self) -> list[str]:
        found = []
        try:
            data = os.read(self.handle, 1 << 16)
            while data:
                number, _, _, size = struct.unpack_from("iIII", data)
                found.append(str(self.names.get(number)))
                data = data[16 + size :]
        except BlockingIOError:
            pass
        os.close(self.handle)
        return found


@pytest.fixture(scope="module")
def watched():
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-m", "tests.reliability.watched_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )

    def read(path: Path, root: Path) -> dict:
        process.stdin.write(json.dumps([str(path), str(root)]).encode() + b"\n")
        process.stdin.flush()
        return json.loads(process.stdout.readline())

    yield read
    process.kill()
    process.communicate()


@pytest.fixture
def place(tmp_path):
    for name in ("inside", "outside"):
        (tmp_path / name).mkdir()
    (tmp_path / "outside" / "secret").write_text("none of its business")
    return Place(tmp_path / "inside", tmp_path / "outside", tmp_path / "canary")


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name.replace(" ", "_"))
def test_a_trap_does_nothing(trap: Trap, place: Place, watched):
    path = trap.make(place)
    watch = OpenWatch(place.outside)
    answer = watched(path, place.folder)
    assert answer["violations"] == []
    assert watch.opened() == []
    assert not place.canary.exists()
    if trap.refused:
        assert answer.get("code"), answer
        assert not answer["unforeseen"], answer
    else:
        assert "set" in answer, answer


def test_the_corpus_is_as_large_as_promised():
    assert len(TRAPS) >= 40
    assert len({trap.name for trap in TRAPS}) == len(TRAPS)


def test_the_watch_sees_what_it_is_there_for(place: Place, watched):
    """The worker reports an opening outside, and the kernel's watch sees one too."""
    watch = OpenWatch(place.outside)
    (place.folder / "data.npz").write_bytes(b"PK")
    answer = watched(place.folder / "data.npz", place.outside)
    assert any("data.npz" in violation for violation in answer["violations"])
    (place.outside / "secret").read_text()
    assert watch.opened()


@pytest.mark.parametrize("flag", ["--isolate=on", "--isolate=off"])
def test_no_control_character_of_a_dataset_reaches_the_terminal(tmp_path, capsys, flag):
    import numpy as np

    from tests.reliability.samples import flat, npz

    evil = "\x1b]0;owned\x07\x1b[31m\r\x9b2J\u202eevil\x00"
    arrays = flat() | {
        "lengths": np.array([5, 4, 6]),
        "ids": np.array([evil + str(i) for i in range(3)]),
        "sources": np.array([evil] * 3),
        f"extra{evil}": np.zeros(15),
        "metadata": np.array(json.dumps({evil: evil})),
    }
    arrays["rewards"][0] = np.nan
    path = npz(tmp_path, arrays).rename(tmp_path / "a\x1b[31mb.npz")
    for words in ([], ["--json"], ["--strict"], ["--action-key", evil]):
        main(["inspect", str(path), flag, *words])
        told = capsys.readouterr()
        for text in (told.out, told.err):
            assert not [c for c in text if not c.isprintable() and c != "\n"], text
