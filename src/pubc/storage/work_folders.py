"""Folders that a command works in until its result stands, and goes on in after a kill.

Users know their names beforehand (`OUT.training`, `.OUT.parts`), so one may be there that is
somebody else's. One of ours is made with a sealed document in it, first of all, which says what
it is; beside that it holds files under names of ours that prove themselves, and nothing else. Any
other is refused before any work. It goes file by file, and only what proves itself goes: what
somebody put there or edited meanwhile stays.
"""

from __future__ import annotations

import contextlib
import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pubc.errors import PubcError, UsageError
from pubc.storage.disk import (
    LOCK,
    disk_words,
    is_lock,
    is_temporary,
    place_of,
    remove,
    temporary,
)
from pubc.storage.manifest import MANIFEST, content_of, fits, read_sealed, write_sealed

__all__ = ["WorkFolder"]

_DOCUMENT = "work.json"


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """A folder for the time of a piece of work."""

    path: Path
    """Where it is, or will be."""
    kind: str
    """What is done there; a folder of another kind is not touched."""
    names: tuple[str, ...]
    """Patterns of every file that is written there; `*` stands for a part of one name."""
    proves: Callable[[Path], bool]
    """Whether a file under such a name is as it was written."""

    def about(self) -> dict[str, Any] | None:
        """What was said when it was begun; None where there is none.

        Raises:
            UsageError: Something is there that is not provably such a folder, or holds more.
        """
        if not os.path.lexists(self.path):
            return None
        if self.path.is_symlink() or not self.path.is_dir():
            self._refuse("is not a folder")
        if not any(self.path.iterdir()):
            return None
        document = self._document()
        if document.get("kind") != self.kind:
            self._refuse(f"was not made by pubc for a {self.kind}")
        for name in self._content():
            if fault := self._fault(name):
                self._refuse(f"holds {name}, which {fault}")
        about = document.get("about")
        return dict(about) if isinstance(about, dict) else {}

    def begin(self, about: Mapping[str, Any] | None = None) -> None:
        """Make it with its document inside, unless it is there.

        Raises:
            UsageError: Something else is there.
            EnvironmentFailure: The disk said no.
        """
        if self.about() is not None:
            return
        with disk_words(self.path):
            new = temporary(place_of(self.path))
            new.mkdir()
            try:
                write_sealed(new / _DOCUMENT, {"kind": self.kind, "about": dict(about or {})})
                # Onto nothing, or an empty folder: the system refuses any other.
                os.rename(new, self.path)
            finally:
                remove(new)

    def drop(self, name: str) -> None:
        """Remove one file that is not needed any more, if it is as we wrote it."""
        if not self._fault(name):
            with disk_words(self.path):
                (self.path / name).unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove what we wrote there, and the folder if nothing else is in it.

        Whoever calls holds its lock, so that nobody works there.
        """
        with contextlib.suppress(OSError):
            self._remove_files()
            # The document goes last: what a kill leaves is still known as ours.
            if is_lock(self.path / LOCK):
                (self.path / LOCK).unlink()
            if self._document().get("kind") == self.kind:
                (self.path / _DOCUMENT).unlink()
            self.path.rmdir()
        if not self.path.exists():
            return
        left = min(os.listdir(self.path), default="")
        warnings.warn(
            f"{self.path} stays: it holds {left}, which pubc did not write.", stacklevel=2
        )

    def _document(self) -> dict[str, Any]:
        """What the document inside says; nothing where it is not as we wrote it."""
        try:
            return read_sealed(self.path / _DOCUMENT)
        except (PubcError, OSError):
            return {}

    def _remove_files(self) -> None:
        for name in self._content():
            if name not in (LOCK, _DOCUMENT) and not self._fault(name):
                (self.path / name).unlink()
        for place, _, _ in os.walk(self.path, topdown=False):
            with contextlib.suppress(OSError):  # something else is in it
                os.rmdir(place)

    def _fault(self, name: str) -> str:
        """Why a file is not provably ours; nothing where it is."""
        path = self.path / name
        foreign = f"is not of a {self.kind}"
        if path.is_symlink():
            return foreign
        # What a killed write left hidden is ours, as anywhere.
        if any(map(is_temporary, name.split("/"))) or name == _DOCUMENT:
            return ""
        if name == LOCK and is_lock(path):
            return ""
        if not fits(name, self.names):
            return foreign
        return "" if self.proves(path) else "is not as pubc wrote it"

    def _content(self) -> list[str]:
        """Every name below it that is not a folder."""
        hidden = [name for name in (MANIFEST, LOCK) if os.path.lexists(self.path / name)]
        return sorted({*content_of(self.path), *hidden})

    def _refuse(self, why: str) -> None:
        raise UsageError(
            f"{self.path} {why}, and pubc would work there. Move it away, or choose another name."
        )
