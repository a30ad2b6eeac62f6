"""The arrays under a set: what they are called, read-only views, and mapped memory."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds
from numpy.typing import NDArray

__all__ = ["Array", "Flags", "Floats", "Integers", "Words", "freeze", "give_back", "read_only"]

Array = NDArray[Any]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Words = NDArray[np.str_]

AROUND = 1 << 16
"""The system maps so many bytes around a page that is touched."""


def read_only(array: Array) -> Array:
    """The same memory, not writeable through this view."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def freeze(owner: Any, name: str) -> None:
    """Make a field of a frozen dataclass a read-only view."""
    value = getattr(owner, name)
    if value is not None:
        object.__setattr__(owner, name, read_only(value))


def give_back(column: Array, rows: slice | Integers) -> None:
    """Let the system take back the mapped pages of some rows; they stay in the file."""
    base: Any = column
    while isinstance(base, np.ndarray):
        base = base.base
    if not isinstance(base, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    if not isinstance(rows, slice):
        if not len(rows):
            return
        rows = slice(int(rows.min()), int(rows.max()) + 1)
    origin, _ = byte_bounds(np.frombuffer(base, np.uint8))
    low, high = byte_bounds(column[rows])
    first = max(0, low - origin - AROUND) // mmap.PAGESIZE * mmap.PAGESIZE
    base.madvise(mmap.MADV_DONTNEED, first, min(len(base), high - origin + AROUND) - first)
