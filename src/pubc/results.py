"""Records: one JSON line for each number that was computed, keyed by what was asked for.

A record is identified by the hash of its cell, so a finished cell is never computed twice and
two random seeds never collide.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pubc.errors import DataError
from pubc.storage import append_lines, check_lines, check_target, parse_json

__all__ = ["Record", "append", "check", "key_of", "read"]


@dataclass(frozen=True, slots=True)
class Record:
    """What was asked for, and what came out."""

    cell: Mapping[str, Any]
    """Everything that fixes the result, JSON values only."""
    values: Mapping[str, Any]
    """The result, JSON values only."""

    @property
    def key(self) -> str:
        """Hash of the cell."""
        return key_of(self.cell)

    def document(self) -> dict[str, Any]:
        """The record as one JSON object."""
        return {"key": self.key, "cell": dict(self.cell), **self.values}


def key_of(cell: Mapping[str, Any]) -> str:
    """A short hash of a cell; the order of its entries does not matter."""
    words = json.dumps(cell, sort_keys=True, allow_nan=False)
    return hashlib.sha256(words.encode()).hexdigest()[:16]


def append(path: Path, *records: Record) -> None:
    """Add records to a file of JSON lines in one step; nothing that is in it is ever removed.

    Raises:
        DataError: The file ends in something else than a line of JSON.
    """
    append_lines(path, *(record.document() for record in records))


def check(path: Path) -> None:
    """Refuse a file that no record can be added to, before the record is computed.

    Raises:
        DataError: The file holds something else than records.
        UsageError: It is no file, or lies in a folder that pubc sealed.
    """
    check_target(path)
    check_lines(path)
    if path.exists():
        # What has no newline at its end is a whole line, or was refused.
        _parse(path, path.read_bytes().removesuffix(b"\n").split(b"\n"))


def read(path: Path) -> list[Record]:
    """Every record of a file; a last line that was torn by a kill is passed over.

    Raises:
        DataError: A line is not a record.
    """
    return _parse(path, path.read_bytes().split(b"\n")[:-1]) if path.exists() else []


def _parse(path: Path, lines: list[bytes]) -> list[Record]:
    records = []
    for number, line in enumerate(lines if lines != [b""] else (), start=1):
        try:
            document = parse_json(line)
            cell = document.pop("cell")
            if document.pop("key") != key_of(cell):
                raise ValueError("the key is not the hash of the cell")
        except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
            raise DataError(
                f"{path}: line {number} is not a record of pubc ({error}).",
                code="bad_record",
                index=number,
            ) from None
        records.append(Record(cell, document))
    return records
