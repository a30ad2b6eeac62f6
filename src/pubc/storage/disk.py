"""What the disk says, in words, and the few operations that must reach it."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
import secrets
import shutil
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path

from pubc.errors import EnvironmentFailure, UsageError

__all__ = [
    "LOCK",
    "alive",
    "disk_words",
    "exchange",
    "flush",
    "flush_folders",
    "is_lock",
    "is_temporary",
    "leftovers",
    "place_of",
    "refuse_existing",
    "remove",
    "sweep",
    "temporary",
    "this_host",
    "utf8_name",
]

_DISK_FAULTS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the disk reported an input/output error",
    errno.EFBIG: "the file would be larger than the file system allows",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EEXIST: "a part of the path is a file, not a folder",
    errno.EISDIR: "there is a folder of that name",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "the path is a loop of links",
}
_TEMPORARY = re.compile(r"\.(?P<kind>tmp|old)-(?P<host>[0-9a-f]{8})-(?P<pid>\d+)-[0-9a-f]{8}$")
_EXCHANGE = 2  # RENAME_EXCHANGE of renameat2(2)
_HERE = -100  # AT_FDCWD
LOCK = ".lock"
"""The file that holds a folder for one process."""
_LOCK_BEGINS = b'{"pid": '


def place_of(path: Path) -> Path:
    """Where a path leads, in full; a link at its very end stays the link.

    The system follows a link before it takes the `..` behind it, and so must we: whoever looks at
    LINK/../run and writes to ./run has looked at another folder.
    """
    if path.name in ("", ".."):
        return path.resolve()
    return path.parent.resolve() / path.name


def is_lock(path: Path) -> bool:
    """Whether a file is a lock of ours, or empty, as one of a process killed at once."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        begins = os.read(handle, len(_LOCK_BEGINS))
    except OSError:
        return False
    finally:
        os.close(handle)
    return begins in (b"", _LOCK_BEGINS)


@contextlib.contextmanager
def utf8_name(path: Path) -> Iterator[Path]:
    """A name under which a library that knows UTF-8 alone can open a file for reading.

    Names of files are bytes: a folder named on another machine may hold any.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        with path.open("rb") as file:
            yield Path(f"/dev/fd/{file.fileno()}")
    else:
        yield path


@contextlib.contextmanager
def disk_words(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into one sentence with the free space."""
    try:
        yield
    except EnvironmentFailure:
        raise
    except OSError as error:
        number = _errno(error)
        if number is None:
            raise
        told = _DISK_FAULTS.get(number, os.strerror(number).lower())
        raise EnvironmentFailure(
            f"Could not write {path}: {told}{_free_words(path)}. Nothing was changed there."
        ) from error


def is_temporary(name: str, *, of: str | None = None) -> bool:
    """Whether a name, or the last part of a path, is one that `temporary` makes up.

    Args:
        name: The name.
        of: The name that it must stand in for; any where omitted.
    """
    last = name.rpartition("/")[2]
    found = _TEMPORARY.search(last)
    if found is None or not last.startswith("."):
        return False
    return of is None or last[1 : found.start()] == of


def temporary(path: Path, kind: str = "tmp", *, tidy: bool = True) -> Path:
    """A fresh hidden name beside `path`; leftovers of dead processes are dealt with.

    Args:
        path: What the name stands in for.
        kind: `tmp` for what is being written or removed, `old` for what is to be put back.
        tidy: Whether leftovers are dealt with.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if tidy:
        sweep(path)
    process = f"{this_host()}-{os.getpid()}-{secrets.token_hex(4)}"
    return path.with_name(f".{path.name}.{kind}-{process}")


def sweep(path: Path) -> None:
    """Deal with what dead processes left beside `path`.

    A process killed between retiring an old folder and naming the new one leaves the old
    one under a hidden name: it is put back. Everything else that is left over goes.
    """
    for sibling in leftovers(path):
        match = _TEMPORARY.search(sibling.name)
        if match is not None and match["kind"] == "old" and not path.exists():
            os.rename(sibling, path)
        else:
            remove(sibling)


def leftovers(path: Path) -> list[Path]:
    """What dead processes of this machine left beside `path` under names for it."""
    host, found = this_host(), []
    for sibling in sorted(path.parent.iterdir()):
        head, _, tail = sibling.name.rpartition(f".{path.name}.")
        match = _TEMPORARY.fullmatch(f".{tail}") if not head else None
        if match and match["host"] == host and not alive(int(match["pid"])):
            found.append(sibling)
    return found


def exchange(new: Path, path: Path) -> Path:
    """Put `new` where `path` is, and return where the old one went.

    Linux swaps two names in one step. Elsewhere there is a moment without either, after
    which `temporary` puts the old one back.
    """
    with contextlib.suppress(OSError, AttributeError):
        rename = ctypes.CDLL(None, use_errno=True).renameat2
        if rename(_HERE, os.fsencode(new), _HERE, os.fsencode(path), _EXCHANGE) == 0:
            return new
    retired = temporary(path, "old")
    os.rename(path, retired)
    os.rename(new, path)
    return retired


def flush(path: Path) -> None:
    """Have the disk keep a file, or the names in a folder."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def flush_folders(folder: Path) -> None:
    """Have the disk keep the names of a folder and of those below it."""
    for place, _, _ in os.walk(folder):
        flush(Path(place))


def remove(path: Path) -> None:
    """Delete a file or a folder with all it holds, as far as that is possible."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with contextlib.suppress(OSError):
            path.unlink()


def refuse_existing(path: Path, *, overwrite: bool) -> None:
    """Refuse to write a file where something is, unless asked to; never replace a folder.

    Whose the file is does not matter here, where files inside folders of ours are written anew:
    commands ask `pubc.storage.ownership.claim` about names that a user gave.
    """
    if not (path.exists() or path.is_symlink()):
        return
    if not overwrite:
        raise UsageError(f"{path} exists already. Choose another name, or pass --force.")
    if path.is_dir():
        raise UsageError(f"{path} is a folder, where a file is to be written.")


def _errno(error: OSError) -> int | None:
    """The number of a refusal; libhdf5 and shutil's copy of a tree only mention it."""
    if error.errno is not None:
        return error.errno
    told = re.search(r"(?:errno = |\[Errno )(\d+)", str(error))
    return int(told.group(1)) if told else None


def this_host() -> str:
    """Eight digits for this machine, for names that processes of several may make."""
    return f"{zlib.crc32(socket.gethostname().encode()):08x}"


def alive(pid: int) -> bool:
    """Whether a process of this machine is there."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _free_words(path: Path) -> str:
    for folder in path.absolute().parents:
        with contextlib.suppress(OSError):
            return f" ({shutil.disk_usage(folder).free / 2**20:,.0f} MiB free)"
    return ""
