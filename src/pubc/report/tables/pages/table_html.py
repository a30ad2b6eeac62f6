"""The page of results as one HTML file with its figures inside, and nothing that can run."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pubc.report.page import asset, content_policy, environment
from pubc.report.tables.headlines import Headline
from pubc.report.tables.pages import table_sentences as sentences
from pubc.report.tables.pages.footnotes import Footnotes
from pubc.report.tables.records_folder import Table

__all__ = ["as_html"]


def as_html(
    tables: Sequence[Table], pictures: Mapping[str, bytes], headlines: Sequence[Headline] = ()
) -> str:
    """The whole page.

    Args:
        tables: In the order of the page.
        pictures: SVG files by the names of their tables.
        headlines: What the paper claims, and what came of it.
    """
    style = "\n".join([asset("page.css"), asset("results.css")])
    return (
        environment()
        .get_template("results.html")
        .render(
            policy=content_policy(style, images=True),
            style=Markup(style),
            title="Results",
            how=sentences.HOW_TO_READ,
            nowhere=sentences.NOWHERE,
            claims=sentences.CLAIMS,
            headlines=headlines,
            tables=[_told(table, pictures) for table in tables],
        )
    )


def _told(table: Table, pictures: Mapping[str, bytes]) -> Mapping[str, Any]:
    sheet, footnotes = table.sheet, Footnotes(table.sheet)
    unit, picture = sheet.head.unit, pictures.get(sheet.head.table)
    return {
        "head": sheet.head,
        "columns": sheet.columns,
        "rows": [
            {
                "name": row.name,
                "summary": row.summary,
                "marks": footnotes.of_row(row),
                "places": [
                    {
                        "words": row.places[column].words(unit),
                        "paper": row.places[column].paper_words(unit),
                        "best": row.places[column].best,
                        "marks": footnotes.of_place(row, column),
                    }
                    for column in sheet.columns
                ],
            }
            for row in sheet.rows
        ],
        "footnotes": footnotes.texts,
        "rounds": table.rounds,
        "figure": None if picture is None else _inside(picture),
        "facts": sentences.facts(sheet),
        "about": _paragraphs(table.notes.about),
        "compared": sheet.head.compared or table.shortfalls or table.notes.each,
        "nowhere": sheet.head.compared and not table.shortfalls,
        "explained": [
            {
                "names": [sentences.UNEXPLAINED] if group.note is None else group.note.names,
                "found": sentences.found(group),
                "paragraphs": [] if group.note is None else _paragraphs(group.note.text),
            }
            for group in table.explained()
        ],
    }


def _paragraphs(text: str) -> list[str]:
    return [part for part in text.split("\n\n") if part.strip()]


def _inside(picture: bytes) -> str:
    return f"data:image/svg+xml;base64,{base64.b64encode(picture).decode('ascii')}"
