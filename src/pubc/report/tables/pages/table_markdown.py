"""The page of results as Markdown: readable in a terminal, on GitHub, and in a diff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pubc.report.run_markdown import indented, safe
from pubc.report.tables.headlines import Headline
from pubc.report.tables.pages import table_sentences as sentences
from pubc.report.tables.pages.footnotes import Footnotes
from pubc.report.tables.records_folder import Table
from pubc.report.tables.rounds_table import Rounds
from pubc.report.tables.table_of_means import TableOfMeans

__all__ = ["as_markdown"]


def as_markdown(
    tables: Sequence[Table],
    figures: Mapping[str, str],
    records: str,
    headlines: Sequence[Headline] = (),
) -> str:
    """The whole page.

    Args:
        tables: In the order of the page.
        figures: Where the picture of a table is, seen from the page.
        records: Where the records are, seen from the page.
        headlines: What the paper claims, and what came of it.
    """
    parts = [
        "# Results",
        sentences.HOW_TO_READ,
        f"This page is written by `pubc report` from [records]({records}); only the verdicts on "
        "claims and the explanations below *Where we fall short or differ* are by hand, in the "
        "notes beside the records.",
        "\n".join(
            f"- [{_ticked(table.sheet.head.title)}](#{table.sheet.head.table})" for table in tables
        ),
        *_headline_parts(headlines),
    ]
    for table in tables:
        parts += _table_parts(table, figures.get(table.sheet.head.table))
    return "\n\n".join(part for part in parts if part) + "\n"


def _headline_parts(headlines: Sequence[Headline]) -> list[str]:
    if not headlines:
        return []
    lines = [
        f"- **{one.verdict.capitalize()}:** {_ticked(one.claim)} {_ticked(one.text)}"
        for one in headlines
    ]
    return [f"## {sentences.CLAIMS}", "\n".join(lines)]


def _table_parts(table: Table, figure: str | None) -> list[str]:
    sheet, head = table.sheet, table.sheet.head
    footnotes = Footnotes(sheet)
    texts = footnotes.texts
    return [
        f'<a id="{head.table}"></a>',
        f"## {_ticked(head.title)}",
        _ticked(head.caption),
        _figures(sheet, footnotes),
        "<br>\n".join(f"<sup>{letter}</sup> {_ticked(text)}" for letter, text in texts),
        *_rounds_parts(table.rounds),
        "" if figure is None else f"![{safe(head.title)}]({figure})",
        "\n".join(indented(line) for line in head.command),
        "\n".join(f"- {name}: {_ticked(value)}" for name, value in sentences.facts(sheet)),
        table.notes.about,
        *_short_parts(table),
    ]


def _figures(sheet: TableOfMeans, footnotes: Footnotes) -> str:
    unit = sheet.head.unit
    grid = [["", *(_ticked(column, inside=True) for column in sheet.columns)]]
    grid.append(["---", *["---:"] * len(sheet.columns)])
    for row in sheet.rows:
        name = _ticked(row.name, inside=True)
        line = [(f"*{name}*" if row.summary else name) + _sup(footnotes.of_row(row))]
        for column in sheet.columns:
            place = row.places[column]
            text, paper = place.words(unit), place.paper_words(unit)
            text = f"**{text}**" if place.best else text
            text += _sup(footnotes.of_place(row, column))
            line.append(f"{text} (published {safe(paper)})" if paper else text)
        grid.append(line)
    return "\n".join("| " + " | ".join(line) + " |" for line in grid)


def _rounds_parts(rounds: Rounds | None) -> list[str]:
    if rounds is None:
        return []
    parts = [_words(rounds.columns, rounds.first)] if rounds.first else []
    if rounds.more:
        many = f"<details><summary>{len(rounds.more):,} more rounds</summary>"
        parts += [many, _words(rounds.columns, rounds.more), "</details>"]
    return parts


def _words(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    grid = [["", *columns], ["---", *["---:"] * len(columns)]]
    grid += [[_ticked(word, inside=True) for word in row] for row in rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in grid)


def _short_parts(table: Table) -> list[str]:
    if not (table.sheet.head.compared or table.shortfalls or table.notes.each):
        return []
    parts = ["### Where we fall short or differ"]
    if table.sheet.head.compared and not table.shortfalls:
        parts.append(sentences.NOWHERE)
    for group in table.explained():
        names = [sentences.UNEXPLAINED] if group.note is None else map(_ticked, group.note.names)
        parts.append(f"**{'; '.join(names)}**")
        said = (f"{row}: {words}" if row else words for row, words in sentences.found(group))
        parts.append("\n".join(f"- {_ticked(line)}" for line in said))
        parts.append("" if group.note is None else group.note.text)
    return parts


def _sup(letters: str) -> str:
    return f" <sup>{letters}</sup>" if letters else ""


def _ticked(text: str, *, inside: bool = False) -> str:
    """Text in which words between backticks are code and everything else means itself.

    Args:
        text: One line.
        inside: Whether it stands in a table, where a bar would begin the next place.
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = ["'".join(parts[-2:])]
    return "".join(
        _code(part, inside) if at % 2 else _spaced(part) for at, part in enumerate(parts)
    )


def _code(text: str, inside: bool) -> str:
    clean = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return f"`{clean.replace('|', chr(92) + '|') if inside else clean}`" if clean else ""


def _spaced(text: str) -> str:
    """Escaped text that keeps the space to its neighbours."""
    left = " " if text[:1].isspace() else ""
    right = " " if text[-1:].isspace() and text.strip() else ""
    return f"{left}{safe(text)}{right}"
