"""What cells share: datasets, selections and policies, each in a folder named by its hash.

Whoever needs something makes it if it is missing: in a temporary folder that is renamed when it
is whole, so half of one is never seen. There are no locks. Two who make the same thing make the
same bytes, and the second throws its own away; so the folder may lie on a file system that many
machines share. What was changed since it was made is refused: a table would show it as computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pubc.errors import DataError, EnvironmentFailure, UsageError
from pubc.experiments.stage_versions import Versions
from pubc.storage import MANIFEST, atomic_folder, read_sealed, verify, write_sealed

__all__ = ["Cache", "Kind"]

Kind = Literal["datasets", "filters", "policies", "evaluations"]


_believed: set[tuple[Path, int, int]] = set()
"""Folders that this process has looked at: path, inode and time of the manifest."""


class _MadeElsewhere(Exception):
    """Somebody else finished the same thing first."""


@dataclass(frozen=True, slots=True)
class Cache:
    """A folder of things that were made, and what is needed to make more of them."""

    root: Path
    """The folder."""
    code: Versions
    """Code version of each stage; part of every hash."""
    device: str = "cpu"
    """Where networks are trained, `cpu` or `cuda`; part of the hash of what they give."""
    given: Mapping[str, str] = field(default_factory=dict)
    """Where the user's files lie, by the hash of their content."""
    workers: int = 1
    """Threads or processes that a single piece of work may use; changes no result."""

    def path(self, kind: Kind, key: str) -> Path:
        """Where a thing lies, or would lie.

        Raises:
            DataError: It is there, and was changed since it was made.
        """
        path = self.root / kind / key
        if (path / MANIFEST).is_file():
            _check(path)
        return path

    def has(self, kind: Kind, key: str) -> bool:
        """Whether it was made."""
        return (self.root / kind / key / MANIFEST).is_file()

    def make(self, kind: Kind, key: str, build: Callable[[Path], None]) -> Path:
        """The folder of a thing, made by `build` if it is missing.

        Args:
            kind: What it is.
            key: Hash of everything that decides its content.
            build: Fills the empty folder that it is given.

        Raises:
            DataError: It is there, and was changed since it was made.
        """
        path = self.path(kind, key)
        if self.has(kind, key):
            return path
        try:
            with atomic_folder(path, kind=kind) as new:
                build(new)
                if self.has(kind, key):
                    raise _MadeElsewhere
        except _MadeElsewhere:
            pass
        except (EnvironmentFailure, UsageError):
            # The other one may also appear between the last look and the rename.
            if not self.has(kind, key):
                raise
        return path

    def record(self, key: str) -> dict[str, Any] | None:
        """The values of a finished cell.

        Raises:
            DataError: They were changed since.
        """
        path = self._record(key)
        if not path.is_file():
            return None
        try:
            values = read_sealed(path)
        except DataError as error:
            raise DataError(
                f"{error} Delete it, and it is computed again.", code="changed"
            ) from None
        del values["seal"]
        return values

    def keep(self, key: str, values: Mapping[str, Any]) -> None:
        """Remember the values of a finished cell."""
        path = self._record(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(path, dict(values))

    def _record(self, key: str) -> Path:
        return self.root / "cells" / f"{key}.json"


def _check(path: Path) -> None:
    stat = (path / MANIFEST).lstat()
    known = (path, stat.st_ino, stat.st_mtime_ns)
    if known in _believed:
        return
    for fault in verify(path):
        raise DataError(
            f"{path}: {fault.file} was changed since it was made ({fault.reason}). Delete the "
            "folder, and it is made again.",
            code="changed",
            field=fault.file,
        )
    _believed.add(known)
