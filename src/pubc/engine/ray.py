"""The engine for more than one machine: tasks of a Ray cluster.

Without an address, Ray is started on this machine for as long as the engine is open: it
listens on the loopback interface alone, every connection needs a token that only this user
can read, and there is no dashboard and no usage report. With an address it joins a cluster
of the user's, whose safety is the user's (docs/scale.md).

Only paths and other small values pass through Ray; what is large is read and written as
files by the tasks. A task that was lost with its worker or its node is submitted again from
here, so that tries are counted in one place and are finite also where memory ran out.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pubc.engine.outcomes import RETRIES, WORKER_DIED, Failure, Job, Outcome, attempt
from pubc.errors import EnvironmentFailure, MissingExtraError, UsageError
from pubc.storage import make_scratch
from pubc.threads import ONE_THREAD, cores

__all__ = ["RayTasks", "open_ray"]

_OLDEST = (2, 52)
"""The first release of Ray with token authentication."""
_MEMORY = 1 << 30
"""Bytes that a task declares, where the cluster has as many for each."""
_OBJECTS = 80 << 20
"""Bytes of Ray's own store; nothing of ours goes there, and less than this it refuses."""
_WINDOW = 1_000
"""Tasks submitted at a time: enough for a cluster that grows with what waits."""
_PULSE = 1.0
"""Seconds between two looks for Ctrl-C."""
_PATIENCE = 10.0
"""Seconds for a cluster to answer."""
_WORKER = {
    **ONE_THREAD,
    # Older releases hide the GPUs from tasks that ask for none; processes see them too.
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class RayTasks:
    """Works through items as tasks of the cluster that this process is connected to."""

    def __init__(self, workers: int) -> None:
        import ray

        resources = ray.cluster_resources()
        self.workers = workers or max(1, int(resources.get("CPU", 1)))
        self._window = workers or _WINDOW
        memory = min(_MEMORY, int(resources.get("memory", 0)) // self.workers)
        self._task = ray.remote(num_cpus=1, memory=memory, max_retries=0)(_work)

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Outcome]:
        """Apply a function to every item; see `pubc.engine.Engine`."""
        import ray

        waiting = deque(Job(index, item) for index, item in enumerate(items))
        pending: dict[Any, Job] = {}
        try:
            while waiting or pending:
                while waiting and len(pending) < self._window:
                    job = waiting.popleft()
                    pending[self._task.remote(function, job.item)] = job
                ready, _ = ray.wait(list(pending), timeout=_PULSE)
                for reference in ready:
                    job = pending.pop(reference)
                    outcome = _outcome(job, reference)
                    if outcome is None:
                        waiting.append(job.again())
                    else:
                        yield outcome
        finally:
            # The caller went away or something broke: what is under way is for nobody.
            for reference in pending:
                with suppress(ray.exceptions.RayError):
                    ray.cancel(reference, force=True)


@contextmanager
def open_ray(workers: int, address: str | None) -> Iterator[RayTasks]:
    """Start Ray here, or join a cluster; leaving the context ends or leaves it.

    A program that is connected to a cluster already keeps its connection.

    Raises:
        MissingExtraError: Ray is not installed.
        UsageError: Ray is too old, lacks its client for an address that needs it, or was loaded
            before it could be told to ask for a token.
        EnvironmentFailure: Ray did not start, or nobody answers at the address.
    """
    if address is None:
        _set_environment()
    try:
        import ray
    except ImportError:
        raise MissingExtraError("The engine ray", "ray") from None
    _check_version(ray.__version__)
    _check_client(address)
    if ray.is_initialized():
        yield RayTasks(workers)
        return
    with _same_signals():
        try:
            _start(workers) if address is None else _join(address)
        except Exception as error:  # Ray raises some that have no name of their own
            ray.shutdown()
            raise EnvironmentFailure(_refusal(address, error)) from error
    try:
        yield RayTasks(workers)
    finally:
        ray.shutdown()


def _check_version(version: str) -> None:
    numbers = version.split(".")[:2]
    if all(map(str.isdecimal, numbers)) and tuple(map(int, numbers)) < _OLDEST:
        raise UsageError(
            f"Ray {version} cannot ask for a token, so anybody could connect to it. Install a "
            "newer one: pip install --upgrade 'ray>=2.52'"
        )


def _check_client(address: str | None) -> None:
    """Refuse ray://HOST:PORT where Ray came without the client that speaks it."""
    if (address or "").startswith("ray://") and importlib.util.find_spec("grpc") is None:
        raise UsageError(
            f"{address} is an address of the Ray client, which is not installed. Install it with: "
            "pip install 'ray[client]', or run the command on a node of the cluster with "
            "--address auto."
        )


def _start(workers: int) -> None:
    import ray

    context = ray.init(
        num_cpus=workers or cores(),
        include_dashboard=False,
        object_store_memory=_OBJECTS,
        runtime_env={"env_vars": _WORKER},
        log_to_driver=False,
        logging_level=logging.ERROR,
        _node_ip_address="127.0.0.1",
        # One level down: Ray lets everybody write into the folder that it is given.
        _temp_dir=str(_private_folder() / "ray"),
    )
    heard = str(context.address_info["node_ip_address"])
    if heard != "127.0.0.1":
        raise RuntimeError(f"it would listen on {heard}, not on the loopback interface alone")


def _join(address: str) -> None:
    import ray

    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdecimal():
        # Ray itself would go on asking for many minutes where nobody listens.
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    ray.init(
        address,
        runtime_env={"env_vars": _WORKER},
        log_to_driver=False,
        logging_level=logging.ERROR,
    )


def _refusal(address: str | None, error: Exception) -> str:
    said = " ".join(str(error).split()).rstrip(".")
    if address is None:
        return f"Ray did not start on this machine: {said}. The engine 'processes' needs no Ray."
    return (
        f"Could not join the Ray cluster at {address!r}: {said}. Is it running, and do "
        "RAY_AUTH_MODE and RAY_AUTH_TOKEN_PATH name its token?"
    )


def _set_environment() -> None:
    """Settings that Ray reads while it loads and that its processes inherit."""
    loaded = sys.modules.get("ray")
    if loaded is not None:
        if loaded.is_initialized() or _private_folder.cache_info().currsize:
            return
        raise UsageError(
            "Ray was imported before pubc could set it up to ask for a token. Open the engine "
            "before `import ray`, or call ray.init() first: pubc then uses that connection."
        )
    os.environ.pop("RAY_AUTH_TOKEN", None)
    os.environ |= {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(_private_folder() / "token"),
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray would let its workers stand back behind everybody else, unlike processes.
        "RAY_worker_niceness": "0",
        # Only so does Ray take 127.0.0.1 for the address of a node, on Linux too.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }


@functools.cache
def _private_folder() -> Path:
    """A folder for sockets and logs with a token, readable by this user, for this process.

    Ray keeps a token once read, so there is one for the life of a process.
    """
    short = Path("/tmp") if Path("/tmp").is_dir() else None  # names of sockets are short
    folder = make_scratch("ray", short)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    # Not through pubc.storage: the file must never exist with wider permissions.
    handle = os.open(folder / "token", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_hex(32))
    return folder


@contextmanager
def _same_signals() -> Iterator[None]:
    """Ray takes SIGTERM for itself; the program's own way to end politely is put back."""
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _work(function: Callable[[Any], Any], item: Any) -> tuple[Any, Failure | None]:
    """What a task does."""
    return attempt(function, item)


def _outcome(job: Job, reference: Any) -> Outcome | None:
    """What came of a task; None where its worker died and it may be tried again."""
    import ray

    try:
        value, failure = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        # The task never ran or its value cannot travel: trying again would change nothing.
        said = " ".join(str(error.cause).split())
        return Outcome(job.index, error=Failure(type(error.cause).__name__, said))
    except ray.exceptions.RayError as error:
        if job.deaths < RETRIES:
            return None
        said = str(error).strip().splitlines()[0].rstrip(".")
        return Outcome(
            job.index,
            error=Failure(
                WORKER_DIED,
                f"The Ray worker of this item died, {job.deaths + 1} times in all ({said}). "
                "The usual cause is too little memory: try fewer workers.",
            ),
        )
    return Outcome(job.index, value, failure)
