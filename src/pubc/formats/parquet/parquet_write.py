"""Arrow tables made of arrays, and Parquet files made of tables, with page checksums."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import UsageError
from pubc.formats.parquet.parquet_read import arrow

__all__ = ["join", "make_table", "pick", "with_column", "write_tables"]


def make_table(columns: Mapping[str, Any], *, index: str | None = None) -> Any:
    """A table from arrays with one row each, or lists of words (or None).

    Args:
        columns: By name. Arrays of shape (rows, n) become fixed-size lists, arrays of more
            axes nested lists.
        index: Column that pandas shall take as the index.
    """
    pa = arrow()
    table = pa.table({name: _to_arrow(pa, values) for name, values in columns.items()})
    if index is None:
        return table
    return table.replace_schema_metadata({b"pandas": _pandas_words(columns, index)})


def with_column(table: Any, name: str, values: Any) -> Any:
    """The table with one column replaced, at its place."""
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, _to_arrow(arrow(), values))


def pick(table: Any, rows: Any) -> Any:
    """The given rows of a table, in that order."""
    return table.take(arrow().array(rows))


def join(tables: Sequence[Any]) -> Any:
    """Tables of one kind, one below the other; a missing column is filled with nulls."""
    return arrow().concat_tables(tables, promote_options="default")


def write_tables(path: Path, tables: Iterable[Any]) -> int:
    """Write tables of one schema to a new file, each as one row group.

    Returns:
        Bytes written.
    """
    pa = arrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = None
    # Opened here: pyarrow takes no name that is not UTF-8.
    with path.open("wb") as file, contextlib.ExitStack() as ends:
        for table in tables:
            if writer is None:
                # Dictionaries would merge the many kinds of NaN into one.
                writer = pa.parquet.ParquetWriter(
                    file,
                    table.schema,
                    compression="snappy",
                    use_dictionary=False,
                    write_page_checksum=True,
                )
                ends.callback(writer.close)
            writer.write_table(table, row_group_size=max(1, table.num_rows))
    return path.stat().st_size


def _to_arrow(pa: Any, values: Any) -> Any:
    if not isinstance(values, np.ndarray) or values.dtype.kind in "US":
        return pa.array(values if values is None else list(values))
    if values.dtype.kind not in "fiub" or values.dtype.itemsize > 8:
        raise UsageError(f"Parquet cannot hold numbers of dtype {values.dtype}.")
    native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    inner = pa.array(native.reshape(-1))
    for size in reversed(values.shape[2:]):
        inner = pa.ListArray.from_arrays(_steps(len(inner), size), inner)
    if values.ndim > 2:
        return pa.ListArray.from_arrays(_steps(len(inner), values.shape[1]), inner)
    return pa.FixedSizeListArray.from_arrays(inner, values.shape[1]) if values.ndim == 2 else inner


def _steps(length: int, size: int) -> Any:
    return np.arange(0, length + 1, size, dtype=np.int32)


def _pandas_words(columns: Mapping[str, Any], index: str) -> bytes:
    def entry(name: str, values: Any) -> dict[str, Any]:
        numbers = isinstance(values, np.ndarray) and values.dtype.kind in "fiub"
        kind = str(values.dtype) if numbers else "unicode"
        return {
            "name": name,
            "field_name": name,
            "pandas_type": kind,
            "numpy_type": kind if numbers else "object",
            "metadata": None,
        }

    words = {
        "index_columns": [index],
        "column_indexes": [],
        "columns": [entry(name, values) for name, values in columns.items()],
        "pandas_version": "2.0.0",
    }
    return json.dumps(words).encode()
