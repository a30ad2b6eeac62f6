"""One run per folder."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from pubc.errors import LockedError, UsageError
from pubc.storage.disk import LOCK, disk_words, is_lock

__all__ = ["lock", "unlock_dead"]


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold a folder for one run; a second run is refused, a dead one's lock is free.

    The system holds the lock as long as the process lives, so there is none to clean up
    after a kill; what the file says is only for the message.

    Raises:
        LockedError: A living process holds the folder.
        UsageError: Somebody else has a file of that name there.
    """
    path = folder / LOCK
    if os.path.lexists(path) and not is_lock(path):
        raise UsageError(
            f"{path} is not a lock of pubc, so it stays. Move it, or choose another folder."
        )
    with disk_words(path):
        handle = _acquire(path, folder)
        try:
            holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
            os.truncate(handle, 0)
            os.write(handle, json.dumps(holder).encode())
        except OSError:
            os.close(handle)
            raise
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def unlock_dead(folder: Path) -> None:
    """Remove the lock file of a run that was killed, if there is one.

    Raises:
        LockedError: A living process holds the folder.
    """
    if (folder / LOCK).exists():
        with lock(folder):
            pass


def _acquire(path: Path, folder: Path) -> int:
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The last holder may have removed the file between our two calls.
            if _same_file(handle, path):
                return handle
        except BlockingIOError:
            told = _holder(handle)
            os.close(handle)
            raise LockedError(
                f"{folder} is being written by {told}. Wait for it, or choose another folder."
            ) from None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)


def _same_file(handle: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def _holder(handle: int) -> str:
    try:
        document = json.loads(os.pread(handle, 4096, 0))
        return f"process {int(document['pid'])} on {document['host']}"
    except (ValueError, TypeError, KeyError):
        return "another process"
