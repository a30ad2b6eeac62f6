"""Worker processes: start them, hand out tasks, pass their answers on.

Each is a fresh interpreter (never a fork, which would copy the locks of a threaded parent)
with one thread for its sums: the rounding of a matrix product depends on the number of
threads, and trajectories must not.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO, cast

from pubc.errors import DataError, EnvironmentFailure, PubcError, UsageError
from pubc.storage.disk import disk_words, remove, temporary
from pubc.threads import ONE_THREAD
from pubc.version import SOURCE_FOLDER

__all__ = ["Answer", "Limit", "Sizes", "Task", "WorkerPool"]

_PATIENCE = 10.0
"""Seconds that a worker gets to end by itself once its input is closed."""


@dataclass(frozen=True, slots=True)
class Task:
    """Consecutive trajectories of one source."""

    source: str
    """Whose."""
    first: int
    """Index of the first trajectory."""
    count: int
    """How many."""
    most: int | None = None
    """Steps of all together after which the task ends."""
    folder: str | None = None
    """Where to write the part; None plays for the returns alone."""
    number: int = 0
    """Position of the source among all, for the name of the part."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Steps after which a task that is under way ends; 0 where nothing of it is needed."""

    source: str
    """Whose task."""
    first: int
    """Index of its first trajectory."""
    most: int
    """Steps of all its trajectories together."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a task."""

    source: str
    """Whose trajectories."""
    first: int
    """Index of the first."""
    lengths: tuple[int, ...]
    """Steps of each; fewer than asked for where a limit came in between."""
    terminals: tuple[bool, ...]
    """Whether each ended as terminal."""
    returns: tuple[float, ...]
    """Total reward of each."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a worker says of the environment once it stands."""

    observation_size: int
    """Dimensions of one observation."""
    action_size: int
    """Dimensions of one action."""
    time_limit: int
    """Steps after which a trajectory times out."""


class WorkerPool:
    """Workers that play tasks; use it as a context manager."""

    def __init__(self, setup: Mapping[str, Any], processes: int, folder: Path) -> None:
        self._setup = json.dumps(dict(setup))
        self._count = processes
        self._folder = folder
        self._workers: list[subprocess.Popen[str]] = []
        self._heard: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()

    def __enter__(self) -> WorkerPool:
        with disk_words(self._folder):
            # Hidden, and gone with the pool: MuJoCo writes a log of its own to where it runs.
            self._folder = temporary(self._folder / "workers")
            self._folder.mkdir()
        try:
            for number in range(self._count):
                self._workers.append(self._start(number))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.terminate()
        for worker in self._workers:
            try:
                worker.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                worker.kill()
                worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                _close(pipe)
        remove(self._folder)

    def sizes(self) -> Sizes:
        """Wait until every worker has its environment and its policies.

        Raises:
            PubcError: What a worker refused, in its words.
        """
        for _ in self._workers:
            found = self._hear()[1]["ready"]
        return Sizes(**found)

    def work(
        self,
        next_task: Callable[[], Task | None],
        limits: Callable[[], Iterable[Limit]] = tuple,
    ) -> Iterator[Answer]:
        """Play tasks until there is none left and none under way.

        Args:
            next_task: Called whenever a worker is free; None means nothing at the moment, and
                it is asked again after the next answer.
            limits: Called after every answer: which tasks may end earlier than they were told.
        """
        idle = list(range(len(self._workers)))
        busy: dict[tuple[str, int], int] = {}
        while True:
            while idle and (task := next_task()) is not None:
                busy[task.source, task.first] = idle[0]
                self._tell(idle.pop(0), task)
            if not busy:
                return
            number, said = self._hear()
            idle.append(number)
            del busy[said["source"], said["first"]]
            yield Answer(
                said["source"],
                said["first"],
                tuple(said["lengths"]),
                tuple(said["terminals"]),
                tuple(said["returns"]),
            )
            for limit in limits():
                self._tell(busy[limit.source, limit.first], limit)

    def _start(self, number: int) -> subprocess.Popen[str]:
        home = str(SOURCE_FOLDER)
        path = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
        with self._log(number).open("wb") as log:
            worker = subprocess.Popen(
                [sys.executable, "-P", "-m", "pubc.collect.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=self._folder,
                # Nobody watches: looking for a display would take a tenth of a second.
                env={"MUJOCO_GL": "disable", **os.environ, **ONE_THREAD, "PYTHONPATH": path},
                encoding="utf-8",
                # Ctrl-C reaches the parent alone, which then ends its workers in order.
                start_new_session=True,
            )
        threading.Thread(target=self._listen, args=(number, worker), daemon=True).start()
        self._write(worker, self._setup)
        return worker

    def _listen(self, number: int, worker: subprocess.Popen[str]) -> None:
        for line in cast(TextIO, worker.stdout):
            self._heard.put((number, line))
        self._heard.put((number, ""))

    def _hear(self) -> tuple[int, dict[str, Any]]:
        number, line = self._heard.get()
        if not line:
            raise EnvironmentFailure(self._last_words(number))
        said: dict[str, Any] = json.loads(line)
        if "error" in said:
            raise _rebuilt(said["error"])
        return number, said

    def _tell(self, number: int, what: Task | Limit) -> None:
        self._write(self._workers[number], json.dumps(asdict(what)))

    def _write(self, worker: subprocess.Popen[str], line: str) -> None:
        pipe = cast(TextIO, worker.stdin)
        try:
            pipe.write(line + "\n")
            pipe.flush()
        except BrokenPipeError:
            # Its end is heard as the end of its output, with its last words.
            return

    def _log(self, number: int) -> Path:
        return self._folder / f"worker-{number}.log"

    def _last_words(self, number: int) -> str:
        status = self._workers[number].wait(_PATIENCE)
        text = self._log(number).read_text(encoding="utf-8", errors="replace").strip()
        said = f" Its last words: {text.splitlines()[-1]}" if text else ""
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return (
            f"A collector process {how}.{said} What was finished is kept; the same command "
            "goes on from there."
        )


def _rebuilt(facts: Mapping[str, Any]) -> PubcError:
    """The error of a worker, as one of ours."""
    message = str(facts["message"])
    if facts["exit_code"] == DataError.exit_code:
        return DataError(message, code=str(facts["code"]))
    if facts["exit_code"] == EnvironmentFailure.exit_code:
        return EnvironmentFailure(message)
    return UsageError(message)


def _close(pipe: Any) -> None:
    try:
        pipe.close()
    except (BrokenPipeError, ValueError):
        return
