"""A table as plain lines for a terminal: aligned, with the paper's figures and the footnotes."""

from __future__ import annotations

from collections.abc import Sequence

from pubc.report.tables.pages.footnotes import Footnotes
from pubc.report.tables.table_of_means import TableOfMeans

__all__ = ["lines"]


def lines(sheet: TableOfMeans, width: int = 100) -> list[str]:
    """The table as lines.

    Args:
        sheet: The table.
        width: Columns of the terminal. Where a line would be longer, the paper's figures get a
            line of their own below ours.
    """
    footnotes = Footnotes(sheet)
    beside = _aligned(_rows(sheet, footnotes, beside=True))
    if max(map(len, beside)) > width:
        beside = _aligned(_rows(sheet, footnotes, beside=False))
    marks = [f"{letter}) {text}" for letter, text in footnotes.texts]
    if any(place.best for row in sheet.rows for place in row.places.values()):
        marks.insert(0, f"* the best of its {'pair of rows' if sheet.head.pairs else 'row'}")
    return [*beside, *([""] if marks else []), *marks]


def _rows(sheet: TableOfMeans, footnotes: Footnotes, *, beside: bool) -> list[list[str]]:
    unit = sheet.head.unit
    found = [["", *sheet.columns]]
    for row in sheet.rows:
        ours, papers = [_marked(row.name, footnotes.of_row(row))], ["  published"]
        for column in sheet.columns:
            place = row.places[column]
            paper = place.paper_words(unit)
            text = place.words(unit) + ("*" if place.best else "")
            text = _marked(text, footnotes.of_place(row, column))
            ours.append(f"{text} (published {paper})" if beside and paper else text)
            papers.append(paper)
        found.append(ours)
        if not beside and any(papers[1:]):
            found.append(papers)
    return found


def _marked(text: str, letters: str) -> str:
    return f"{text} {letters})" if letters else text


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            text.ljust(width) if at == 0 else text.rjust(width)
            for at, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
