"""What the page says about a table in sentences, the same in Markdown and in HTML."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from pubc.report.tables.records_folder import Explained
from pubc.report.tables.table_of_means import TableOfMeans

__all__ = ["CLAIMS", "HOW_TO_READ", "NOWHERE", "UNEXPLAINED", "duration", "facts", "found"]

CLAIMS = "What the paper claims"

HOW_TO_READ = (
    "Mean ± sample standard deviation over random seeds, and in brackets the figure printed in "
    "the paper. Bold is the best of its row, or of its pair of rows with and without. Below each "
    "table stand the command that made it, what is smaller than in the paper, and every place "
    "where a figure of ours is worse than the paper's or than another column's, or where a "
    "baseline differs from the paper's, by more than the spread. Wall time does not count what "
    "other tables had computed before."
)
NOWHERE = (
    "Nowhere: no figure of ours is worse than the paper's or another column's by more than the "
    "spread, no baseline differs from the paper's by more than that, and no cell failed."
)
UNEXPLAINED = "No explanation yet"


def facts(sheet: TableOfMeans) -> list[tuple[str, str]]:
    """Where the figures come from: names and values."""
    head = sheet.head
    cells = f"{len(sheet.records):,}"
    if head.cells is not None:
        cells += f" of {head.cells:,}"
    cells += f", {sheet.random_seeds} random seeds" if sheet.random_seeds != 1 else ""
    cells += f", {sheet.failed:,} failed" if sheet.failed else ""
    cells += f", {sheet.not_given:,} without data" if sheet.not_given else ""
    return [
        ("Scale", head.scale),
        ("Scaled down", " ".join(head.scaled_down) or "nothing"),
        ("Cells", cells),
        ("Wall time", duration(head.wall_seconds) + _spent(sheet)),
        ("Machine", "; ".join(map(_machine, head.machines)) or "unknown"),
        ("pubc", f"{head.pubc}; code of {', '.join(f'{s} {d}' for s, d in head.code.items())}"),
    ]


def found(group: Explained) -> list[tuple[str, str]]:
    """What falls short or differs, a row of the table at a time.

    Returns:
        Pairs of a row and a sentence; the row is empty where the note is about it alone.
    """
    rows = []
    for row, places in groupby(group.places, key=lambda place: place.row):
        mine = list(places)
        said = [f"`{place.column}`: {place.words}" for place in mine if place.kind == "short"]
        differ = [f"`{place.column}` {place.words}" for place in mine if place.kind == "differs"]
        if differ:
            said.append(f"other than in the paper: {', '.join(differ)}")
        for words in dict.fromkeys(place.words for place in mine if place.kind == "failed"):
            columns = [f"`{place.column}`" for place in mine if place.words == words]
            said.append(f"{words}: {', '.join(columns)}")
        known = group.note is not None and group.note.names == (row,)
        rows.append(("" if known else row, "; ".join(said) + "."))
    return rows


def duration(seconds: float) -> str:
    """A time for people, to two units."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"


def _spent(sheet: TableOfMeans) -> str:
    """What the cells took, whichever run did them; each computation counts once."""
    each = {record.key: record.values.get("seconds") for record in sheet.records}
    seconds = sum(float(s) for s in each.values() if isinstance(s, int | float))
    return f"; the filters and learners of its cells took {duration(seconds)}" if seconds else ""


def _machine(machine: Mapping[str, Any]) -> str:
    words = []
    for name, value in machine.items():
        if value is None or value == "":
            continue
        if name == "cores":
            words.append(f"{value} cores")
        elif name in ("cpu", "gpu", "platform", "device", "processor"):
            words.append(str(value))
        else:
            words.append(f"{name} {value}")
    return ", ".join(words) or "unknown"
