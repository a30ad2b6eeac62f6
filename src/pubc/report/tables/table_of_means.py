"""Records in, a table of means and spreads out: pure, and the same for a page or a terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pubc.report.tables.groups import Row, summary, with_totals
from pubc.report.tables.record_values import RecordValue, is_failure, readings
from pubc.report.tables.table_head import Head, head_of
from pubc.report.tables.table_value import EMPTY, TableValue, rounded
from pubc.results import Record
from pubc.trajectory.numbered_ids import DIGITS

__all__ = ["TableOfMeans", "sheet"]


@dataclass(frozen=True, slots=True)
class TableOfMeans:
    """A table with its figures."""

    head: Head
    """What it says about itself."""
    columns: tuple[str, ...]
    """Every column in order, totals last."""
    rows: tuple[Row, ...]
    """Every row in order, summaries after the last of their rows."""
    records: tuple[Record, ...]
    """What it is made of."""
    random_seeds: int
    """Most repetitions that any place has."""

    @property
    def failed(self) -> int:
        """Cells that failed."""
        return sum(is_failure(record) for record in self.records)

    @property
    def not_given(self) -> int:
        """Cells that nobody gave the data for."""
        return sum("failed" in record.values for record in self.records) - self.failed


def sheet(document: Mapping[str, Any], records: Sequence[Record], where: str) -> TableOfMeans:
    """Make the table of a head and its records.

    Args:
        document: The head, as `pubc reproduce` writes it.
        records: Its records, in any order, failed and outdated ones among them.
        where: The folder or file they come from, for errors.

    Raises:
        DataError: The head or a record is not what it should be.
    """
    head = head_of(document, where)
    latest = _latest(records)
    by_place: dict[tuple[str, str], dict[int, RecordValue]] = {}
    for reading in readings(head, latest, where):
        by_place.setdefault((reading.row, reading.column), {})[reading.random_seed] = reading
    columns = _ordered(head.columns, (column for _, column in by_place))
    most = max((len(seeds) for seeds in by_place.values()), default=0)
    if head.measures:
        # The records of a row are different questions, not repetitions of one.
        most = 1
    rows = []
    for name in _ordered(head.rows, (row for row, _ in by_place)):
        places = {column: _place(by_place.get((name, column), {}), most) for column in columns}
        computed = any(place != EMPTY for place in places.values())
        places = _shares(head, places)
        row = Row(name, places, remark=None if computed else "not computed")
        rows.append(replace(row, places=with_totals(row, head.totals)))
    columns += tuple(group.name for group in head.totals)
    for group in head.summaries:
        made = summary(group, rows, columns)
        if made is not None:
            rows.insert(_below(head, rows, group.of), made)
    return TableOfMeans(head, columns, _marked(head, rows), tuple(latest), most)


def _below(head: Head, rows: Sequence[Row], members: Sequence[str]) -> int:
    """Where a summary belongs: below all of its rows and the summaries that stand there."""
    groups = {group.name: group.of for group in head.summaries}
    leaves = list(members)
    while any(name in groups for name in leaves):
        leaves = [leaf for name in leaves for leaf in groups.get(name, (name,))]
    at = 1 + max(at for at, row in enumerate(rows) if row.name in leaves)
    # Between the rows of a pair there is no place for a third.
    while at < len(rows) and (rows[at].summary or head.pairs):
        at += 1
    return at


def _latest(records: Sequence[Record]) -> list[Record]:
    """The last record of each key and place, in an order that does not depend on the file."""
    last = {
        (record.key, str(record.values.get("row")), str(record.values.get("column"))): record
        for record in records
    }
    return [last[at] for at in sorted(last)]


def _place(found: Mapping[int, RecordValue], most: int) -> TableValue:
    if not found:
        return EMPTY
    each = [found[seed] for seed in sorted(found)]
    by_seed = {r.random_seed: r.value for r in each if r.value is not None}
    papers = [reading.paper for reading in each if reading.paper is not None]
    remarks = tuple(_remarks(each, len(by_seed), most))
    return TableValue(
        by_seed,
        papers[-1] if papers else None,
        failed=len(each) - len(by_seed),
        given=any(reading.given for reading in each),
        remarks=remarks,
    )


def _shares(head: Head, places: Mapping[str, TableValue]) -> dict[str, TableValue]:
    """The places of a row, each with what it is of the reference, where there is one."""
    known = None if head.reference is None else places.get(head.reference)
    whole = None if known is None else known.mean
    if not whole:
        return dict(places)
    return {
        column: place
        if place.mean is None or column == head.reference
        else replace(place, share=place.mean / whole)
        for column, place in places.items()
    }


def _remarks(each: Sequence[RecordValue], finished: int, most: int) -> Iterable[str]:
    many = len(each)
    for failure in dict.fromkeys(r.failure for r in each if r.failure is not None):
        count = sum(reading.failure == failure for reading in each)
        yield f"{count} of {many} failed: {failure}" if finished else failure
    for status in dict.fromkeys(r.status for r in each if r.status is not None):
        count = sum(reading.status == status for reading in each)
        yield f"{count} of {many} ended {status}"
    if finished and many < most:
        yield f"{many} of {most} random seeds"


def _ordered(listed: Sequence[str], found: Iterable[str]) -> tuple[str, ...]:
    """Names in the order of the head, others after them with numbers in their order."""
    return tuple(listed) + tuple(sorted(set(found) - set(listed), key=_natural))


def _natural(name: str) -> list[tuple[int, str]]:
    parts = re.split(rf"(\d{{1,{DIGITS}}})", name)
    return [(int(part) if part.isdecimal() else -1, part) for part in parts]


def _marked(head: Head, rows: Sequence[Row]) -> tuple[Row, ...]:
    """The same rows with the best figures marked: of a row, or of a pair of rows."""
    if not head.compared:
        return tuple(rows)
    best: set[tuple[str, str]] = set()
    if head.pairs:
        known = {row.name: row for row in rows}
        for pair in head.pairs:
            both = [known[name] for name in pair if name in known]
            for column in both[0].places if both else ():
                best |= _best(head, {(row.name, column): row.places[column] for row in both})
    else:
        out = {*head.not_ranked, *(group.name for group in head.totals)}
        for row in rows:
            places = row.places.items()
            best |= _best(head, {(row.name, c): place for c, place in places if c not in out})
    return tuple(
        replace(
            row,
            places={
                column: replace(place, best=(row.name, column) in best)
                for column, place in row.places.items()
            },
        )
        for row in rows
    )


def _best(head: Head, places: Mapping[tuple[str, str], TableValue]) -> set[tuple[str, str]]:
    """Who has the best figure as printed; nobody where all have the same."""
    figures = {
        at: rounded(place.mean, head.unit) for at, place in places.items() if place.mean is not None
    }
    if len(set(figures.values())) < 2:
        return set()
    top = (max if head.direction == "higher" else min)(figures.values())
    return {at for at, figure in figures.items() if figure == top}
