"""A table on the terminal: mean and spread over random seeds, the paper's number beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pubc.experiments.cell import Table

__all__ = ["draw"]


def draw(table: Table, documents: Sequence[Mapping[str, Any]]) -> str:
    """The table as aligned text; a cell reads `ours ± spread (paper)`."""
    rows = [row for row in table.rows if any(d["row"] == row for d in documents)]
    columns = [name for name in table.columns if any(d["column"] == name for d in documents)]
    body = [
        [row]
        + [
            _cell(table, [d for d in documents if (d["row"], d["column"]) == (row, column)])
            for column in columns
        ]
        for row in rows
    ]
    lines = [["ours ± spread (paper)", *columns], *body]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns) + 1)]
    return "\n".join(
        "  ".join(
            word.ljust(width) if place == 0 else word.rjust(width)
            for place, (word, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )


def _cell(table: Table, documents: Sequence[Mapping[str, Any]]) -> str:
    from pubc.metrics import mean_and_spread

    values = [d[d["measure"]] for d in documents if "failed" not in d]
    paper = documents[0]["paper"] if documents else None
    beside = "" if paper is None else f" ({_number(table, paper)})"
    if not values:
        kinds = sorted({d["failed"]["kind"] for d in documents})
        words = {"data_not_given": "not given"}
        return " ".join(words.get(kind, kind) for kind in kinds) + beside
    spread = mean_and_spread(values)
    lost = f" {len(documents) - len(values)} failed" if len(values) < len(documents) else ""
    around = f" ± {_number(table, spread.deviation)}" if spread.count > 1 else ""
    return f"{_number(table, spread.mean)}{around}{lost}{beside}"


def _number(table: Table, value: float) -> str:
    if table.unit == "percent":
        return f"{100 * value:.1f}"
    return f"{value:.2f}" if table.unit == "score" else f"{value:,.0f}"
