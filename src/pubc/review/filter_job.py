"""The filter at work behind the page, in a child process that ends with the server.

Each run gets a folder of its own beside labels.json and a copy of the labels that it was asked
with, so that marks which come later change nothing about it. What the page shows of a run is read
from its folder; a server that starts again finds the run, finished or interrupted, and goes on.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from pubc.errors import InterruptedRun, LockedError, UsageError
from pubc.formats import ReadOptions
from pubc.labels import Labels, read_labels, save_labels
from pubc.runs.folder.run_folder import RunFolder
from pubc.storage import lock

__all__ = ["FilterJob", "Progress"]

_NAME = re.compile(r"run-(\d{3,})(?:\.labels\.json)?")
_STOPPED = (0, InterruptedRun.exit_code, -signal.SIGTERM, -signal.SIGKILL, -signal.SIGINT)
"""How a child ends that finished or was stopped; what it did can be gone on with."""
_PATIENCE = 20.0
"""Seconds that a child is given to stop politely."""


@dataclass(frozen=True, slots=True)
class Progress:
    """Where the latest run stands."""

    state: str
    """`none`, `running`, `interrupted`, `failed` or `finished`."""
    number: int = 0
    """Number of the run."""
    rounds: list[dict[str, Any]] = field(default_factory=list)
    """What each finished round said: `round`, `kept`, `changed`."""
    seconds: float = 0.0
    """Since this server started it."""
    error: str = ""
    """Why it failed."""


class FilterJob:
    """Runs of the filter on one dataset, one at a time."""

    def __init__(self, folder: Path, data: Path, reading: ReadOptions) -> None:
        self._folder = folder
        self._data = data
        self._reading = reading
        self._child: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        self._current = 0

    @property
    def number(self) -> int:
        """Number of the latest run; 0 before the first."""
        if not self._folder.is_dir():
            return 0
        found = [_NAME.fullmatch(path.name) for path in self._folder.iterdir()]
        return max((int(match.group(1)) for match in found if match), default=0)

    def _free_number(self) -> int:
        """The number of the next run: a log of that name is somebody else's and stays."""
        number = self.number + 1
        while os.path.lexists(self._log(number)):
            number += 1
        return number

    def path(self, number: int) -> Path:
        """Folder of a run."""
        return self._folder / f"run-{number:03d}"

    def words(self) -> str:
        """The command that a run of the page is, with the names of the next one."""
        labels, out = self._folder / "labels.json", self.path(self._free_number())
        return shlex.join(["pubc", *self._flags(labels, out)])

    def start(self, labels: Labels) -> int:
        """Start a run with these labels, or go on with an interrupted one that had the same.

        Raises:
            UsageError: One is at work already.
        """
        now = self.progress()
        if now.state != "running":
            self.stop()  # closes the pipe of a child that has ended
        if now.state == "running":
            raise UsageError("A run is at work already. Wait for it, or stop it.")
        number = self.number
        if now.state != "interrupted" or self._asked(number) != labels:
            number = self._free_number()
            save_labels(self._labels(number), labels, self._data)
        request = {
            "data": str(self._data),
            "labels": str(self._labels(number).resolve()),
            "out": str(self.path(number)),
            "reading": dataclasses.asdict(self._reading),
        }
        with self._log(number).open("wb") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-m", "pubc.review.filter_child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.write(json.dumps(request).encode() + b"\n")
            self._child.stdin.flush()
        self._began, self._current = time.monotonic(), number
        return number

    def stop(self) -> None:
        """Stop the run at work; what it did is kept."""
        if self._child is None:
            return
        if self._child.poll() is None:
            self._child.terminate()
            try:
                self._child.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                self._child.kill()
                self._child.wait()
        if self._child.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()

    def progress(self) -> Progress:
        """Where the latest run stands."""
        own, current = self._child, self._current
        code = None if own is None else own.poll()
        if own is not None and code is None:
            seconds = time.monotonic() - self._began
            return Progress("running", current, _rounds(self.path(current)), seconds)
        if own is not None and code not in _STOPPED:
            return Progress("failed", current, error=self._last_words(current, code))
        number = self.number
        if not number:
            return Progress("none")
        folder = RunFolder(self.path(number))
        state = (
            "finished" if folder.finished else "running" if _held(folder.path) else "interrupted"
        )
        return Progress(state, number, _rounds(folder.path))

    def finished(self) -> list[int]:
        """Numbers of the finished runs, the latest last."""
        return [n for n in range(1, self.number + 1) if RunFolder(self.path(n)).finished]

    def _labels(self, number: int) -> Path:
        return self._folder / f"run-{number:03d}.labels.json"

    def _log(self, number: int) -> Path:
        return self._folder / f"run-{number:03d}.log"

    def _asked(self, number: int) -> Labels | None:
        path = self._labels(number)
        return read_labels(path) if path.exists() else None

    def _flags(self, labels: Path, out: Path) -> list[str]:
        words = ["filter", str(self._data), "--labels", str(labels), "--out", str(out)]
        return words + _reading_flags(self._reading)

    def _last_words(self, number: int, code: int | None) -> str:
        text = self._log(number).read_text(encoding="utf-8", errors="replace").strip()
        last = text.splitlines()[-1] if text else f"The filter ended with code {code}."
        return last[:2000]


def _reading_flags(reading: ReadOptions) -> list[str]:
    """Reading options as flags, those that differ from what commands start from."""
    usual = ReadOptions(isolate="auto")
    words: list[str] = []
    for option in dataclasses.fields(reading):
        value = getattr(reading, option.name)
        if value == getattr(usual, option.name):
            continue
        flag = option.name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{flag}" if value else f"--no-{flag}")
        else:
            words += [f"--{flag}", *map(str, value if isinstance(value, tuple) else (value,))]
    return words


def _rounds(path: Path) -> list[dict[str, Any]]:
    with contextlib.suppress(OSError, ValueError, KeyError), _opened(path) as file:
        whole = file.read()
        lines = whole[: whole.rfind("\n") + 1].splitlines()
        found = [json.loads(line) for line in lines]
        return [{name: line[name] for name in ("round", "kept", "changed")} for line in found]
    return []


def _opened(path: Path) -> IO[str]:
    return (path / "rounds.jsonl").open(encoding="utf-8")


def _held(path: Path) -> bool:
    """Whether a living process works on a run that an earlier server started."""
    if not path.is_dir():
        return False
    try:
        with lock(path):
            return False
    except LockedError:
        return True
