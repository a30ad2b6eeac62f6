"""Temporary folders that a kill does not leave behind for ever.

A killed process cannot tidy up, so the next one does: the name of a scratch folder says which
host and process made it, and whoever makes a new one removes those of processes that are no more.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from pubc.storage.disk import alive, this_host

__all__ = ["make_scratch", "reserve_scratch", "scratch"]

_NAME = re.compile(r"pubc-[a-z]+-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-\w+")


def make_scratch(purpose: str, where: Path | None = None) -> Path:
    """Make a folder that only this user can read, and remove those of dead processes.

    Args:
        purpose: A word of lower-case letters for its name.
        where: In which folder; the system's own for such things by default.

    Raises:
        OSError: It cannot be made.
    """
    place = Path(tempfile.gettempdir()) if where is None else where
    _sweep(place)
    return Path(tempfile.mkdtemp(prefix=_prefix(purpose), dir=place))


def reserve_scratch(purpose: str) -> Path:
    """A name for a folder that a library may make; it is removed when this process ends.

    Args:
        purpose: A word of lower-case letters for its name.

    Raises:
        OSError: There is no place for such things.
    """
    path = Path(tempfile.gettempdir()) / f"{_prefix(purpose)}{secrets.token_hex(4)}"
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


@contextlib.contextmanager
def scratch(purpose: str) -> Iterator[Path]:
    """A folder for as long as a block lasts."""
    folder = make_scratch(purpose)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _prefix(purpose: str) -> str:
    return f"pubc-{purpose}-{this_host()}-{os.getpid()}-"


def _sweep(place: Path) -> None:
    with contextlib.suppress(OSError):
        for path in list(place.iterdir()):
            found = _NAME.fullmatch(path.name)
            if not found or found["host"] != this_host() or alive(int(found["pid"])):
                continue
            with contextlib.suppress(OSError):
                stat = path.lstat()
                if path.is_dir() and not path.is_symlink() and stat.st_uid == os.geteuid():
                    shutil.rmtree(path, ignore_errors=True)
