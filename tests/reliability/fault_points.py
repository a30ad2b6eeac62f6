"""Every write, flush and rename of a process counted, and one of them failed on purpose.

Nothing in pubc knows of this: the functions of the standard library that change the disk are
replaced in a forked child before the command runs. A write is a file's own call to the system,
below all buffers. numpy's shortcut past file objects is closed; what libhdf5 writes by itself is
not seen, but the flush and the rename after it are.
"""

import builtins
import ctypes
import errno
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HOWS = ("kill", "ENOSPC", "EIO", "EACCES", "EROFS")
_REAL = {name: getattr(os, name) for name in (
    "write", "fsync", "replace", "rename", "mkdir", "truncate", "ftruncate", "unlink", "rmdir",
)}  # fmt: skip
_OPEN = io.open
_REMOVES = ("unlink", "rmdir")
_LASTING = {
    "ENOSPC": ("create", "write", "mkdir", "truncate"),
    "EACCES": ("create", "mkdir", "truncate", "replace", "rename", "renameat2", *_REMOVES),
    "EROFS": ("create", "mkdir", "truncate", "replace", "rename", "renameat2", *_REMOVES,
              "write", "fsync", "ftruncate"),
}  # fmt: skip
"""What is refused from a point on. A full disk still lets go of names and renames them; where
permission was taken away, files that are open can be written; a disk that the system has made
read-only takes nothing."""


class Points:
    """The operations of a process below one folder, numbered from 1."""

    def __init__(self, root: Path, at: int | None, how: str | None) -> None:
        self.root, self.at, self.how = os.path.realpath(root) + os.sep, at, how
        self.seen: list[str] = []
        self.struck = False

    def reach(self, what: str, path: Any, half: Callable[[], object] = lambda: None) -> None:
        """One operation is about to happen; `half` does a part of it."""
        place = self._place(path)
        if place is None or not place.startswith(self.root):
            return
        self.seen.append(f"{what} {place[len(self.root) :]}")
        here = len(self.seen) == self.at
        if self.how == "kill" and here:
            half()
            os.kill(os.getpid(), signal.SIGKILL)
        if self.how == "EIO" and here and what not in _REMOVES:
            self._fail(errno.EIO, half)
        begun = self.at is not None and len(self.seen) >= self.at
        if begun and what in _LASTING.get(str(self.how), ()):
            self._fail(getattr(errno, str(self.how)), half)

    def _fail(self, number: int, half: Callable[[], object]) -> None:
        self.struck = True
        half()
        raise OSError(number, os.strerror(number))

    @staticmethod
    def _place(path: Any) -> str | None:
        if isinstance(path, int):
            try:
                return os.readlink(f"/proc/self/fd/{path}")
            except OSError:
                return None
        text = os.path.abspath(os.fsdecode(path))
        return os.path.join(os.path.realpath(os.path.dirname(text)), os.path.basename(text))


class _Raw(io.FileIO):
    """A file whose every write is counted."""

    points: Points

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        whole = super().write
        self.points.reach("write", self.fileno(), lambda: whole(view[: len(view) // 2]))
        return whole(data)


def install(points: Points) -> None:
    """Count, and fail, what this process does from now on."""
    _Raw.points = points
    io.open = builtins.open = _opening(points)
    for name in ("replace", "rename", "mkdir", "truncate"):
        setattr(os, name, _named(points, name))
    for name in ("fsync", "ftruncate", "write"):
        setattr(os, name, _numbered(points, name))
    for name in _REMOVES:
        setattr(os, name, _removing(points, name))
    ctypes.CDLL = _libraries(points, ctypes.CDLL)
    np.lib.format.isfileobj = lambda file: False


def _opening(points: Points) -> Callable[..., Any]:
    def opening(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None,
                closefd=True, opener=None):  # fmt: skip
        if isinstance(file, int) or not set(mode) & set("wax+"):
            return _OPEN(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if not os.path.lexists(file):
            points.reach("create", file)
        raw = _Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        if buffering == 0:
            return raw
        buffer = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        if "b" in mode:
            return buffer
        text = io.TextIOWrapper(buffer, encoding, errors, newline)
        text.mode = mode
        return text

    return opening


def _named(points: Points, name: str) -> Callable[..., Any]:
    def call(path, *rest, **more):
        points.reach(name, path)
        return _REAL[name](path, *rest, **more)

    return call


def _numbered(points: Points, name: str) -> Callable[..., Any]:
    def call(handle, *rest, **more):
        points.reach(name, handle)
        return _REAL[name](handle, *rest, **more)

    return call


def _removing(points: Points, name: str) -> Callable[..., Any]:
    def call(path, *, dir_fd=None):
        place = path
        if dir_fd is not None:
            place = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), os.fsdecode(path))
        points.reach(name, place)
        return _REAL[name](path, dir_fd=dir_fd)

    return call


def _libraries(points: Points, real: Callable[..., Any]) -> Callable[..., Any]:
    """libc as pubc calls it to swap two names in one step."""

    class Library:
        def __init__(self, name: Any, **more: Any) -> None:
            self._real = real(name, **more)

        def __getattr__(self, name: str) -> Any:
            found = getattr(self._real, name)
            if name != "renameat2":
                return found

            def swap(here: int, new: bytes, there: int, old: bytes, flags: int) -> int:
                try:
                    points.reach("renameat2", new)
                except OSError as error:
                    ctypes.set_errno(error.errno or 0)
                    return -1
                return found(here, new, there, old, flags)

            return swap

    return Library
