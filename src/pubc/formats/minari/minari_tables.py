"""The Arrow and Parquet layouts of Minari: one folder per episode, one table in it.

Every column but the observations is padded by one row, because a table needs columns of one
length; the padding is dropped again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import DataError, MissingExtraError
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.formats.episodes.episode_source import Episode
from pubc.formats.parquet.parquet_read import is_numeric, read_table, to_numpy
from pubc.storage import read_json, utf8_name
from pubc.trajectory import Array

__all__ = ["Tables", "open_tables"]

_FILES = ("*.parquet", "*.arrow")


@dataclass(frozen=True, slots=True)
class _Leaf:
    """One column of one episode, in memory."""

    values: Array | None
    """None where it does not hold numbers."""

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Its shape; None where it holds no numbers."""
        return None if self.values is None else self.values.shape


class Tables:
    """Reads leaves that are in memory already."""

    def dtype(self, node: _Leaf) -> np.dtype[Any]:
        """Element type of a leaf."""
        return np.dtype(object) if node.values is None else node.values.dtype

    def is_numeric(self, node: _Leaf) -> bool:
        """Whether a leaf holds numbers."""
        return node.values is not None

    def fill(self, node: _Leaf, out: Array) -> None:
        """Copy a leaf into an array of its shape."""
        out[...] = node.values


def open_tables(
    folder: Path, wanted: tuple[str, ...], options: ReadOptions, findings: Findings
) -> tuple[Tables, list[Episode], dict[int, dict[str, Any]]]:
    """Read every episode folder.

    Returns:
        The source, the episodes in order, and the wanted attributes of each by its number.
    """
    episodes, attributes = [], {}
    numbered = {int(f.name): f for f in folder.iterdir() if f.is_dir() and f.name.isdigit()}
    for number, place in sorted(numbered.items()):
        try:
            episodes.append(Episode(number, _leaves(place, findings)))
        except DataError as error:
            if not options.skip_bad_files:
                raise
            findings.repair("bad_file", f"{error} Left out.", field=place.name, first=number)
            continue
        about = place / "metadata.json"
        facts = read_json(about) if about.exists() else {}
        attributes[number] = {name: facts[name] for name in wanted if name in facts}
    return Tables(), episodes, attributes


def _leaves(place: Path, findings: Findings) -> dict[str, Any]:
    files = sorted(file for pattern in _FILES for file in place.glob(pattern))
    if len(files) != 1:
        findings.refuse(
            "missing_file",
            f"expected one Arrow or Parquet file in {place}, found {len(files)}.",
            field=place.name,
        )
    path = files[0]
    table = read_table(path) if path.suffix == ".parquet" else _read_arrow(path)
    return dict(_columns(path, table))


def _columns(path: Path, table: Any) -> Iterator[tuple[str, _Leaf]]:
    rows = table.num_rows
    for name, column in _flatten(table):
        if not is_numeric(column.type):
            yield name, _Leaf(None)
            continue
        values = to_numpy(path, table.from_arrays([column], names=[name]), name)
        padded = not name.startswith(("observations", "infos")) and rows
        yield name, _Leaf(values[:-1] if padded else values)


def _flatten(table: Any) -> Iterator[tuple[str, Any]]:
    """Columns with structs taken apart; positions in a tuple are named as in HDF5."""
    for name in table.column_names:
        yield from _flatten_column(name, table.column(name))


def _flatten_column(name: str, column: Any) -> Iterator[tuple[str, Any]]:
    if not column.type.num_fields or hasattr(column.type, "value_type"):
        yield name, column
        return
    for number, inner in enumerate(column.flatten()):
        key = column.type.field(number).name
        key = f"_index_{key}" if key.isdigit() else key
        yield from _flatten_column(f"{name}/{key}", inner)


def _read_arrow(path: Path) -> Any:
    try:
        import pyarrow
        import pyarrow.ipc
    except ImportError:
        raise MissingExtraError("Reading Minari's Arrow layout", "lerobot") from None
    try:
        with utf8_name(path) as name, pyarrow.OSFile(str(name)) as file:
            table = pyarrow.ipc.open_file(file).read_all()
        table.validate(full=True)
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        said = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not readable as Arrow ({said}).", code="truncated") from None
    return table
