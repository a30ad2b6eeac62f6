"""Footnotes of a table: each remark once, with a letter wherever it applies."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase

from pubc.report.tables.groups import Row
from pubc.report.tables.table_of_means import TableOfMeans

__all__ = ["Footnotes"]


class Footnotes:
    """The remarks of a table in the order in which a reader meets them."""

    def __init__(self, sheet: TableOfMeans) -> None:
        self._letters: dict[str, str] = {}
        for row in sheet.rows:
            inside = (row.places[column].remarks for column in sheet.columns)
            for remark in (*_own(row), *(text for remarks in inside for text in remarks)):
                self._letters.setdefault(remark, _letter(len(self._letters)))

    @property
    def texts(self) -> list[tuple[str, str]]:
        """Letters with their remarks."""
        return [(letter, remark) for remark, letter in self._letters.items()]

    def of_row(self, row: Row) -> str:
        """The letter of the remark on a whole row; empty without one."""
        return self._marks(_own(row))

    def of_place(self, row: Row, column: str) -> str:
        """The letters of the remarks on one place, with commas between."""
        return self._marks(row.places[column].remarks)

    def _marks(self, remarks: Iterable[str]) -> str:
        return ",".join(self._letters[remark] for remark in remarks)


def _own(row: Row) -> tuple[str, ...]:
    return () if row.remark is None else (row.remark,)


def _letter(index: int) -> str:
    """One letter for the first 26, then aa, ab and so on."""
    more, last = divmod(index, len(ascii_lowercase))
    return (_letter(more - 1) if more else "") + ascii_lowercase[last]
