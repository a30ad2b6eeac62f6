"""Writing that is whole or did not happen: files, folders, JSON, lines of a journal."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pubc.errors import DataError, UsageError
from pubc.storage.disk import (
    disk_words,
    exchange,
    flush,
    flush_folders,
    leftovers,
    refuse_existing,
    remove,
    temporary,
)
from pubc.storage.manifest import seal
from pubc.storage.ownership import claim, mark

__all__ = [
    "append_lines",
    "atomic_file",
    "atomic_folder",
    "check_lines",
    "page_bytes",
    "write_json",
    "write_marked",
]


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
        refuse_existing(path, overwrite=overwrite)
        new = temporary(path)
        try:
            yield new
            flush(new)
            # Writing may have taken hours: what is there now may be somebody else's.
            refuse_existing(path, overwrite=overwrite)
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
        overwrite: Replace an existing folder of that kind; without it any is refused.
        about: Further facts for the manifest; may be filled while the folder is.

    Yields:
        The folder to write into.

    Raises:
        UsageError: `path` exists and `overwrite` is off, or it is not pubc's to replace.
        EnvironmentFailure: The disk is full, read-only, or not ours to write.
    """
    with disk_words(path):
        claim(path, kind, force=overwrite)
        new = temporary(path)
        new.mkdir()
        retired = None
        try:
            yield new
            seal(new, kind=kind, about=about)
            flush_folders(new)
            if os.path.lexists(path):
                # Writing may have taken hours: what is there now may be somebody else's.
                claim(path, kind, force=overwrite)
                retired = exchange(new, path)
            else:
                os.rename(new, path)
            flush(path.parent)
        finally:
            remove(new)
            if retired is not None:
                remove(retired)


def page_bytes(text: str) -> bytes:
    """Text for a page, as UTF-8.

    A path may hold bytes that are no text, and a stranger's document halves of characters: Python
    has both as lone surrogates, which UTF-8 cannot hold. They are spelled out.
    """
    return text.encode("utf-8", "backslashreplace")


def write_json(path: Path, document: Mapping[str, Any], *, overwrite: bool = False) -> None:
    """Write one JSON object atomically, keys in the order given, ending in a newline."""
    text = json.dumps(document, indent=1, allow_nan=False) + "\n"
    with atomic_file(path, overwrite=overwrite) as new:
        new.write_text(text, encoding="utf-8")


def write_marked(files: Mapping[Path, bytes], kind: str, *, force: bool = False) -> None:
    """Write .md, .html, .svg and .png files with a mark each, all of them or none.

    What is there already, byte for byte, is left as it is: two pages may share a picture.

    Args:
        files: Contents by path.
        kind: What the files are; only marked files of this kind are replaced.
        force: Whether they may be replaced at all.

    Raises:
        UsageError: Something is there that must not be replaced; nothing was written.
        EnvironmentFailure: The disk said no.
    """
    marked = {path: mark(content, kind, path.suffix) for path, content in files.items()}
    for path in [path for path, content in marked.items() if _holds(path, content)]:
        del marked[path]
    for path in marked:
        claim(path, kind, force=force)
    for path, content in marked.items():
        with atomic_file(path, overwrite=force) as new:
            new.write_bytes(content)


def _holds(path: Path, content: bytes) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != len(content):
        return False
    return path.read_bytes() == content


def append_lines(path: Path, *documents: Mapping[str, Any]) -> None:
    """Append JSON lines in one write and flush them.

    A last line without its newline is completed where it is whole. Where it is not, it may be
    what a kill left of our own append or what somebody was writing: a note that lies beside the
    file while a line is appended tells which, and only what is ours is cut off.

    Args:
        path: The file; made where there is none.
        documents: The lines.

    Raises:
        DataError: The last line is no JSON.
        EnvironmentFailure: The disk said no; the file is as it was.
    """
    lines = "".join(json.dumps(one, allow_nan=False) + "\n" for one in documents).encode()
    with disk_words(path):
        _undo_killed(path)
        note = temporary(path)
        try:
            at = path.stat().st_size if path.exists() else 0
            note.write_text(json.dumps({"at": at, "lines": lines.decode()}), encoding="utf-8")
            flush(note)
            _append(path, lines)
        finally:
            remove(note)


def _undo_killed(path: Path) -> None:
    """Cut off what killed processes left of lines, as their notes prove it to be theirs."""
    for note in leftovers(path) if path.is_file() else ():
        with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
            told = json.loads(note.read_bytes())
            at, lines = int(told["at"]), str(told["lines"]).encode()
            with path.open("rb+") as file:
                file.seek(at)
                tail = file.read()
                # The newline is for a last line that had none.
                ours = any(whole.startswith(tail) for whole in (lines, b"\n" + lines))
                if tail and ours and not tail.endswith(b"\n"):
                    file.truncate(at)
                    os.fsync(file.fileno())


def _append(path: Path, lines: bytes) -> None:
    with disk_words(path), path.open("ab+", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        last = _last_line(path)
        _check_last(path, last)
        if last and not last.endswith(b"\n"):
            lines = b"\n" + lines
        try:
            if file.write(lines) != len(lines):
                file.write(lines[file.seek(0, os.SEEK_END) - before :])
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise


def check_lines(path: Path) -> None:
    """Refuse a file that `append_lines` would refuse, before hours are spent on the line.

    Raises:
        DataError: The last line is no JSON object.
        UsageError: It is a folder, a pipe or a device.
    """
    if os.path.lexists(path):
        if not path.is_file():
            raise UsageError(f"{path} is not a file, so no line can be added to it.")
        with disk_words(path):
            _undo_killed(path)
            last = _last_line(path)
        _check_last(path, last)


def _last_line(path: Path) -> bytes:
    """The last line of a file, with its newline if it has one."""
    with path.open("rb") as file:
        at, tail = file.seek(0, os.SEEK_END), b""
        while at and b"\n" not in tail[:-1]:
            step = min(at, 1 << 16)
            at = file.seek(at - step)
            tail = file.read(step) + tail
    return tail[tail.rfind(b"\n", 0, -1) + 1 :]


def _is_json(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), dict)
    except (ValueError, RecursionError):
        return False


def _check_last(path: Path, line: bytes) -> None:
    """Refuse somebody's text, and half a line that is not ours."""
    if not line or _is_json(line):
        return
    raise DataError(
        f"{path}: its last line is not a JSON object, so no other can follow it. "
        "Complete or delete that line, or choose another file.",
        code="bad_json",
    )
