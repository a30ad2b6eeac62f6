"""Where we fall short of the paper or of another column, or differ, found by rule.

A difference counts where it is larger than the spread over random seeds and than what the
printed digits can hide. Nothing is compared where the head names no direction. A cell that nobody
gave the data for is a footnote and no more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pubc.report.tables.groups import Row
from pubc.report.tables.table_of_means import TableOfMeans
from pubc.report.tables.table_value import TableValue, resolution

__all__ = ["Shortfall", "shortfalls"]


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One place that needs an explanation."""

    row: str
    """Its row."""
    column: str
    """Its column."""
    kind: str
    """`short` for a figure of ours, `differs` for a baseline's, `failed` without a figure."""
    words: str
    """What is the matter."""


def shortfalls(sheet: TableOfMeans) -> list[Shortfall]:
    """Every place that falls short or differs, in the order of the table."""
    return [
        Shortfall(row.name, column, kind, words)
        for row in sheet.rows
        for column in sheet.columns
        for kind, words in _found(sheet, row, column)
    ]


def _found(sheet: TableOfMeans, row: Row, column: str) -> Iterator[tuple[str, str]]:
    place, unit = row.places[column], sheet.head.unit
    if place.failed and place.given:
        yield "failed", place.words(unit) if place.mean is None else "failed in part"
    if place.mean is None or sheet.head.direction == "neither":
        return
    figure, behind = place.words(unit), 0
    if isinstance(place.paper, float):
        behind = _behind(sheet, place, TableValue({0: place.paper}))
    if not _ours(sheet, row, column):
        total = column in {group.name for group in sheet.head.totals}
        if behind and not (row.summary or total):
            yield "differs", f"{figure} (published {place.paper_words(unit)})"
        return
    better = [f"the paper's {place.paper_words(unit)}"] if behind > 0 else []
    better += [
        f"`{name}` ({other.words(unit)})"
        for name, other in _rivals(sheet, row, column).items()
        if _behind(sheet, place, other) > 0
    ]
    if better:
        yield "short", f"{figure} is {_worse(sheet)} {', '.join(better)}"


def _rivals(sheet: TableOfMeans, row: Row, column: str) -> dict[str, TableValue]:
    """What a figure of ours is held against: the other columns, or the other row of its pair."""
    head, rivals = sheet.head, {}
    if column in head.ours:
        out = {column, *head.not_ranked, *(group.name for group in head.totals)}
        rivals = {name: other for name, other in row.places.items() if name not in out}
    for first, second in head.pairs:
        if row.name == first:
            rivals |= {r.name: r.places[column] for r in sheet.rows if r.name == second}
    return rivals


def _ours(sheet: TableOfMeans, row: Row, column: str) -> bool:
    return column in sheet.head.ours or row.name in {first for first, _ in sheet.head.pairs}


def _behind(sheet: TableOfMeans, place: TableValue, other: TableValue) -> int:
    """1 where the other is better by more than the spread, -1 where it is worse, else 0."""
    if place.mean is None or other.mean is None:
        return 0
    apart = other.mean - place.mean
    if abs(apart) <= max(place.spread, other.spread, resolution(sheet.head.unit)):
        return 0
    return 1 if (apart > 0) == (sheet.head.direction == "higher") else -1


def _worse(sheet: TableOfMeans) -> str:
    return "below" if sheet.head.direction == "higher" else "above"
