"""Writing that is whole or did not happen: files, folders, JSON, lines of a journal."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pubc.storage.disk import (
    disk_words,
    exchange,
    flush,
    flush_folders,
    refuse_existing,
    remove,
    temporary,
)
from pubc.storage.manifest import seal

__all__ = ["append_line", "atomic_file", "atomic_folder", "write_json"]


@contextlib.contextmanager
def atomic_file(path: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """Give a temporary path to write to, and move it into place on success.

    Args:
        path: Final place.
        overwrite: Replace an existing file; without it an existing one is refused.

    Yields:
        Where to write; a hidden name without suffix, so open it yourself.

    Raises:
        UsageError: `path` exists and `overwrite` is off, or it is a folder.
        EnvironmentFailure: The disk is full, read-only, or not ours to write.
    """
    with disk_words(path):
        refuse_existing(path, overwrite=overwrite, folder=False)
        new = temporary(path)
        try:
            yield new
            flush(new)
            os.replace(new, path)
            flush(path.parent)
        finally:
            remove(new)


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
        overwrite: Replace an existing folder that pubc wrote; without it any is refused.
        about: Further facts for the manifest; may be filled while the folder is.

    Yields:
        The folder to write into.

    Raises:
        UsageError: `path` exists and `overwrite` is off, or it is not pubc's to replace.
        EnvironmentFailure: The disk is full, read-only, or not ours to write.
    """
    with disk_words(path):
        refuse_existing(path, overwrite=overwrite, folder=True)
        new = temporary(path)
        new.mkdir()
        retired = None
        try:
            yield new
            seal(new, kind=kind, about=about)
            flush_folders(new)
            if path.exists() or path.is_symlink():
                retired = exchange(new, path)
            else:
                os.rename(new, path)
            flush(path.parent)
        finally:
            remove(new)
            if retired is not None:
                remove(retired)


def write_json(path: Path, document: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write one JSON object atomically, keys in the order given, ending in a newline."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    with atomic_file(path, overwrite=overwrite) as new:
        new.write_text(text, encoding="utf-8")


def append_line(path: Path, document: Mapping[str, Any]) -> None:
    """Append one JSON line and flush it; a torn last line is cut off first.

    A process killed in the middle of an append leaves a line without its newline. That
    line was never acknowledged, so dropping it loses nothing.
    """
    line = json.dumps(document, allow_nan=False).encode() + b"\n"
    with disk_words(path), path.open("ab+", buffering=0) as file:
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.seek(0)
                size = file.readall().rfind(b"\n") + 1
                file.truncate(size)
        try:
            if file.write(line) != len(line):
                file.write(line[file.seek(0, os.SEEK_END) - size :])
            os.fsync(file.fileno())
        except OSError:
            file.truncate(size)
            raise
