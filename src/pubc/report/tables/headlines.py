"""What the paper claims and what came of it here: headlines.md beside the records.

A heading `## VERDICT: CLAIM` for each claim and a paragraph below it. The verdict and the words
are by hand; a figure is written as {TABLE/ROW/COLUMN} and taken from the records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pubc.errors import DataError
from pubc.report.tables.handwritten_notes import split_text
from pubc.report.tables.records_folder import Table

__all__ = ["VERDICTS", "Headline", "read_headlines"]

VERDICTS = ("confirmed", "refuted", "open")
"""What may come of a claim."""
_NAME = "headlines.md"
_HEADING = re.compile(r"^## +(?P<verdict>\w+): +(?P<claim>.+?) *$", re.MULTILINE)
_FIGURE = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Headline:
    """A claim of the paper."""

    verdict: str
    """One of `VERDICTS`."""
    claim: str
    """What the paper says, in one sentence."""
    text: str
    """What was found here, with its figures."""


def read_headlines(folder: Path, tables: Sequence[Table]) -> tuple[Headline, ...]:
    """Read the headlines of a folder of records; none where there is no such file.

    Args:
        folder: The folder.
        tables: What its records hold, for the figures.

    Raises:
        DataError: It is not text, has another verdict, or names a place that no table has.
    """
    path = folder / _NAME
    _, *parts = split_text(path, _HEADING)
    found = []
    for verdict, claim, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if verdict not in VERDICTS:
            raise DataError(
                f"{path}: expected {', '.join(VERDICTS)} before {claim!r}, found {verdict!r}.",
                code="bad_notes",
                field=claim,
            )
        said = " ".join(body.split())
        filled = _FIGURE.sub(lambda place: _figure(str(place[1]), tables, path), said)
        found.append(Headline(verdict, claim, filled))
    return tuple(found)


def _figure(place: str, tables: Sequence[Table], path: Path) -> str:
    """The words of a place in a table."""
    names = place.split("/")
    for table in tables:
        sheet = table.sheet
        rows = {row.name: row for row in sheet.rows}
        if len(names) == 3 and sheet.head.table == names[0] and names[1] in rows:
            value = rows[names[1]].places.get(names[2])
            if value is not None and value.mean is not None:
                return value.words(sheet.head.unit)
    raise DataError(
        f"{path}: expected a place with a figure, TABLE/ROW/COLUMN, found {place!r}.",
        code="bad_notes",
        field=place,
    )
