"""Parsing in a child process, so that a hostile file can end nothing but its own reader.

The libraries that parse HDF5, Parquet and zarr are large and not memory-safe. The child has
limited memory and processor time and, where the system allows it, no network; it writes
what it read as a store, which this process memory-maps. A crash, a hang or a bomb becomes
one `DataError`. The child is a fresh interpreter, never a fork: libhdf5 does not survive one.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import importlib
import json
import math
import os
import resource
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from pubc import errors
from pubc.errors import DataError, EnvironmentFailure, PubcError, UsageError
from pubc.formats.core.options import ReadOptions
from pubc.version import SOURCE_FOLDER

__all__ = ["Answer", "Limits", "parse_in_child"]

MEMORY = 512 << 20
"""What any file may use beyond the interpreter with its libraries."""
LIBRARIES = 512 << 20
"""What the interpreter with its libraries takes at most."""
UNPACKING = 16
"""Bytes of memory per byte of file on top; compressed robot data rarely unpacks tenfold."""
PATIENCE = 3
"""Seconds for the smallest file: with the start of two interpreters still less than five."""
_QUIET = {
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # the others reserve gigabytes of addresses
    "HDF5_PLUGIN_PATH": "/nonexistent",
    "MALLOC_ARENA_MAX": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

_LIBRARIES = {
    "minari": ("h5py", "pyarrow.parquet"),
    "lerobot": ("pyarrow.parquet",),
    "trifinger": ("zarr", "lmdb"),
    "diffusion": ("zarr",),
    "rlds": (),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a child may use."""

    memory: int
    """Bytes beyond what the interpreter and its libraries take."""
    processor: int
    """Seconds of processor time beyond what loading the libraries takes."""

    @property
    def wall(self) -> int:
        """Seconds until a child that does nothing is ended; generous on a busy machine."""
        return 60 + 4 * self.processor

    @classmethod
    def of(cls, path: Path) -> Limits:
        """Limits in proportion to the size of a dataset."""
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        size = sum(file.stat().st_size for file in files)
        return cls(MEMORY + UNPACKING * size, PATIENCE + len(files) // 20 + (size >> 20))


@dataclass(frozen=True, slots=True)
class Answer:
    """What the child says when it succeeded."""

    format: str
    """The format it found."""
    kept: bool
    """Whether the store went to the cache rather than to the temporary place."""


def parse_in_child(
    path: Path, options: ReadOptions, *, store: Path, cache: Path | None, limits: Limits
) -> Answer:
    """Read a dataset in a child that writes it as a store.

    Args:
        path: The dataset.
        options: How to read it.
        store: Where the store goes if it is not to be kept.
        cache: Where it goes if the format is slow to read; nowhere where None.
        limits: What the child may use.

    Raises:
        PubcError: What the reader raised, with all its fields.
        DataError: `reader_died`: the reader crashed, or went beyond its limits.
        EnvironmentFailure: It died where a memory limit of the user leaves it less than those.
    """
    request = {
        "path": str(path),
        "options": dataclasses.asdict(options),
        "store": str(store),
        "cache": None if cache is None else str(cache),
        "limits": dataclasses.asdict(limits),
        "parent": os.getpid(),
    }
    child = subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-m", "pubc.formats.opening.isolate"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    )
    try:
        told, _ = child.communicate(json.dumps(request).encode(), timeout=limits.wall)
    except subprocess.TimeoutExpired:
        raise _died(path, f"it was not done after {limits.wall} seconds") from None
    finally:
        child.kill()
        child.communicate()
    return _understand(path, told, child.returncode, limits)


def _environment() -> dict[str, str]:
    # The child must find this very pubc, also where it runs from a source tree.
    home = str(SOURCE_FOLDER)
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, **_QUIET, "PYTHONPATH": os.pathsep.join(paths)}


def _understand(path: Path, told: bytes, code: int, limits: Limits) -> Answer:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        answer = json.loads(told)
        if "error" in answer:
            _raise(answer["error"])
        return Answer(str(answer["format"]), bool(answer["kept"]))
    how = f"it ended with exit code {code} and without an answer"
    if code < 0:
        how = f"it was ended by {signal.Signals(-code).name}"
    if code in (-signal.SIGPROF, -signal.SIGXCPU):
        raise _died(path, f"it used up {limits.processor} seconds of processor time")
    raise _short_of_memory(path, limits.memory) or _died(path, how)


