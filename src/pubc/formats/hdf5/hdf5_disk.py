"""A disk that does not fail in front of libhdf5, which crashes when it does.

On a full disk libhdf5 keeps retrying what it could not write until the process dies of a
segmentation fault while the file is being closed. So it is given a file object instead of a
path: a failed write is remembered, later ones are kept in memory, and the error is raised in
Python, either at the next `check` or once the file is closed.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py

__all__ = ["NewFile", "new_hdf5"]


class _Disk(io.RawIOBase):
    """A file on the disk that swallows its first error and says so when asked."""

    def __init__(self, path: Path, *, new: bool) -> None:
        super().__init__()
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT | os.O_EXCL if new else 0)
        self._handle = os.open(path, flags, 0o644)
        self._position = 0
        self._size = os.fstat(self._handle).st_size
        self._lost: list[tuple[int, bytes]] = []
        self.error: BaseException | None = None

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        self._position = start + offset
        return self._position

    def write(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        start, done = self._position, 0
        # Also an interrupt by the user must not surface inside libhdf5.
        try:
            while self.error is None and done < len(view):
                done += os.pwrite(self._handle, view[done:], start + done)
        except BaseException as error:
            self.error = error
        if done < len(view):
            self._lost.append((start + done, view[done:].tobytes()))
        self._position = start + len(view)
        self._size = max(self._size, self._position)
        return len(view)

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        start = self._position
        try:
            found = os.pread(self._handle, len(view), start)
        except BaseException as error:
            self.error, found = self.error or error, b""
        view[:] = found.ljust(len(view), b"\0")
        for place, content in self._lost:
            low, high = max(place, start), min(place + len(content), start + len(view))
            if low < high:
                view[low - start : high - start] = content[low - place : high - place]
        self._position = start + len(view)
        return len(view)

    def truncate(self, size: int | None = None) -> int:
        self._size = self._position if size is None else size
        try:
            if self.error is None:
                os.ftruncate(self._handle, self._size)
        except BaseException as error:
            self.error = error
        return self._size

    def close(self) -> None:
        if not self.closed:
            os.close(self._handle)
        super().close()


class NewFile(h5py.File):  # type: ignore[misc]
    """An HDF5 file being written."""

    def __init__(self, disk: _Disk, mode: str) -> None:
        super().__init__(disk, mode)
        self._disk = disk

    def check(self) -> None:
        """Raise what the disk said, if it said no: call it between large writes."""
        if self._disk.error is not None:
            raise self._disk.error


@contextlib.contextmanager
def new_hdf5(path: Path, *, edit: bool = False) -> Iterator[NewFile]:
    """Give a new HDF5 file to fill, or with `edit` an existing one of ours to change.

    Raises:
        OSError: The disk said no.
    """
    disk = _Disk(path, new=not edit)
    try:
        with NewFile(disk, "r+" if edit else "w") as file:
            yield file
    except Exception:
        if disk.error is not None:
            raise disk.error from None
        raise
    finally:
        disk.close()
    if disk.error is not None:
        raise disk.error
