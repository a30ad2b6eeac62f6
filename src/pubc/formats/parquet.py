"""Parquet files from strangers: sizes checked before anything is decoded, numbers out.

The only door to pyarrow. A Parquet file can promise two thousand million rows in a few
bytes (runs and deltas compress without bound), carry Arrow extension types that once held
pickles, or have lost its footer with the writer that died. Each is refused in words that
name the file. What is written here carries page checksums.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import DataError, EnvironmentFailure, MissingExtraError, UsageError
from pubc.trajectory import Array

__all__ = [
    "is_numeric",
    "join",
    "make_table",
    "open_parquet",
    "pick",
    "read_table",
    "to_numpy",
    "with_column",
    "write_tables",
]

RATIO_LIMIT = 1000
"""Decoded bytes per stored byte that are still believed."""
FREE_BYTES = 64 << 20
"""Below this much decoded data a file may compress as it likes: a constant column does."""
_MAGIC = b"PAR1"
_WIDTHS = {
    "BOOLEAN": 1,
    "INT32": 4,
    "INT64": 8,
    "INT96": 12,
    "FLOAT": 4,
    "DOUBLE": 8,
}


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtraError("Reading and writing Parquet", "lerobot") from None
    return pyarrow


def open_parquet(path: Path) -> Any:
    """Open a file whose footer, row counts and sizes hold up; nothing is decoded yet.

    Raises:
        DataError: No Parquet file, no footer, a promise out of proportion, or a type that
            could carry code.
    """
    pa = _arrow()
    size = _check_ends(path)
    with _words(path):
        file = pa.parquet.ParquetFile(
            path,
            thrift_string_size_limit=64 << 20,
            thrift_container_size_limit=4 << 20,
            page_checksum_verification=True,
            pre_buffer=False,  # for a network; on a disk it costs a quarter of the time
        )
        _check_extension(path, file.metadata.metadata or {})
        _check_sizes(path, file, size)
    return file


def read_table(path: Path, wanted: Callable[[str, Any], bool] | None = None) -> Any:
    """Read a file as an Arrow table.

    Args:
        path: The file.
        wanted: Says for a column's name and Arrow type whether to read it; all if omitted.
    """
    file = open_parquet(path)
    with _words(path), file:
        names = [f.name for f in file.schema_arrow if wanted is None or wanted(f.name, f.type)]
        table = file.read(columns=names)
        table.validate()
    if table.num_rows != file.metadata.num_rows:
        raise DataError(
            f"{path}: its footer promises {file.metadata.num_rows:,} rows, {table.num_rows:,} "
            "could be read. The file is damaged.",
            code="truncated",
        )
    return table


def is_numeric(kind: Any) -> bool:
    """Whether an Arrow type is a number, a boolean, or lists of them."""
    pa = _arrow()
    while pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    return bool(
        pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind)
    )


def to_numpy(path: Path, table: Any, name: str) -> Array:
    """One numeric column as an array, shape (rows, ...); lists must have equal lengths."""
    column = table.column(name)
    if not is_numeric(column.type):
        raise DataError(
            f"{path}: {name}: expected numbers, found {column.type}.", code="bad_dtype", field=name
        )
    parts = [_chunk(path, chunk, name) for chunk in column.chunks if len(chunk)]
    if not parts:
        return np.zeros(0, dtype=np.float32)
    shapes = {part.shape[1:] for part in parts}
    if len(shapes) > 1:
        _refuse_ragged(path, name, sorted(shapes))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def make_table(columns: Mapping[str, Any], *, index: str | None = None) -> Any:
    """A table from arrays with one row each, or lists of words (or None).

    Args:
        columns: By name. Arrays of shape (rows, n) become fixed-size lists, arrays of more
            axes nested lists.
        index: Column that pandas shall take as the index.
    """
    pa = _arrow()
    table = pa.table({name: _to_arrow(pa, values) for name, values in columns.items()})
    if index is None:
        return table
    return table.replace_schema_metadata({b"pandas": _pandas_words(columns, index)})


def with_column(table: Any, name: str, values: Any) -> Any:
    """The table with one column replaced, at its place."""
    place = table.schema.get_field_index(name)
    return table.set_column(place, name, _to_arrow(_arrow(), values))


def pick(table: Any, rows: Any) -> Any:
    """The given rows of a table, in that order."""
    return table.take(_arrow().array(rows))


def join(tables: Sequence[Any]) -> Any:
    """Tables of one kind, one below the other; a missing column is filled with nulls."""
    return _arrow().concat_tables(tables, promote_options="default")


def write_tables(path: Path, tables: Iterable[Any]) -> int:
    """Write tables of one schema to a new file, each as one row group.

    Returns:
        Bytes written.
    """
    pa = _arrow()
    path.parent.mkdir(parents=True, exist_ok=True)
    writer = None
    try:
        for table in tables:
            if writer is None:
                # Dictionaries would merge the many kinds of NaN into one.
                writer = pa.parquet.ParquetWriter(
                    path,
                    table.schema,
                    compression="snappy",
                    use_dictionary=False,
                    write_page_checksum=True,
                )
            writer.write_table(table, row_group_size=max(1, table.num_rows))
    finally:
        if writer is not None:
            writer.close()
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


def _check_ends(path: Path) -> int:
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            head = file.read(4)
            file.seek(max(0, size - 8))
            tail = file.read(8)
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {error.strerror}.") from error
    if head != _MAGIC:
        raise DataError(f"{path}: not a Parquet file.", code="bad_file")
    if size < 12 or tail[4:] != _MAGIC:
        raise DataError(
            f"{path}: a Parquet file of {size:,} bytes without its footer: its writer died or "
            "the download broke off.",
            code="truncated",
        )
    footer = int.from_bytes(tail[:4], "little")
    if footer > size - 12:
        raise DataError(
            f"{path}: its footer claims {footer:,} bytes of a file of {size:,}.", code="truncated"
        )
    return size


def _check_extension(path: Path, metadata: Mapping[bytes, bytes]) -> None:
    try:
        schema = base64.b64decode(metadata.get(b"ARROW:schema", b""))
    except (binascii.Error, ValueError):
        raise DataError(f"{path}: its Arrow schema is not readable.", code="bad_file") from None
    if b"arrow.py_extension_type" in schema:
        raise DataError(
            f"{path}: declares a Python extension type, which holds a pickle; pubc never "
            "unpickles a dataset.",
            code="pickle",
        )


def _check_sizes(path: Path, file: Any, size: int) -> None:
    """Compare what the footer says will be decoded with the bytes that are there."""
    schema, metadata = file.schema, file.metadata
    leaves = [schema.column(i) for i in range(metadata.num_columns)]
    width = sum(_WIDTHS.get(leaf.physical_type, max(leaf.length, 1)) for leaf in leaves)
    lists = [i for i, leaf in enumerate(leaves) if leaf.max_repetition_level]
    decoded = metadata.num_rows * width
    rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows += group.num_rows
        decoded += max(0, group.total_byte_size)
        for i in lists:
            values = group.column(i).num_values
            decoded += values * _WIDTHS.get(leaves[i].physical_type, max(leaves[i].length, 1))
    if metadata.num_rows < 0 or rows != metadata.num_rows:
        raise DataError(
            f"{path}: its row groups sum to {rows:,} rows, its footer says {metadata.num_rows:,}.",
            code="truncated",
        )
    if decoded > max(FREE_BYTES, RATIO_LIMIT * size):
        raise DataError(f"{path}: {size:,} bytes that claim to unpack to {decoded:,}.", code="bomb")


def _chunk(path: Path, chunk: Any, name: str) -> Array:
    rows, shape = len(chunk), []
    while chunk.type.num_fields:
        if chunk.null_count:
            _refuse_nulls(path, name, chunk.null_count)
        if hasattr(chunk.type, "list_size"):
            shape.append(chunk.type.list_size)
        else:
            lengths = np.diff(np.asarray(chunk.offsets))
            if (lengths != lengths[0]).any():
                _refuse_ragged(path, name, sorted({int(n) for n in np.unique(lengths)}))
            shape.append(int(lengths[0]))
        chunk = chunk.flatten()
        if not len(chunk):
            break
    if chunk.null_count:
        _refuse_nulls(path, name, chunk.null_count)
    values: Array = chunk.to_numpy(zero_copy_only=False)
    return values.reshape((rows, *shape))


def _refuse_nulls(path: Path, name: str, count: int) -> None:
    raise DataError(
        f"{path}: {name}: {count:,} values are missing (null), where every step needs one.",
        code="nulls",
        field=name,
        count=count,
    )


def _refuse_ragged(path: Path, name: str, sizes: Sequence[Any]) -> None:
    raise DataError(
        f"{path}: {name}: rows of different sizes {sizes[:5]}, where a vector has one size.",
        code="bad_shape",
        field=name,
    )


@contextlib.contextmanager
def _words(path: Path) -> Iterator[None]:
    """Turn Arrow's complaints about a file into ours."""
    pa = _arrow()
    try:
        yield
    except (DataError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        said = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not readable as Parquet ({said}).", code="truncated") from None
