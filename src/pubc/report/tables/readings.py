"""Records as readings: which place of the table a number belongs to, and for which random seed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pubc.errors import DataError
from pubc.report.tables.head import Head
from pubc.results import Record

__all__ = ["Paper", "Reading", "by_round", "readings"]

Paper = float | str | None
"""The paper's figure, or its mark for one that it does not have."""

# The kind of failure where a cell needs a file of the user, and nothing went wrong.
_NOT_GIVEN = "data_not_given"
_COUNTS = {
    "TP": "true_positives",
    "FP": "false_positives",
    "FN": "false_negatives",
    "TN": "true_negatives",
}


@dataclass(frozen=True, slots=True)
class Reading:
    """What one record says about one place of the table."""

    row: str
    """Its row."""
    column: str
    """Its column."""
    random_seed: int
    """Which repetition it is."""
    value: float | None
    """The figure; None where the cell failed."""
    paper: Paper = None
    """The paper's figure."""
    failure: str | None = None
    """Why the cell failed."""
    given: bool = True
    """Whether there was data to compute it from."""
    status: str | None = None
    """How a filter ended, where it did not simply converge."""


def readings(head: Head, records: Sequence[Record], where: str) -> list[Reading]:
    """One reading of every record.

    Raises:
        DataError: A record does not say where it belongs, or its figure is not a number.
    """
    return [reading for _, reading in _each(head, records, where)]


def by_round(head: Head, records: Sequence[Record], where: str) -> tuple[Head, list[Reading]]:
    """Readings of the rounds of each filter, and the head of the table that they make.

    Raises:
        DataError: A record does not say where it belongs, or what its rounds came to.
    """
    found: list[Reading] = []
    order: dict[str, tuple[int, int, int]] = {}
    for record, whole in _each(head, records, where):
        name = f"{whole.row}, {whole.column}" if len(head.columns) > 1 else whole.row
        at = (_index(head.rows, whole.row), _index(head.columns, whole.column))
        for number, row, reading in _rounds(head, record, whole, name, where):
            order[row] = (*at, number)
            found += reading
    rows = tuple(sorted(order, key=lambda row: (order[row], row)))
    return replace(head, rows=rows, columns=tuple(_COUNTS)), found


def _rounds(
    head: Head, record: Record, whole: Reading, name: str, where: str
) -> Iterator[tuple[int, str, list[Reading]]]:
    if whole.failure is not None:
        yield 0, name, [replace(whole, row=name, column=column) for column in _COUNTS]
        return
    papers = (head.by_round or {}).get(name, [])
    try:
        for number, done in enumerate(record.values["trace"], 1):
            row = f"{name}, round {number}"
            paper = papers[number - 1] if number <= len(papers) else [None] * len(_COUNTS)
            yield (
                number,
                row,
                [
                    Reading(
                        row,
                        column,
                        whole.random_seed,
                        _figure(head, done["confusion"][key]),
                        _paper(head, printed),
                    )
                    for (column, key), printed in zip(_COUNTS.items(), paper, strict=True)
                ],
            )
    except (KeyError, TypeError, ValueError) as error:
        raise _strange(where, record, "the counts of its rounds", error) from None


def _each(head: Head, records: Sequence[Record], where: str) -> Iterator[tuple[Record, Reading]]:
    for record in records:
        values, failed = record.values, record.values.get("failed")
        try:
            status = values.get("status")
            reading = Reading(
                row=_text(values["row"]),
                column=_text(values["column"]),
                random_seed=int(record.cell["random_seed"]),
                value=None if failed else _figure(head, values[values["measure"]]),
                paper=_paper(head, values.get("paper")),
                failure=None if failed is None else _why(failed["kind"], failed["message"]),
                given=failed is None or failed["kind"] != _NOT_GIVEN,
                status=None if status in (None, "converged") else str(status),
            )
        except (KeyError, TypeError, ValueError) as error:
            what = "its random seed, row, column and figure"
            raise _strange(where, record, what, error) from None
        yield record, reading


def _why(kind: Any, message: Any) -> str:
    return str(message) if kind == _NOT_GIVEN else f"{kind}: {message}"


def _strange(where: str, record: Record, what: str, error: Exception) -> DataError:
    return DataError(
        f"{where}: expected the record {record.key} to hold {what}, found otherwise "
        f"({type(error).__name__}: {error}); compute the table again.",
        code="bad_record",
        field=record.key,
    )


def _index(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"expected a name, found {value!r}")
    return value


def _figure(head: Head, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"expected a number, found {value!r}")
    if head.unit == "percent" and not 0 <= value <= 1:
        raise ValueError(f"expected a share from 0 to 1, found {value}")
    return float(value)


def _paper(head: Head, value: Any) -> Paper:
    return value if value is None or isinstance(value, str) else _figure(head, value)
