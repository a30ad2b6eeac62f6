"""The page of results on disk: Markdown with its figures beside it, and one page of HTML."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from pubc.report.drawing import encoded
from pubc.report.tables.headlines import read_headlines
from pubc.report.tables.pages.table_figures import draw
from pubc.report.tables.pages.table_html import as_html
from pubc.report.tables.pages.table_markdown import as_markdown
from pubc.report.tables.records_folder import Table, read_tables
from pubc.storage import page_bytes, write_marked

__all__ = ["Written", "write_results"]

KIND = "report"
_IMAGES = "images"
_NAME = "results"


@dataclass(frozen=True, slots=True)
class Written:
    """What a page of results came to."""

    pages: tuple[Path, ...]
    """Markdown, HTML, or both."""
    figures: tuple[Path, ...]
    """Pictures that the Markdown shows."""
    tables: tuple[Table, ...]
    """What the page is about."""


def write_results(records: Path, out: Path | None = None, *, force: bool = False) -> Written:
    """Write the page of a folder of records.

    Args:
        records: The folder with heads, records and notes.
        out: A name ending in .md for the Markdown alone, with its figures in images/ beside it;
            one ending in .html for the page alone; or a folder for both. By default the folder
            that the records are in.
        force: Replace earlier pages at `out`. Those in the folder that the records are in are
            always replaced; a file that is not provably a page of ours never is.

    Raises:
        UsageError: Something is there that must not be replaced.
        DataError: A head, a record or a note is not what it should be.
        EnvironmentFailure: The disk said no.
    """
    tables = read_tables(records)
    # Everything is drawn before anything is written: what is refused leaves no half of a page.
    pictures, headlines = _pictures(tables), read_headlines(records, tables)
    place = records.resolve().parent if out is None else out
    if place.suffix == ".md":
        pages, folder = [place], place.parent
    elif place.suffix == ".html":
        pages, folder = [place], None
    else:
        pages, folder = [place / f"{_NAME}.md", place / f"{_NAME}.html"], place
    seen = {name: f"{_IMAGES}/{_NAME}-{name}.svg" for name in pictures}
    figures = [] if folder is None else [folder / path for path in seen.values()]
    files = dict(zip(figures, pictures.values(), strict=False))
    for page in pages:
        if page.suffix == ".html":
            text = as_html(tables, pictures, headlines)
        else:
            text = as_markdown(tables, seen, _relative(records, page.parent), headlines)
        files[page] = page_bytes(text)
    write_marked(files, KIND, force=force or out is None)
    return Written(tuple(pages), tuple(figures), tuple(tables))


def _pictures(tables: Sequence[Table]) -> dict[str, bytes]:
    drawn = {table.sheet.head.table: draw(table.sheet) for table in tables}
    return {name: encoded(figure, "svg") for name, figure in drawn.items() if figure is not None}


def _relative(path: Path, start: Path) -> str:
    return quote(Path(os.path.relpath(path.resolve(), start.resolve())).as_posix())
