"""Whether a file begins and ends like Parquet, and declares no type that holds a pickle."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path

from pubc.errors import DataError, EnvironmentFailure

__all__ = ["check_ends", "check_extension"]

_MAGIC = b"PAR1"


def check_ends(path: Path) -> int:
    """The size of a file that has the marks and the footer of Parquet."""
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


def check_extension(path: Path, metadata: Mapping[bytes, bytes]) -> None:
    """Refuse a schema whose types are Python objects."""
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
