"""Records as readings: which place of the table a number belongs to, and for which random seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from pubc.errors import DataError
from pubc.report.tables.table_head import ALL, Head
from pubc.results import Record

__all__ = ["Paper", "RecordValue", "is_failure", "readings", "strange"]

Paper = float | str | None
"""The paper's figure, or its mark for one that it does not have."""

# The kind of failure where a cell needs a file of the user, and nothing went wrong.
_NOT_GIVEN = "data_not_given"


@dataclass(frozen=True, slots=True)
class RecordValue:
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


def readings(head: Head, records: Sequence[Record], where: str) -> list[RecordValue]:
    """One reading of every record, or two of each of its measures: in its row, and over all.

    Raises:
        DataError: A record does not say where it belongs, or its figure is not a number.
    """
    if not head.measures:
        return [_read(head, record, where) for record in records]
    return [
        reading
        for number, record in enumerate(records)
        for one in _measured(head, record, number, where)
        for reading in (one, replace(one, row=ALL, failure=None))
        if reading.value is not None or reading.failure is not None
    ]


def is_failure(record: Record) -> bool:
    """Whether a cell failed, and not just for want of a file."""
    failed = record.values.get("failed")
    return failed is not None and failed["kind"] != _NOT_GIVEN


def _read(head: Head, record: Record, where: str) -> RecordValue:
    values, failed = record.values, record.values.get("failed")
    try:
        status = values.get("status")
        return RecordValue(
            row=_text(values["row"]),
            column=_text(values["column"]),
            random_seed=int(record.cell["random_seed"]),
            value=None if failed else _figure(head, values[values["measure"]]),
            paper=_paper(head, values.get("paper")),
            failure=None if failed is None else _why(failed["kind"], failed["message"]),
            given=failed is None or is_failure(record),
            status=None if status in (None, "converged") else str(status),
        )
    except (KeyError, TypeError, ValueError) as error:
        what = "its random seed, row, column and figure"
        raise strange(where, record, what, error) from None


def _measured(head: Head, record: Record, number: int, where: str) -> list[RecordValue]:
    """What a record says about every column of its row; its number stands for a random seed."""
    values, failed = record.values, record.values.get("failed")
    numbered = replace(record, cell={**record.cell, "random_seed": number})
    found = []
    for column, measure in head.measures.items():
        value = values.get(measure)
        if failed is None and value is None:
            continue
        shown = float(value) if isinstance(value, bool) else value
        # How each answer ended is what the columns are about; a footnote to all of them says less.
        place = {**values, "column": column, "measure": measure, measure: shown, "status": None}
        found.append(_read(head, replace(numbered, values=place), where))
    return found


def _why(kind: Any, message: Any) -> str:
    # Libraries explain themselves over many lines; the first says what happened.
    first = str(message).strip().partition("\n")[0]
    return first if kind == _NOT_GIVEN else f"{kind}: {first}"


def strange(where: str, record: Record, what: str, error: Exception) -> DataError:
    """The error for a record that does not hold what it should."""
    return DataError(
        f"{where}: expected the record {record.key} to hold {what}, found otherwise "
        f"({type(error).__name__}: {error}); compute the table again.",
        code="bad_record",
        field=record.key,
    )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError(f"expected a name, found {value!r}")
    return value


def _figure(head: Head, value: Any) -> float:
    if isinstance(value, dict):
        # What a policy earned: its mean, beside spread and range.
        value = value.get("mean")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError(f"expected a number, found {value!r}")
    if head.unit == "percent" and not 0 <= value <= 1:
        raise ValueError(f"expected a share from 0 to 1, found {value}")
    return float(value)


def _paper(head: Head, value: Any) -> Paper:
    return value if value is None or isinstance(value, str) else _figure(head, value)
