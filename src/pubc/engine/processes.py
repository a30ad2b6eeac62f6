"""The engine for one machine: worker processes, replaced when they die.

Each worker is a fresh interpreter (never a fork, which would copy the locks of a threaded
parent and the handles of libhdf5) and the only holder of its end of a socket: the socket
ends when the worker does, however it dies. In turn a worker ends at once when its parent
does, so that nothing computes on for nobody.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from pubc.engine.outcomes import (
    RETRIES,
    WORKER_DIED,
    Failure,
    Job,
    Outcome,
    attempt,
    failure_of,
)
from pubc.errors import UsageError
from pubc.threads import ONE_THREAD
from pubc.version import SOURCE_FOLDER

__all__ = ["Processes"]

_PULSE = 1.0
"""Seconds after which workers are looked after even if nobody answers."""


@dataclass(frozen=True, slots=True, eq=False)
class _Worker:
    """A worker process and the line to it."""

    process: subprocess.Popen[bytes]
    line: Connection

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self) -> None:
        # It is the leader of a session of its own: what it started goes with it.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.line.close()


class Processes:
    """Works through items in processes of this machine."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._idle: list[_Worker] = []
        self._busy: dict[_Worker, Job] = {}

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers; the next items get new ones."""
        for worker in [*self._idle, *self._busy]:
            worker.end()
        self._idle, self._busy = [], {}

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        """Apply a function to every item; see `pubc.engine.Engine`."""
        waiting = deque(Job(index, item) for index, item in enumerate(items))
        try:
            while waiting or self._busy:
                while waiting and len(self._busy) < self.workers:
                    self._hand_out(function, waiting.popleft())
                for worker in self._ready():
                    outcome = self._collect(worker, waiting)
                    if outcome is not None:
                        yield outcome
        finally:
            # The caller went away or something broke: what is under way is for nobody.
            for worker in self._busy:
                worker.end()
            self._busy = {}

    def _hand_out(self, function: Callable[[Any], Any], job: Job) -> None:
        worker = self._hire()
        self._busy[worker] = job
        try:
            worker.line.send((function, job.item))
        except OSError:
            return  # it died already, which is found out like any other death
        except Exception as error:
            raise UsageError(
                f"An engine needs a function that can be imported and plain items: {error}."
            ) from error

    def _hire(self) -> _Worker:
        while self._idle:
            worker = self._idle.pop()
            if worker.alive:
                return worker
            worker.end()
        return _start()

    def _ready(self) -> list[_Worker]:
        """Busy workers that have answered or died; waits a moment for the first."""
        lines: dict[Any, _Worker] = {worker.line: worker for worker in self._busy}
        heard = {lines[line] for line in wait(list(lines), _PULSE)}
        return [worker for worker in self._busy if worker in heard or not worker.alive]

    def _collect(self, worker: _Worker, waiting: deque[Job]) -> Outcome | None:
        job = self._busy[worker]
        try:
            if not worker.line.poll():
                raise EOFError
            value, error = worker.line.recv()
        except (EOFError, OSError):
            del self._busy[worker]
            worker.end()
            if job.deaths < RETRIES:
                waiting.append(job.again())
                return None
            return Outcome(job.index, error=_died(worker.process.returncode, job.deaths + 1))
        del self._busy[worker]
        self._idle.append(worker)
        return Outcome(job.index, value, error)


def _died(status: int, times: int) -> Failure:
    how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return Failure(
        WORKER_DIED,
        f"The process that worked on this item {how}, {times} times in all. The usual cause is "
        "too little memory: try fewer workers.",
    )


def _start() -> _Worker:
    home = str(SOURCE_FOLDER)
    path = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    ours, theirs = socket.socketpair()
    with theirs:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pubc.engine.processes", str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": path},
            pass_fds=[theirs.fileno()],
            # Ctrl-C reaches the parent alone, which then ends its workers in order.
            start_new_session=True,
        )
    line = Connection(ours.detach())
    with contextlib.suppress(OSError):
        line.send(sys.path)
    return _Worker(process, line)


def _main() -> None:
    """The worker: answer one call after the other until nobody asks any more."""
    os.dup2(2, 1)  # what a library prints must not get into the result of a command
    handle = int(sys.argv[1])
    os.set_inheritable(handle, False)
    line = Connection(handle)
    sys.path[:] = line.recv()
    calls: queue.SimpleQueue[tuple[Callable[[Any], Any], Any] | Failure] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(line, calls), daemon=True).start()
    while True:
        call = calls.get()
        answer = (None, call) if isinstance(call, Failure) else attempt(*call)
        try:
            line.send(answer)
        except OSError:
            return
        except Exception as error:
            line.send((None, failure_of(error)))


def _listen(line: Connection, calls: queue.SimpleQueue[Any]) -> None:
    """Pass calls on; the end of the line is the end of the parent, so the worker ends too."""
    while True:
        try:
            calls.put(line.recv())
        except (EOFError, OSError):
            os._exit(0)
        except Exception as error:
            calls.put(failure_of(error))


if __name__ == "__main__":
    _main()
