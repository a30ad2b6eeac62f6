"""Paragraphs that people wrote about a table: <table>.notes.md, taken over word for word.

The text before the first heading is about the whole table. A heading `## NAME; NAME` names rows
or columns, and the paragraphs below it explain them.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pubc.errors import DataError

__all__ = ["Note", "Notes", "read_notes", "split_text"]

_HEADING = re.compile(r"^## +(?P<names>.+?) *$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Note:
    """An explanation."""

    names: tuple[str, ...]
    """Rows and columns that it explains."""
    text: str
    """What it says."""


@dataclass(frozen=True, slots=True)
class Notes:
    """Everything that was written about one table."""

    about: str = ""
    """On the whole table."""
    each: tuple[Note, ...] = ()
    """On rows and columns, in the order of the file."""


def read_notes(path: Path, known: Collection[str]) -> Notes:
    """Read the notes of a table; none where there is no file.

    Args:
        path: The file.
        known: Names of the rows and columns.

    Raises:
        DataError: It is not text, explains nothing, or names what the table does not have.
    """
    about, *parts = split_text(path, _HEADING)
    each = []
    for heading, body in zip(parts[::2], parts[1::2], strict=True):
        names = tuple(name.strip() for name in heading.split(";"))
        strange = [name for name in names if name not in known]
        if strange or not body.strip():
            what = f"{strange[0]!r} is not one" if strange else "there is no text below it"
            raise DataError(
                f"{path}: expected the heading {heading!r} to name rows or columns of the table "
                f"and a paragraph to follow, but {what}.",
                code="bad_notes",
                field=heading,
            )
        each.append(Note(names, body.strip()))
    return Notes(about.strip(), tuple(each))


def split_text(path: Path, heading: re.Pattern[str]) -> list[str]:
    """The text before the first heading, then what each heading says and the text below it.

    Where there is no file, the text is empty.

    Raises:
        DataError: It is not text.
    """
    if not path.exists():
        return [""]
    try:
        return heading.split(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: not readable as text ({error}).", code="bad_notes") from None
