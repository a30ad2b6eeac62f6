"""The one door to the disk: everything pubc writes goes through here.

A reader never sees half a result. A file is written beside its final name, flushed to
the disk and renamed; a folder gets its manifest (sizes and SHA-256 of every file) last
and is renamed as a whole. A killed run leaves the old result or none, plus a temporary
that the next write to the same place removes.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pubc.errors import DataError, EnvironmentFailure, LockedError, UsageError

__all__ = [
    "MANIFEST",
    "Fault",
    "append_line",
    "atomic_file",
    "atomic_folder",
    "hash_file",
    "lock",
    "read_json",
    "read_manifest",
    "seal",
    "verify",
    "write_json",
]

MANIFEST = "manifest.json"
LOCK = ".lock"
_TEMPORARY = re.compile(r"^\..+\.tmp-(\d+)-[0-9a-f]+$")
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Fault:
    """One difference between a manifest and the files beside it."""

    file: str
    reason: str


@contextlib.contextmanager
def atomic_file(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path to write to, and move it into place on success.

    Args:
        path: Final place.
        overwrite: Replace an existing file; without it an existing one is refused.

    Yields:
        Where to write; a hidden name without suffix, so open it yourself.

    Raises:
        UsageError: `path` exists and `overwrite` is off.
        EnvironmentFailure: The disk is full, read-only, or not ours to write.
    """
    _refuse_existing(path, overwrite)
    with _disk_words(path):
        temporary = _temporary(path)
        try:
            yield temporary
            _flush(temporary)
            os.replace(temporary, path)
            _flush(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def atomic_folder(
    path: Path,
    *,
    kind: str,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
) -> Iterator[Path]:
    """Give a temporary folder to fill, seal it with a manifest, move it into place.

    Args:
        path: Final place.
        kind: What the folder is, for example `store` or `policy`; readers check it.
        overwrite: Replace an existing folder; without it an existing one is refused.
        about: Further facts for the manifest; may be filled while the folder is.

    Yields:
        The folder to write into.

    Raises:
        UsageError: `path` exists and `overwrite` is off.
        EnvironmentFailure: The disk is full, read-only, or not ours to write.
    """
    _refuse_existing(path, overwrite)
    with _disk_words(path):
        temporary = _temporary(path)
        temporary.mkdir()
        try:
            yield temporary
            seal(temporary, kind=kind, about=about)
            if path.exists():
                retired = _temporary(path)
                os.rename(path, retired)
                os.rename(temporary, path)
                _remove(retired)
            else:
                os.rename(temporary, path)
            _flush(path.parent)
        finally:
            _remove(temporary)


def seal(folder: Path, *, kind: str, about: Mapping[str, Any] | None = None) -> None:
    """Write the manifest of a folder whose files are complete."""
    files = {}
    for file in sorted(_content(folder)):
        _flush(file)
        files[file.relative_to(folder).as_posix()] = {
            "size": file.stat().st_size,
            "sha256": hash_file(file),
        }
    document = {"kind": kind, "version": 1, **(about or {}), "files": files}
    write_json(folder / MANIFEST, document, overwrite=True)


def read_manifest(folder: Path, *, kind: str | None = None) -> dict[str, Any]:
    """Read a manifest and check that it is one, and of the right kind."""
    path = folder / MANIFEST
    document = read_json(path)
    files = document.get("files")
    if not isinstance(files, dict) or not isinstance(document.get("kind"), str):
        raise DataError(
            f"{path}: not a manifest of pubc (it has no 'kind' and 'files'). "
            "A run that was killed leaves none: write the folder anew.",
            code="bad_manifest",
        )
    if kind is not None and document["kind"] != kind:
        raise DataError(
            f"{folder}: expected a folder of kind {kind!r}, found {document['kind']!r}.",
            code="wrong_kind",
            field="kind",
        )
    return document


def verify(path: Path) -> list[Fault]:
    """Compare every file of a folder with its manifest; an empty list means intact."""
    if path.is_file():
        return _verify_file(path)
    listed: dict[str, Any] = read_manifest(path)["files"]
    present = {file.relative_to(path).as_posix() for file in _content(path)}
    faults = [Fault(name, "not in the manifest") for name in present - set(listed)]
    for name, entry in listed.items():
        if name not in present:
            faults.append(Fault(name, "missing"))
        else:
            faults += _compare(path / name, name, entry)
    return sorted(faults, key=lambda fault: fault.file)


def read_json(path: Path, *, limit: int = 64 << 20) -> dict[str, Any]:
    """Read one JSON object, refusing what is too large, too deep or not an object."""
    try:
        size = path.stat().st_size
        if size > limit:
            raise DataError(
                f"{path}: {size:,} bytes of JSON, more than the limit of {limit:,}.",
                code="too_large",
            )
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.", code="missing_file") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not readable as JSON ({error}).", code="bad_json") from None
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {error.strerror}.") from error
    if not isinstance(document, dict):
        raise DataError(
            f"{path}: expected a JSON object, found {type(document).__name__}.",
            code="bad_json",
        )
    return document


