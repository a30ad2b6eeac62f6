"""Parquet files from strangers: sizes checked before anything is decoded, numbers out.

The only door to pyarrow for files. A Parquet file can promise two thousand million rows in a few
bytes (runs and deltas compress without bound), carry Arrow extension types that once held
pickles, or have lost its footer with the writer that died. Each is refused in words that
name the file.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import DataError, MissingExtraError
from pubc.formats.parquet.parquet_ends import check_ends, check_extension
from pubc.storage import utf8_name
from pubc.trajectory import Array

__all__ = ["OpenAhead", "arrow", "is_numeric", "open_parquet", "read_table", "to_numpy"]

RATIO_LIMIT = 1000
"""Decoded bytes per stored byte that are still believed."""
FREE_BYTES = 64 << 20
"""Below this much decoded data a file may compress as it likes: a constant column does."""
_BATCH = 16_384
"""Rows that are decoded at a time."""
_WIDTHS = {
    "BOOLEAN": 1,
    "INT32": 4,
    "INT64": 8,
    "INT96": 12,
    "FLOAT": 4,
    "DOUBLE": 8,
}


def arrow() -> Any:
    """The library.

    Raises:
        MissingExtraError: It is not installed.
    """
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
    pa = arrow()
    size = check_ends(path)
    with _words(path), utf8_name(path) as name:
        file = pa.parquet.ParquetFile(
            name,
            thrift_string_size_limit=64 << 20,
            thrift_container_size_limit=4 << 20,
            page_checksum_verification=True,
            memory_map=True,  # looking ahead in a mapped file reads nothing
        )
        check_extension(path, file.metadata.metadata or {})
        _check_sizes(path, file, size)
    return file


class OpenAhead:
    """Files to read in turn, opened by another thread while the caller is still busy.

    A footer of many row groups takes a core a tenth of the time that the data takes all of
    them. The first file is opened at once, each next one while the one before it is read.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self._pool = ThreadPoolExecutor(max_workers=1)
        self._next = self._open(0)

    def _open(self, number: int) -> Future[Any] | None:
        if number >= len(self.paths):
            return None
        return self._pool.submit(open_parquet, self.paths[number])

    def __enter__(self) -> OpenAhead:
        return self

    def __exit__(self, *reason: object) -> None:
        self._pool.shutdown()

    def __iter__(self) -> Iterator[tuple[Path, Future[Any]]]:
        """Each path with its open file, or with what opening it raised."""
        for number, path in enumerate(self.paths):
            current, self._next = self._next, self._open(number + 1)
            assert current is not None
            yield path, current


def read_table(
    path: Path,
    wanted: Callable[[str, Any], bool] | None = None,
    *,
    opened: Future[Any] | None = None,
) -> Any:
    """Read a file as an Arrow table.

    Args:
        path: The file.
        wanted: Says for a column's name and Arrow type whether to read it; all if omitted.
        opened: The file as `OpenAhead` has it.
    """
    file = open_parquet(path) if opened is None else opened.result()
    with _words(path), file:
        names = [f.name for f in file.schema_arrow if wanted is None or wanted(f.name, f.type)]
        # Many row groups of lists take less processor time in batches than in one read.
        batches = list(file.iter_batches(_BATCH, columns=names))
        whole = arrow().Table.from_batches
        table = whole(batches) if batches else file.read(columns=names)
        table.validate()
        _check_unread(file, names)
    if table.num_rows != file.metadata.num_rows:
        raise DataError(
            f"{path}: its footer promises {file.metadata.num_rows:,} rows, {table.num_rows:,} "
            "could be read. The file is damaged.",
            code="truncated",
        )
    return table


def is_numeric(kind: Any) -> bool:
    """Whether an Arrow type is a number, a boolean, or lists of them."""
    pa = arrow()
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


def _check_sizes(path: Path, file: Any, size: int) -> None:
    """Compare what the footer says will be decoded with the bytes that are there."""
    metadata, leaves = file.metadata, _leaves(file)
    widths = [_WIDTHS.get(leaf.physical_type) or max(leaf.length, 1) for leaf in leaves]
    lists = [(i, widths[i]) for i, leaf in enumerate(leaves) if leaf.max_repetition_level]
    if lists:
        _check_chunks(file, [i for i, _ in lists])
    decoded = metadata.num_rows * sum(widths)
    rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        rows += group.num_rows
        decoded += max(0, group.total_byte_size)
        for i, width in lists:
            decoded += group.column(i).num_values * width
    if metadata.num_rows < 0 or rows != metadata.num_rows:
        raise DataError(
            f"{path}: its row groups sum to {rows:,} rows, its footer says {metadata.num_rows:,}.",
            code="truncated",
        )
    if decoded > max(FREE_BYTES, RATIO_LIMIT * size):
        raise DataError(f"{path}: {size:,} bytes that claim to unpack to {decoded:,}.", code="bomb")


def _check_unread(file: Any, names: Sequence[str]) -> None:
    """Look at the chunks that neither `_check_sizes` nor reading these columns looked at."""
    read = tuple(f"{name}." for name in names)
    unread = [
        i
        for i, leaf in enumerate(_leaves(file))
        if not leaf.max_repetition_level and not f"{leaf.path}.".startswith(read)
    ]
    if unread:
        _check_chunks(file, unread)


def _leaves(file: Any) -> list[Any]:
    # Not `file.schema`: it and the metadata would hold each other until a garbage collection.
    schema = arrow().parquet.ParquetSchema(file.metadata)
    return [schema.column(i) for i in range(file.metadata.num_columns)]


def _check_chunks(file: Any, columns: list[int]) -> None:
    """Have Arrow look at the descriptions of the columns' chunks, in a call that can complain.

    Asking for one description aborts the process where it is damaged. Batches of no rows,
    buffered ahead, look at all of them and decode nothing; of a mapped file nothing is read.
    """
    groups = list(range(file.metadata.num_row_groups))
    for _ in file.reader.iter_batches(0, groups, column_indices=columns, use_threads=False):
        pass


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
    pa = arrow()
    try:
        yield
    except (DataError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        said = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not readable as Parquet ({said}).", code="truncated") from None
