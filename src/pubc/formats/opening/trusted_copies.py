"""Whether a cached copy may be believed: it is the user's own, and holds what pubc wrote.

A copy is looked at when a process first uses it. Owner and sizes always count. Files up to
`WHOLE` bytes are hashed; of a larger one, whose hashing would take longer than the cache saves,
some blocks are compared with digests that the manifest of a copy holds for this purpose. Which
blocks changes from process to process, so that damage is found sooner or later; `--verify` has
every byte read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pubc.errors import PubcError
from pubc.storage import ENTRY, MANIFEST, entry_files, read_manifest, verify

__all__ = ["BLOCK", "SAMPLE", "WHOLE", "block_digests", "fault_in_copy"]

WHOLE = 64 << 20
"""Larger files are looked at in blocks."""
BLOCK = 4 << 20
"""Bytes of a block."""
SAMPLE = 8
"""Blocks of a large file that a process looks at."""

_believed: set[tuple[str, int, int]] = set()
"""Copies that this process has looked at: path, inode and time of the manifest."""


def fault_in_copy(copy: Path, *, everything: bool = False) -> str | None:
    """Why a cached copy must not be used; None where nothing speaks against it.

    Args:
        copy: The store in the cache.
        everything: Read every byte, also where this process has looked before.
    """
    try:
        stat = (copy / MANIFEST).lstat()
        known = (str(copy), stat.st_ino, stat.st_mtime_ns)
        if known in _believed and not everything:
            return None
        fault = _foreign(copy) or (_any_fault(copy) if everything else _sampled_fault(copy))
        if fault is None and entry_files(copy) is None:
            fault = "it is the copy of another dataset, or something was added to it"
    except (PubcError, OSError) as error:
        return str(error)
    if fault is None:
        _believed.add(known)
    return fault


def block_digests(path: Path, numbers: Iterable[int] | None = None) -> dict[str, str]:
    """Digests of the blocks of a file by their number; of all blocks where none is named."""
    if numbers is None:
        numbers = range(-(-path.stat().st_size // BLOCK))
    found = {}
    with path.open("rb", buffering=0) as file:
        for number in numbers:
            file.seek(number * BLOCK)
            found[str(number)] = hashlib.sha256(file.read(BLOCK)).hexdigest()[:32]
    return found


def _foreign(copy: Path) -> str | None:
    """What belongs to another user could be changed by them at any moment."""
    for path in (copy, *copy.iterdir()):
        if path.lstat().st_uid != os.geteuid():
            return f"{path.name} belongs to another user"
    return None


def _any_fault(copy: Path) -> str | None:
    for fault in verify(copy):
        return f"{fault.file}: {fault.reason}"
    return None


def _sampled_fault(copy: Path) -> str | None:
    manifest = read_manifest(copy)
    small = []
    for name, entry in manifest["files"].items():
        size = (copy / name).lstat().st_size
        if size != entry.get("size"):
            return f"{name}: {size} bytes, the manifest says {entry.get('size')}"
        if size <= WHOLE or name == ENTRY:
            small.append(name)
        elif not _blocks_fit(copy / name, size, manifest.get("blocks")):
            return f"{name}: a part of it is not as it was written"
    for name in small:
        for fault in verify(copy, under=name):
            return f"{fault.file}: {fault.reason}"
    return None


def _blocks_fit(path: Path, size: int, told: Any) -> bool:
    digests = told.get(path.name) if isinstance(told, dict) else None
    if not isinstance(digests, dict):
        return False  # written by an earlier pubc, which kept none
    count = -(-size // BLOCK)
    step = max(1, count // SAMPLE)
    numbers = [0, count - 1, *range(os.getpid() % step, count, step)]
    return all(digests.get(n) == digest for n, digest in block_digests(path, numbers).items())
