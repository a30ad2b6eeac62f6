"""The file of marks that `pubc review` reads once and writes at every mark.

It may hold hours of looking, and others may write to the same place: a second program, a file
that is put back from elsewhere, somebody's notes. Nothing is written over that was not read.
"""

from __future__ import annotations

import os
from pathlib import Path

from pubc.errors import UsageError
from pubc.labels import Labels, read_labels, save_labels
from pubc.storage import hash_file
from pubc.storage.disk import disk_words

__all__ = ["LabelsFile"]


class LabelsFile:
    """A file of marks that is replaced only while it is as it was last read or written here."""

    def __init__(self, path: Path) -> None:
        """Take the file as it is now, or its place where there is none.

        Raises:
            UsageError: It is a link or no file, which saving would replace.
        """
        self.path = path
        self._known = self._content()

    def read(self) -> Labels | None:
        """What it says; None where there is no such file."""
        return None if self._known is None else read_labels(self.path)

    def save(self, labels: Labels, data: Path) -> None:
        """Write the marks, whole or not at all.

        Raises:
            UsageError: Somebody else wrote there since; it was left as it is.
            EnvironmentFailure: The disk said no.
        """
        found = self._content()
        if found is not None and found != self._known:
            raise UsageError(
                f"{self.path} was written by somebody else since this review read it, so the mark "
                "is not saved there. Move that file away and mark again; or end this review and "
                "start it again, and it goes on from that file."
            )
        try:
            save_labels(self.path, labels, data)
        finally:
            self._known = self._content()

    def _content(self) -> str | None:
        """SHA-256 of what it holds; None where there is no such file."""
        if not os.path.lexists(self.path):
            return None
        if self.path.is_symlink() or not self.path.is_file():
            raise UsageError(
                f"{self.path} is a link, or no file at all, and saving marks would replace it. "
                "Name the file itself."
            )
        with disk_words(self.path):
            return hash_file(self.path)
