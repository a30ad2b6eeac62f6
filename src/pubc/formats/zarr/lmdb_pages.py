"""The keys and values of an LMDB file, read page by page without its library.

The C library maps the file and follows the offsets in it unchecked, so a truncated or
hostile file ends the process. Reading needs little: two meta pages, a B+ tree, overflow
pages. Every offset is checked against its page and the file here; nothing is written, locked
or created.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Collection, Iterator
from pathlib import Path
from types import TracebackType

from pubc.errors import DataError, EnvironmentFailure

__all__ = ["LmdbFile"]

_MAGIC = 0xBEEFC0DE
_PAGE = struct.Struct("<QHHHH")
_META = struct.Struct("<IIQQ")
_TREE = struct.Struct("<IHHQQQQQ")
_TAIL = struct.Struct("<QQ")
_NODE = struct.Struct("<HHHH")
_BRANCH, _LEAF, _OVERFLOW, _IS_META = 1, 2, 4, 8
_BIG = 1
_HEADER = _PAGE.size
_NO_PAGE = 2**64 - 1
_DEPTH = 32


class LmdbFile:
    """The main database of a `data.mdb`: names and sizes at once, values on demand."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._handle = os.open(path, os.O_RDONLY)
            self._size = os.fstat(self._handle).st_size
        except OSError as error:
            raise EnvironmentFailure(f"{path}: {error.strerror}.") from error
        try:
            self._page_size, root, entries = self._read_metas()
            self._places = dict(self._walk(root, set(), 0)) if root != _NO_PAGE else {}
        except BaseException:
            self.close()
            raise
        if len(self._places) != entries:
            self.close()
            self._refuse(f"{len(self._places):,} entries where {entries:,} should be")

    def __enter__(self) -> LmdbFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def names(self) -> Collection[str]:
        """Every key, as text."""
        return self._places.keys()

    def size(self, name: str) -> int:
        """Bytes of a value."""
        return self._places[name][1]

    def read(self, name: str) -> bytes:
        """A value."""
        return self._bytes(*self._places[name])

    def _refuse(self, what: str) -> None:
        raise DataError(
            f"{self.path}: not a whole LMDB file ({what}). Download or copy it again.",
            code="truncated",
        )

    def _bytes(self, offset: int, size: int) -> bytes:
        if offset < 0 or size < 0 or offset + size > self._size:
            self._refuse(f"bytes {offset:,} to {offset + size:,} of {self._size:,}")
        data = os.pread(self._handle, size, offset)
        while len(data) < size:
            more = os.pread(self._handle, size - len(data), offset + len(data))
            if not more:
                self._refuse("it shrank while it was read")
            data += more
        return data

    def _read_metas(self) -> tuple[int, int, int]:
        """Page size, root page and number of entries, from the newer meta page."""
        size, root, entries, newest = self._read_meta(0)
        if not 256 <= size <= 65536 or size & (size - 1):
            self._refuse(f"a page size of {size}")
        other = self._read_meta(size)
        if other[3] > newest:
            _, root, entries, newest = other
        return size, root, entries

    def _read_meta(self, offset: int) -> tuple[int, int, int, int]:
        data = self._bytes(offset, _HEADER + _META.size + 2 * _TREE.size + _TAIL.size)
        flags = _PAGE.unpack_from(data)[2]
        magic, version, _, _ = _META.unpack_from(data, _HEADER)
        if magic != _MAGIC or not flags & _IS_META:
            self._refuse("no LMDB header")
        if version != 1:
            self._refuse(f"version {version} of the format; pubc reads 1")
        place = _HEADER + _META.size
        page_size = _TREE.unpack_from(data, place)[0]
        main = _TREE.unpack_from(data, place + _TREE.size)
        last, transaction = _TAIL.unpack_from(data, place + 2 * _TREE.size)
        if main[1] & ~0x08:
            self._refuse("a database of sorted duplicates, which zarr never writes")
        if page_size and (last + 1) * page_size > self._size:
            self._refuse(f"{self._size:,} bytes, its pages need {(last + 1) * page_size:,}")
        return page_size, main[7], main[6], transaction

    def _walk(self, page: int, seen: set[int], depth: int) -> Iterator[tuple[str, tuple[int, int]]]:
        """Every key below a page, with the place and size of its value."""
        if page in seen or depth > _DEPTH:
            self._refuse(f"page {page} is met twice")
        seen.add(page)
        start = page * self._page_size
        data = self._bytes(start, self._page_size)
        _, _, flags, lower, _ = _PAGE.unpack_from(data)
        if not _HEADER <= lower <= self._page_size or flags & ~0x10 not in (_BRANCH, _LEAF):
            self._refuse(f"page {page} is damaged")
        for number in range((lower - _HEADER) // 2):
            place = int.from_bytes(data[_HEADER + 2 * number :][:2], "little")
            if place + _NODE.size > self._page_size:
                self._refuse(f"page {page} is damaged")
            low, high, node_flags, key_size = _NODE.unpack_from(data, place)
            if flags & _BRANCH:
                yield from self._walk(low | high << 16 | node_flags << 32, seen, depth + 1)
                continue
            after = place + _NODE.size + key_size
            size = low | high << 16
            key = data[place + _NODE.size : after]
            if node_flags & ~_BIG or after + (8 if node_flags else size) > self._page_size:
                self._refuse(f"page {page} is damaged")
            yield self._name(key), (self._value(data, start, after, size, node_flags), size)

    def _value(self, data: bytes, start: int, after: int, size: int, flags: int) -> int:
        """Where a value lies: in the leaf itself, or on overflow pages."""
        if not flags & _BIG:
            return start + after
        page = int.from_bytes(data[after : after + 8], "little")
        offset = page * self._page_size
        if not _PAGE.unpack(self._bytes(offset, _HEADER))[2] & _OVERFLOW:
            self._refuse(f"page {page} is damaged")
        if offset + _HEADER + size > self._size:
            self._refuse(f"a value of {size:,} bytes ends outside the file")
        return offset + _HEADER

    def _name(self, key: bytes) -> str:
        try:
            return key.decode("utf-8")
        except UnicodeDecodeError:
            self._refuse("a key that is not text")
            raise
