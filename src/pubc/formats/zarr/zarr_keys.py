"""Where the keys of a zarr hierarchy lie: below a folder, or in a zip archive."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Collection
from pathlib import Path
from typing import Protocol

from pubc.errors import DataError

__all__ = ["FREE_BYTES", "RATIO_LIMIT", "FolderKeys", "Keys", "ZipKeys"]

RATIO_LIMIT = 1000
"""Decoded bytes per stored byte that are still believed."""
FREE_BYTES = 64 << 20
"""Below this much decoded data an array may compress as it likes."""


class Keys(Protocol):
    """Where the keys of a zarr hierarchy lie."""

    def names(self) -> Collection[str]:
        """Every key."""
        ...

    def size(self, name: str) -> int:
        """Bytes stored under a key."""
        ...

    def read(self, name: str) -> bytes:
        """What is stored under a key."""
        ...


class FolderKeys:
    """Files below a folder; none of them may lead out of it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._names = set(self._walk())

    def names(self) -> set[str]:
        """Every file by its path below the folder."""
        return self._names

    def _walk(self) -> list[str]:
        found: list[str] = []
        for place, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                if os.path.islink(os.path.join(place, name)):
                    raise DataError(
                        f"{os.path.join(place, name)}: a link, where a dataset has only files.",
                        code="link",
                    )
            below = os.path.relpath(place, self.root)
            found += [name if below == "." else f"{below}/{name}" for name in files]
        return found

    def size(self, name: str) -> int:
        """Bytes of a file."""
        return (self.root / name).stat().st_size

    def read(self, name: str) -> bytes:
        """Content of a file."""
        return (self.root / name).read_bytes()


class ZipKeys:
    """Members of a zip archive, read without extracting it."""

    def __init__(self, path: Path) -> None:
        try:
            self._archive = zipfile.ZipFile(path)
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise DataError(
                f"{path}: not a whole zip archive ({error}).", code="truncated"
            ) from None
        self._path = path
        self._members = {m.filename: m for m in self._archive.infolist() if not m.is_dir()}

    def close(self) -> None:
        """Let go of the archive."""
        self._archive.close()

    def names(self) -> Collection[str]:
        """Every member."""
        return self._members.keys()

    def size(self, name: str) -> int:
        """Bytes that a member takes in the archive."""
        return self._members[name].compress_size

    def read(self, name: str) -> bytes:
        """Content of a member; one that grows a thousandfold is refused."""
        member = self._members[name]
        if member.file_size > max(FREE_BYTES, RATIO_LIMIT * member.compress_size):
            raise DataError(
                f"{self._path}: {name}: {member.compress_size:,} bytes that claim to unpack to "
                f"{member.file_size:,}.",
                code="bomb",
                field=name,
            )
        try:
            return self._archive.read(member)
        except (zipfile.BadZipFile, OSError, EOFError, RuntimeError, ValueError) as error:
            raise DataError(
                f"{self._path}: {name}: not readable ({error}).", code="truncated", field=name
            ) from None
        except NotImplementedError as error:
            raise DataError(f"{self._path}: {name}: {error}.", code="bad_file") from None