def write_json(path: Path, document: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write one JSON object atomically, keys in the order given, ending in a newline."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    with atomic_file(path, overwrite=overwrite) as temporary:
        temporary.write_text(text, encoding="utf-8")


def append_line(path: Path, document: Mapping[str, Any]) -> None:
    """Append one JSON line and flush it; a torn last line is cut off first.

    A process killed in the middle of an append leaves a line without its newline. That
    line was never acknowledged, so dropping it loses nothing.
    """
    with _disk_words(path), path.open("ab+") as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.seek(0)
                file.truncate(file.read().rfind(b"\n") + 1)
        file.write(json.dumps(document, allow_nan=False).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold a folder for one run; a second run is refused, a dead one's lock is taken.

    Raises:
        LockedError: A living process holds the folder.
    """
    path = folder / LOCK
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
    with _disk_words(path):
        while True:
            try:
                handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
                break
            except FileExistsError:
                _take_stale_lock(path, folder)
        with os.fdopen(handle, "w") as file:
            json.dump(holder, file)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def hash_file(path: Path) -> str:
    """SHA-256 of a file, read in blocks."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()


def _refuse_existing(path: Path, overwrite: bool) -> None:
    if not overwrite and (path.exists() or path.is_symlink()):
        raise UsageError(f"{path} exists already. Choose another name, or pass --force.")


def _content(folder: Path) -> list[Path]:
    """Every file below the folder but the manifest and the lock."""
    return [
        file
        for file in folder.rglob("*")
        if file.is_file() and file not in (folder / MANIFEST, folder / LOCK)
    ]


def _verify_file(path: Path) -> list[Fault]:
    sidecar = path.with_name(path.name + "." + MANIFEST)
    if not sidecar.exists():
        raise UsageError(
            f"{path} has no manifest ({sidecar.name}), so there is nothing to verify it "
            "against. Files written by `pubc convert` and `pubc collect` have one."
        )
    entry = read_json(sidecar).get("files", {}).get(path.name)
    if entry is None:
        return [Fault(path.name, f"not in {sidecar.name}")]
    return _compare(path, path.name, entry)


def _compare(path: Path, name: str, entry: Any) -> list[Fault]:
    if not isinstance(entry, dict):
        return [Fault(name, "its manifest entry is not an object")]
    size = path.stat().st_size
    if size != entry.get("size"):
        return [Fault(name, f"{size} bytes, the manifest says {entry.get('size')}")]
    if hash_file(path) != entry.get("sha256"):
        return [Fault(name, "its SHA-256 differs from the manifest's")]
    return []


def _temporary(path: Path) -> Path:
    """A fresh temporary name beside `path`; leftovers of dead processes are removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for sibling in path.parent.glob(f".{_glob_safe(path.name)}.tmp-*"):
        match = _TEMPORARY.match(sibling.name)
        if match and not _alive(int(match.group(1))):
            _remove(sibling)
    return path.with_name(f".{path.name}.tmp-{os.getpid()}-{secrets.token_hex(4)}")


def _glob_safe(name: str) -> str:
    return re.sub(r"([*?\[])", r"[\1]", name)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _take_stale_lock(path: Path, folder: Path) -> None:
    try:
        holder = read_json(path)
    except DataError:
        holder = {}
    pid, host = holder.get("pid"), holder.get("host")
    here = host == socket.gethostname()
    if isinstance(pid, int) and (not here or (_alive(pid) and pid != os.getpid())):
        raise LockedError(
            f"{folder} is being written by process {pid} on {host}. Wait for it, choose "
            f"another folder, or delete {path} if you know that it is gone."
        )
    path.unlink(missing_ok=True)


def _flush(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


_DISK_FAULTS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EACCES: "no permission to write there",
    errno.EPERM: "no permission to write there",
    errno.EROFS: "the file system is read-only",
    errno.EIO: "the disk reported an input/output error",
    errno.EFBIG: "the file would be larger than the file system allows",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.ENAMETOOLONG: "the name is too long",
}


@contextlib.contextmanager
def _disk_words(path: Path) -> Iterator[None]:
    """Turn the operating system's refusals into one sentence with the free space."""
    try:
        yield
    except EnvironmentFailure:
        raise
    except OSError as error:
        if error.errno not in _DISK_FAULTS:
            raise
        raise EnvironmentFailure(
            f"Could not write {path}: {_DISK_FAULTS[error.errno]}"
            f"{_free_words(path)}. Nothing was changed there."
        ) from error


def _free_words(path: Path) -> str:
    for folder in path.parents:
        with contextlib.suppress(OSError):
            return f" ({shutil.disk_usage(folder).free / 2**20:,.0f} MiB free)"
    return ""
