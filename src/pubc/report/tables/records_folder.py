"""A folder of records as `pubc reproduce` leaves it: heads, records, and notes by hand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pubc.errors import DataError, UsageError
from pubc.report.policies import is_policy
from pubc.report.tables.handwritten_notes import Note, Notes, read_notes
from pubc.report.tables.rounds_table import Rounds, rounds_of
from pubc.report.tables.shortfalls import Shortfall, shortfalls
from pubc.report.tables.table_of_means import TableOfMeans, sheet
from pubc.results import read
from pubc.runs.folder.run_folder import is_run
from pubc.storage import read_json

__all__ = ["Explained", "Table", "find_records", "read_table", "read_tables"]

_RECORDS = "records"
_ORDER = (
    "pu-accuracy",
    "policy-scores",
    "convergence",
    "collection",
    "ablation",
    "d4rl",
    "seeds",
)


@dataclass(frozen=True, slots=True)
class Explained:
    """Places that fall short or differ, with what was written about them."""

    note: Note | None
    """The explanation; None where there is none yet."""
    places: tuple[Shortfall, ...]
    """What it explains."""


@dataclass(frozen=True, slots=True)
class Table:
    """Everything that is known about one table."""

    sheet: TableOfMeans
    """Its figures."""
    notes: Notes
    """What was written about it."""
    shortfalls: tuple[Shortfall, ...]
    """Where it falls short or differs."""
    rounds: Rounds | None
    """The rounds of its filters, where its records hold them."""

    def explained(self) -> list[Explained]:
        """Every note with the places it is about, then the places without one."""
        left = list(self.shortfalls)
        found = []
        for note in self.notes.each:
            mine = tuple(p for p in left if p.row in note.names or p.column in note.names)
            left = [place for place in left if place not in mine]
            found.append(Explained(note, mine))
        return [*found, Explained(None, tuple(left))] if left else found


def find_records(path: Path) -> Path | None:
    """The folder of records at a path, or in the folder of a reproduction; None for others.

    Raises:
        UsageError: It is an empty folder.
    """
    if not path.is_dir():
        return None
    if is_run(path) or is_policy(path):
        return None
    for place in (path, path / _RECORDS):
        # A head of its own tells records of tables from the journals of unfinished runs.
        if any(records.with_suffix(".json").is_file() for records in place.glob("*.jsonl")):
            return place
    if not any(path.iterdir()):
        raise UsageError(
            f"{path} is empty: there is nothing to report yet. `pubc reproduce TABLE --out DIR` "
            "writes records into DIR/records, `pubc filter` and `pubc train` write folders of "
            "their own."
        )
    return None


def read_tables(folder: Path) -> list[Table]:
    """Every table of a folder, in the order of the paper.

    Raises:
        DataError: A head, a record or a note is not what it should be, or there is none.
    """
    names = {path.stem for path in folder.glob("*.jsonl")} | {p.stem for p in folder.glob("*.json")}
    if not names:
        raise DataError(f"{folder}: expected heads and records of tables.", code="no_records")
    places = {name: at for at, name in enumerate(_ORDER)}
    ordered = sorted(
        names, key=lambda name: (places.get(name.removesuffix("-paper"), len(_ORDER)), name)
    )
    return [read_table(folder, name) for name in ordered]


def read_table(folder: Path, name: str) -> Table:
    """One table of a folder.

    Raises:
        DataError: Its head, a record or a note is not what it should be.
    """
    head = folder / f"{name}.json"
    if not head.is_file():
        raise DataError(
            f"{folder}: expected the head {head.name} beside the records {name}.jsonl, found "
            "none; `pubc reproduce` writes both.",
            code="no_head",
            field=head.name,
        )
    made = sheet(read_json(head), read(folder / f"{name}.jsonl"), str(head))
    if made.head.table != name:
        raise DataError(
            f"{head}: expected the head of the table {name}, found that of {made.head.table}.",
            code="bad_head",
            field="table",
        )
    known = {row.name for row in made.rows} | set(made.columns)
    notes = read_notes(folder / f"{name}.notes.md", known)
    return Table(made, notes, tuple(shortfalls(made)), rounds_of(made, str(head)))