def _short_of_memory(path: str | Path, memory: int) -> EnvironmentFailure | None:
    """What to say of a death if the user's own limit left the reader less than it may use."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY or limit >= LIBRARIES + memory:
        return None
    return EnvironmentFailure(
        f"{path}: the reader died under the memory limit (ulimit -v) of {limit >> 10:,} kB; raise "
        f"it to {(LIBRARIES + memory) >> 10:,} kB or more, or start from a shell without one."
    )


def _died(path: Path, how: str) -> DataError:
    return DataError(
        f"{path}: the reader died while parsing it: {how}. The file is damaged or hostile, "
        "and nothing of it was used. If you trust its origin, --isolate off parses it "
        "without limits.",
        code="reader_died",
    )


def _raise(facts: dict[str, Any]) -> NoReturn:
    """Raise what the child raised."""
    kind = getattr(errors, str(facts["kind"]), PubcError)
    error: PubcError = kind.__new__(kind)
    Exception.__init__(error, str(facts["message"]))
    for name, value in facts["fields"].items():
        setattr(error, name, tuple(value) if isinstance(value, list) else value)
    raise error


def _main() -> None:
    """The child: read a request, answer it."""
    answering = os.dup(1)
    os.dup2(2, 1)  # whatever a library prints must not pass for the answer
    request = json.loads(sys.stdin.buffer.read())
    _confine(request["parent"])
    users = _short_of_memory(request["path"], request["limits"]["memory"])
    try:
        answer = _serve(request)
    except PubcError as error:
        answer = {"error": _facts(error)}
    except MemoryError:
        answer = {"error": _facts(users or _too_large(request))}
    os.write(answering, json.dumps(answer).encode())
    # Some libraries crash while they unload after a damaged file; the answer stands.
    os._exit(0)


def _confine(parent: int) -> None:
    system = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux":
        system.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG: end with the parent
        if os.getppid() != parent:
            os._exit(1)  # it was killed before that
        system.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
        new_user, new_net = 0x10000000, 0x40000000
        if system.unshare(new_net) != 0:
            system.unshare(new_user | new_net)  # refused in some containers: go without
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit(limits: dict[str, int]) -> None:
    """Limit memory and time from here on; the libraries are loaded by now."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, limits["processor"])
    # The system counts whole seconds since the start, but nothing in the process can undo it.
    seconds = math.ceil(time.process_time()) + limits["processor"]
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
    except OSError:
        return
    limit = pages * resource.getpagesize() + limits["memory"]
    users, _ = resource.getrlimit(resource.RLIMIT_AS)
    if users != resource.RLIM_INFINITY:
        limit = min(limit, users)  # a process may not raise its limit
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _serve(request: dict[str, Any]) -> dict[str, Any]:
    from pubc.formats import store
    from pubc.formats.opening import cached_copies
    from pubc.formats.opening.detect import detect, is_hdf5
    from pubc.formats.registry import get, parse

    options = ReadOptions(**{k: _tuple(v) for k, v in request["options"].items()})
    path = Path(request["path"])
    _load_libraries(options.format or ("d4rl" if is_hdf5(path) else detect(path)))
    _limit(request["limits"])
    name = options.format or detect(path)
    module = get(name)
    trajectories = parse(path, name, options)
    if request["cache"] is not None and module.SLOW:
        try:
            cached_copies.write(Path(request["cache"]), trajectories, path, name)
            return {"format": name, "kept": True}
        except (EnvironmentFailure, UsageError):
            pass  # a cache that cannot be written costs time, not the result
    store.write(Path(request["store"]), trajectories, overwrite=True)
    return {"format": name, "kept": False}


def _load_libraries(name: str) -> None:
    """Load what a reader uses before memory and time are measured."""
    for library in _LIBRARIES.get(name, ("h5py",)):
        # Not installed, or broken: the reader that needs it says so in its own words.
        with contextlib.suppress(Exception):
            importlib.import_module(library)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _facts(error: PubcError) -> dict[str, Any]:
    fields = {n: getattr(error, n, None) for n in ("code", "field", "index", "count", "extra")}
    return {
        "kind": type(error).__name__,
        "message": str(error),
        "fields": {name: value for name, value in fields.items() if value is not None},
    }


def _too_large(request: dict[str, Any]) -> DataError:
    allowed = request["limits"]["memory"] >> 20
    return DataError(
        f"{request['path']}: the reader died while parsing it: it needs more than the "
        f"{allowed:,} MiB that a dataset of this size may use. If you trust its origin, "
        "--isolate off parses it without limits.",
        code="reader_died",
    )


if __name__ == "__main__":
    _main()
