"""The flag --data NAME=PATH of `pubc reproduce`: files of the user, by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pubc.errors import UnknownNameError, UsageError

__all__ = ["hash_given", "read_given"]


def read_given(table: str, words: Sequence[str], known: Mapping[str, str]) -> dict[str, Path]:
    """Paths by name.

    Args:
        table: For which table.
        words: What the user gave, NAME=PATH each.
        known: The names that the table takes.

    Raises:
        UsageError: A word is none of these, or there is no such file.
        UnknownNameError: The table has no data of that name.
    """
    found: dict[str, Path] = {}
    for word in words:
        name, equals, path = word.partition("=")
        if not (name and equals and path) or name in found:
            raise UsageError(f"--data takes NAME=PATH, each name once. Got {word!r}.")
        if not known:
            raise UsageError(f"{table} takes no files; leave out --data {name}.")
        if name not in known:
            raise UnknownNameError(f"data for {table}", name, known)
        found[name] = Path(path)
        if not found[name].exists():
            raise UsageError(f"--data {name}: there is no {path}.")
    return found


def hash_given(path: Path) -> str:
    """Hash of a file's content, or of all files of a folder with their names."""
    import hashlib

    from pubc.storage import hash_file

    if path.is_file():
        return hash_file(path)
    digest = hashlib.sha256()
    for inner in sorted(p for p in path.rglob("*") if p.is_file()):
        digest.update(f"{inner.relative_to(path).as_posix()}\n{hash_file(inner)}\n".encode())
    return digest.hexdigest()
