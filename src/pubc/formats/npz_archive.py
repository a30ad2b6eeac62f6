"""NumPy archives from strangers: every size is checked before memory is taken for it."""

from __future__ import annotations

import lzma
import struct
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from pubc.formats.core.findings import Findings
from pubc.trajectory import Array

__all__ = ["HARMLESS", "RATIO_LIMIT", "load_arrays"]

HARMLESS = 256 << 20
"""An archive that unpacks to no more than this is never a trap: marks that are all zero
shrink a thousandfold."""
RATIO_LIMIT = 200
"""Whole archives of numbers rarely shrink tenfold; more than this is a trap."""
_HEADER = 30
"""Bytes of a local header."""
_NAME_SIZES = 26
"""Where a local header says how long the name and what follows are."""
_GAPS = {False: (0,), True: (0, 12, 16, 20, 24)}
"""What may lie before the first entry and after each: sizes that came too late for its header."""
_ARRAY_FAULTS = (ValueError, TypeError, SyntaxError, KeyError, tokenize.TokenError)
_ZIP_FAULTS = (
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
)


def load_arrays(path: Path, findings: Findings) -> dict[str, Array]:
    """Every array of an archive by its name; what is no whole archive is refused."""
    arrays: dict[str, Array] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            _refuse_bomb(path.stat().st_size, entries, findings)
            _refuse_gaps(path, archive, findings)
            for entry in entries:
                name = entry.filename.removesuffix(".npy")
                if name == entry.filename:
                    findings.notice("extra_left_out", "no array; left out.", field=name)
                    continue
                if name in arrays:
                    findings.refuse("duplicate_key", "the archive holds it twice.", field=name)
                if name.startswith("/") or "\\" in name or ".." in name.split("/"):
                    findings.refuse("bad_path", f"{name!r} points out of the archive.")
                arrays[name] = _load_one(archive, entry, name, findings)
    except (*_ZIP_FAULTS, ValueError) as error:
        findings.refuse("truncated", f"not a whole NumPy archive ({error}).")
    return arrays


def _refuse_bomb(size: int, entries: list[zipfile.ZipInfo], findings: Findings) -> None:
    claimed = sum(entry.file_size for entry in entries)
    if claimed > HARMLESS and claimed > RATIO_LIMIT * size:
        largest = max(entries, key=lambda entry: entry.file_size)
        findings.refuse(
            "bomb",
            f"an archive of {size:,} bytes claims to unpack to {claimed:,}, more than "
            f"{RATIO_LIMIT} times as many.",
            field=largest.filename.removesuffix(".npy"),
        )


def _refuse_gaps(path: Path, archive: zipfile.ZipFile, findings: Findings) -> None:
    """Entries lie end to end; a gap is an array that the directory has forgotten."""
    place = 0
    with path.open("rb") as file:
        for entry in sorted(archive.infolist(), key=lambda entry: entry.header_offset):
            if entry.header_offset - place not in _GAPS[bool(place)]:
                break
            file.seek(entry.header_offset + _NAME_SIZES)
            sizes = struct.unpack("<HH", file.read(4))
            place = entry.header_offset + _HEADER + sum(sizes) + entry.compress_size
        else:
            if archive.start_dir - place in _GAPS[bool(place)]:
                return
    findings.refuse(
        "truncated",
        f"not a whole NumPy archive: the bytes from {place:,} on belong to no array.",
        index=place,
    )


def _load_one(
    archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str, findings: Findings
) -> Array:
    try:
        with archive.open(entry) as file:
            shape, fortran, dtype = _read_header(cast(BinaryIO, file))
            if dtype.hasobject:
                findings.refuse(
                    "bad_dtype",
                    "an array of Python objects, which only a pickle can hold; pubc never "
                    "unpickles a dataset.",
                    field=name,
                )
            size = int(np.prod(shape, dtype=object)) * dtype.itemsize
            if size > entry.file_size or min(shape, default=0) < 0:
                findings.refuse(
                    "truncated",
                    f"its header promises shape {shape}, {size:,} bytes; the archive holds "
                    f"{entry.file_size:,}.",
                    field=name,
                )
            data = bytearray(size)
            if _fill(cast(BinaryIO, file), data) != size or file.read(1):
                findings.refuse(
                    "truncated",
                    f"its data is not the {size:,} bytes promised.",
                    field=name,
                )
        flat = np.frombuffer(data, dtype=dtype)
        return flat.reshape(shape[::-1]).T if fortran else flat.reshape(shape)
    except _ZIP_FAULTS as error:
        findings.refuse("truncated", f"its data is damaged ({error}).", field=name)
    except _ARRAY_FAULTS as error:
        findings.refuse("bad_array", f"not a readable array ({error}).", field=name)


def _read_header(file: BinaryIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = npy.read_magic(file)
    if version == (1, 0):
        return npy.read_array_header_1_0(file)
    if version == (2, 0):
        return npy.read_array_header_2_0(file)
    raise ValueError(f"version {version} of the .npy format")


def _fill(file: BinaryIO, data: bytearray) -> int:
    view, filled = memoryview(data), 0
    while filled < len(data):
        got = file.readinto(view[filled : filled + (1 << 24)])  # type: ignore[attr-defined]
        if not got:
            break
        filled += got
    return filled
