"""The heaps in which an HDF5 file keeps its texts, checked before libhdf5 walks them.

A collection is a header and then objects one after another, each with its size. libhdf5 goes
from object to object by those sizes without asking whether they lead anywhere: a free object
of size 0, as a few damaged bytes make one, keeps it at the same place for ever.
"""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

__all__ = ["broken_heap"]

_START = b"GCOL\x01"
_HEADER = 16
_OBJECT = struct.Struct("<HHIQ")
"""Index, references, padding, size; index 0 is free space, whose size counts this header."""


def broken_heap(path: Path) -> int | None:
    """Place of the first heap object that leads nowhere; None where every one is sound.

    Collections are found by their first bytes, because nothing but libhdf5 knows who points
    to them. Files whose sizes are not numbers of 8 bytes are not understood and pass.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        start = data.find(_START)
        while start >= 0:
            size = int.from_bytes(data[start + 8 : start + _HEADER], "little")
            end = start + size
            if size < _HEADER or end > len(data):
                # No heap, or one that libhdf5 itself refuses.
                end = start + len(_START)
            elif (broken := _broken_object(data, start + _HEADER, end)) is not None:
                return broken
            start = data.find(_START, end)
    return None


def _broken_object(data: mmap.mmap, place: int, end: int) -> int | None:
    while place + _OBJECT.size <= end:
        index, _, _, size = _OBJECT.unpack_from(data, place)
        step = size if index == 0 else _OBJECT.size + (size + 7) // 8 * 8
        if not 0 < step <= end - place:
            return place
        place += step
    return None
