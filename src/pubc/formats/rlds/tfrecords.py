"""TFRecord files and the Examples in them, without TensorFlow.

A record is its length, its bytes and a checksum of each; an Example is a protocol buffer
that maps names to lists of bytes, floats or integers. Both are simple enough to read
directly, and every length is checked against what is there before it is used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import DataError, EnvironmentFailure, MissingExtraError
from pubc.trajectory import Array

__all__ = ["Feature", "parse_example", "read_records", "write_records"]

_MASK = 0xA282EAD8
_BYTES, _FLOATS, _INTEGERS = 1, 2, 3


@dataclass(slots=True)
class Feature:
    """One named list of an Example."""

    kind: int = 0
    """1 for bytes, 2 for floats, 3 for integers, 0 for an empty feature."""
    parts: list[memoryview] = field(default_factory=list)
    """Raw content: the words of a list of bytes, else packed numbers."""

    def words(self) -> list[bytes]:
        """The elements of a list of bytes."""
        return [bytes(part) for part in self.parts]

    def numbers(self) -> Array:
        """The elements of a list of numbers, as float32 or int64."""
        data = b"".join(self.parts)
        if self.kind == _FLOATS:
            if len(data) % 4:
                raise ValueError("floats that end in the middle of one")
            return np.frombuffer(data, dtype="<f4").astype(np.float32)
        return _varints(data)


def read_records(path: Path) -> Iterator[memoryview]:
    """Every record of a file, its checksums verified.

    Raises:
        DataError: The file breaks off, or a checksum does not fit.
    """
    checksum = _checksum()

    def fits(data: bytes, told: bytes) -> bool:
        return told == checksum(data)

    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            number = 0
            while head := file.read(12):
                length = int.from_bytes(head[:8], "little")
                if len(head) < 12 or length > size - file.tell() - 4:
                    _refuse(path, number, "breaks off", "truncated")
                data = file.read(length)
                if not fits(head[:8], head[8:]) or not fits(data, file.read(4)):
                    _refuse(path, number, "does not fit its checksum", "checksum")
                yield memoryview(data)
                number += 1
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {error.strerror}.") from error


def write_records(path: Path, records: Iterable[bytes]) -> int:
    """Write records to a new file with their checksums, and return how many there were."""
    checksum, count = _checksum(), 0
    with path.open("wb") as file:
        for record in records:
            size = len(record).to_bytes(8, "little")
            file.write(size + checksum(size) + record + checksum(record))
            count += 1
    return count


def _checksum() -> Callable[[bytes], bytes]:
    """The checksum of TFRecord files, as the four bytes that stand in them."""
    try:
        from crc32c import crc32c
    except ImportError:
        raise MissingExtraError("Reading RLDS datasets", "rlds") from None

    def checksum(data: bytes) -> bytes:
        crc = int(crc32c(data))
        masked = ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF
        return masked.to_bytes(4, "little")

    return checksum


def _refuse(path: Path, number: int, what: str, code: str) -> None:
    raise DataError(
        f"{path}: record {number} {what}. Download the file again.",
        code=code,
        field=path.name,
        index=number,
    )


def parse_example(record: memoryview) -> dict[str, Feature]:
    """The named lists of an Example; raises ValueError where it is not one."""
    found: dict[str, Feature] = {}
    for number, features in _fields(record):
        if number != 1:
            continue
        for entry, item in _fields(features):
            if entry == 1:
                key, feature = _entry(item)
                found[key] = feature
    return found


def _entry(item: memoryview) -> tuple[str, Feature]:
    key, feature = "", Feature()
    for number, value in _fields(item):
        if number == 1:
            key = bytes(value).decode("utf-8")
        elif number == 2:
            for kind, content in _fields(value):
                if kind in (_BYTES, _FLOATS, _INTEGERS):
                    feature.kind = kind
                    feature.parts += [v for n, v in _fields(content) if n == 1]
    return key, feature


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Every field of a message: its number and its raw content."""
    place, end = 0, len(data)
    while place < end:
        tag, place = _varint(data, place)
        kind = tag & 7
        if kind == 0:
            start = place
            _, place = _varint(data, place)
        elif kind == 2:
            size, start = _varint(data, place)
            place = start + size
        elif kind in (1, 5):
            start, place = place, place + (8 if kind == 1 else 4)
        else:
            raise ValueError(f"a field of the unknown wire type {kind}")
        if place > end:
            raise ValueError("a field that ends outside its message")
        yield tag >> 3, data[start:place]


def _varint(data: memoryview, place: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if place >= len(data):
            break
        byte = data[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
    raise ValueError("a number that does not end")


def _varints(data: bytes) -> Array:
    """All variable-length integers of a packed list at once."""
    raw = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(raw < 0x80)
    if not len(raw):
        return np.zeros(0, dtype=np.int64)
    if not len(ends) or ends[-1] != len(raw) - 1:
        raise ValueError("integers that do not end")
    starts = np.concatenate([[0], ends[:-1] + 1])
    sizes = ends - starts + 1
    if int(sizes.max()) > 10:
        raise ValueError("an integer of more than ten bytes")
    values = np.zeros(len(ends), dtype=np.uint64)
    for byte in range(int(sizes.max())):
        longer = sizes > byte
        digits = raw[starts[longer] + byte].astype(np.uint64) & np.uint64(0x7F)
        values[longer] |= digits << np.uint64(7 * byte)
    whole: Any = values.view(np.int64)
    return np.asarray(whole, dtype=np.int64)
