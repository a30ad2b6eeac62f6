"""The rounds of filters as a table: right and wrong decisions and the cut, the paper's Table 3."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pubc.metrics import mean_and_spread
from pubc.report.tables.record_values import strange
from pubc.report.tables.table_of_means import TableOfMeans
from pubc.report.tables.table_value import shown
from pubc.results import Record

__all__ = ["Rounds", "Strip", "rounds_of", "strips_of"]

_COUNTS = {
    "TP": "true_positives",
    "FP": "false_positives",
    "FN": "false_negatives",
    "TN": "true_negatives",
}
_MOST_STRIPS = 8


@dataclass(frozen=True, slots=True)
class Strip:
    """The rounds of one place of the table, for every random seed."""

    name: str
    """Row and column."""
    traces: Sequence[Sequence[Mapping[str, Any]]]
    """Rounds by random seed, the lowest seed first."""
    drawn: bool
    """Whether the figure shows it, and the page its rounds at once."""


@dataclass(frozen=True, slots=True)
class Rounds:
    """A table of rounds, as words."""

    columns: tuple[str, ...]
    """What is told of each round."""
    first: tuple[tuple[str, ...], ...]
    """Rows to show: a name and its columns; the paper's own come last."""
    more: tuple[tuple[str, ...], ...]
    """Rows for those who look for them."""


def strips_of(sheet: TableOfMeans) -> list[Strip]:
    """Every place whose records hold their rounds, in the order of the table."""
    by_place: dict[tuple[str, str], list[Record]] = {}
    for record in sheet.records:
        if isinstance(record.values.get("trace"), list):
            at = (str(record.values["row"]), str(record.values["column"]))
            by_place.setdefault(at, []).append(record)
    wanted = (sheet.head.figure or {}).get("rows")
    found: list[Strip] = []
    for row in sheet.rows:
        for column in sheet.columns:
            records = by_place.get((row.name, column))
            if records:
                records.sort(key=lambda record: int(record.cell["random_seed"]))
                chosen = row.name in wanted if wanted else len(found) < _MOST_STRIPS
                traces = [record.values["trace"] for record in records]
                found.append(Strip(f"{row.name}, {column}", traces, chosen))
    return found


def rounds_of(sheet: TableOfMeans, where: str) -> Rounds | None:
    """The table of rounds; None where no record holds any.

    Raises:
        DataError: A round does not say what it came to.
    """
    strips = strips_of(sheet)
    if not strips:
        return None
    try:
        first = [row for strip in strips if strip.drawn for row in _rows(strip)]
        more = [row for strip in strips if not strip.drawn for row in _rows(strip)]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise strange(where, sheet.records[0], "the rounds of its table", error) from None
    for name, rounds in (sheet.head.paper_rounds or {}).items():
        for number, done in enumerate(rounds, 1):
            counts = [shown(done[count], "count") for count in _COUNTS]
            first.append((f"{name} in the paper, round {number}", *counts, "", ""))
    return Rounds((*_COUNTS, "cut at", "random seeds"), tuple(first), tuple(more))


def _rows(strip: Strip) -> list[tuple[str, ...]]:
    rows = []
    for at in range(max(len(trace) for trace in strip.traces)):
        there = [trace[at] for trace in strip.traces if at < len(trace)]
        counts = [
            [float(done["confusion"][key]) for done in there if done["confusion"] is not None]
            for key in _COUNTS.values()
        ]
        cuts = [float(done["threshold"]) for done in there if done["threshold"] is not None]
        rows.append(
            (
                f"{strip.name}, round {at + 1}",
                *(_told(figures, "count") for figures in counts),
                _told([cut for cut in cuts if math.isfinite(cut)], "score"),
                f"{len(there)} of {len(strip.traces)}",
            )
        )
    return rows


def _told(figures: Sequence[float], unit: str) -> str:
    if not figures:
        return "\N{EN DASH}"
    spread = mean_and_spread(figures)
    apart = f" ± {shown(spread.deviation, unit)}" if spread.deviation else ""
    return shown(spread.mean, unit) + apart
