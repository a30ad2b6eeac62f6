"""Means and sums over rows and columns, as the paper's tables have them.

A group is computed for each random seed and then averaged, so its spread is that of the group.
The paper's figure beside it is over the same members: where we have fewer rows than the paper,
its printed average would be another quantity.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pubc.report.tables.record_values import Paper
from pubc.report.tables.table_head import Group
from pubc.report.tables.table_value import TableValue

__all__ = ["Row", "summary", "with_totals"]


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    name: str
    """What it is about."""
    places: Mapping[str, TableValue]
    """By column."""
    summary: bool = False
    """Whether it is made of other rows."""
    partial: bool = False
    """Whether it lacks some of the rows that it is made of in the paper."""
    remark: str | None = None
    """What to know about the whole row."""

    @property
    def known(self) -> bool:
        """Whether there is any figure in it."""
        return any(place.by_seed for place in self.places.values())


def with_totals(row: Row, groups: Sequence[Group]) -> dict[str, TableValue]:
    """The places of a row and those of the totals over its columns."""
    places = dict(row.places)
    for group in groups:
        members = {name: places.get(name, TableValue()) for name in group.of}
        places[group.name] = _combined(group, members, group.paper.get(row.name))
    return places


def summary(group: Group, rows: Sequence[Row], columns: Sequence[str]) -> Row | None:
    """A row over rows; None where none of its rows has a figure.

    Args:
        group: What to compute.
        rows: The rows above it, other summaries among them.
        columns: Columns in order.
    """
    members = [row for row in rows if row.name in group.of and row.known]
    if not members:
        return None
    partial = len(members) < len(group.of) or any(row.partial for row in members)
    places = {
        column: _combined(
            group,
            {row.name: row.places[column] for row in members},
            None if partial else group.paper.get(column),
        )
        for column in columns
    }
    remark = None
    if partial:
        of = ", ".join(row.name for row in members)
        remark = f"over what there is, {of}; so are the paper's figures beside it"
    return Row(group.name, places, True, partial, remark)


def _combined(group: Group, members: Mapping[str, TableValue], printed: Paper) -> TableValue:
    if not any(place.by_seed for place in members.values()):
        return TableValue()
    missing = [name for name, place in members.items() if not place.by_seed]
    if missing:
        return TableValue(remarks=(f"no {group.how}: {', '.join(missing)} missing",))
    each = list(members.values())
    seeds = sorted(set.intersection(*(set(place.by_seed) for place in each)))
    if not seeds:
        return TableValue(remarks=(f"no {group.how}: no random seed has all of it",))
    return TableValue(
        {seed: _made(group.how, [place.by_seed[seed] for place in each]) for seed in seeds},
        _paper(group.how, each) if printed is None else printed,
    )


def _paper(how: str, places: Sequence[TableValue]) -> Paper:
    figures = [place.paper for place in places if isinstance(place.paper, float)]
    return _made(how, figures) if len(figures) == len(places) else None


def _made(how: str, figures: Sequence[float]) -> float:
    # Exact before rounding, so that the order of the rows changes no digit.
    total = math.fsum(figures)
    return total / len(figures) if how == "mean" else total
