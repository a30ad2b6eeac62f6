"""Observations that a file keeps under several names, joined into one vector.

The order of the names is recorded in the metadata as `observation_parts`, so that a writer
of the same family can take the vector apart again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.trajectory import Array

__all__ = [
    "PARTS",
    "Part",
    "choose_parts",
    "is_image",
    "join",
    "joined_dtype",
    "read_parts",
    "record_arrays",
    "record_parts",
    "split",
]

PARTS = "observation_parts"
"""Key of the record in the metadata of a set."""
_PIXELS = 16
_NUMBERS = re.compile(r"[<>=|]?[biuf][0-9]{1,2}|bool|u?int[0-9]{1,2}|float[0-9]{2}")
"""Element types that a record may name. numpy takes other texts apart as Python would."""
_AXES = 32
"""Axes of a piece at most, as many as every numpy can have."""


@dataclass(frozen=True, slots=True)
class Part:
    """One named piece of an observation."""

    key: str
    """Its name in the file."""
    shape: tuple[int, ...]
    """Shape of one row."""
    dtype: np.dtype[Any]
    """Its element type in the file."""

    @property
    def size(self) -> int:
        """Numbers in one row."""
        return math.prod(self.shape)


def is_image(shape: tuple[int, ...]) -> bool:
    """Whether one row of that shape is a picture: two axes of 16 or more."""
    return sum(axis >= _PIXELS for axis in shape) >= 2


def choose_parts(
    found: Mapping[str, Part | None], options: ReadOptions, findings: Findings
) -> list[Part]:
    """Pick the pieces to join: those the user named, else every vector of the file.

    Args:
        found: Every name below the observation; None where it does not hold numbers.
        options: The user's choice of names.
        findings: Told what was left out.

    Raises:
        DataError: A name does not exist or cannot be joined, or no vector is left.
    """
    known = ", ".join(found) or "nothing"
    if options.observation_keys:
        parts = []
        for key in options.observation_keys:
            part = found.get(key)
            if part is None or is_image(part.shape):
                what = "no such observation" if key not in found else "not a vector of numbers"
                findings.refuse("missing_key", f"{what}. The file holds: {known}.", field=key)
            parts.append(part)
        return parts
    parts = [p for p in found.values() if p is not None and len(p.shape) <= 1 and p.size]
    for key, part in found.items():
        if part not in parts:
            what = "text" if part is None else f"shape {part.shape} per step"
            findings.notice(
                "observation_left_out",
                f"{key} ({what}) is not a vector and was left out of the observation.",
                field=key,
            )
    if not parts:
        findings.refuse(
            "no_vectors",
            f"no observation is a vector of numbers. The file holds: {known}. Name vector "
            "features with --observation-keys.",
            field="observations",
        )
    return parts


def joined_dtype(parts: Sequence[Part]) -> np.dtype[Any]:
    """The element type that holds every piece."""
    return np.result_type(*(part.dtype for part in parts))


def record_parts(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The pieces as JSON values, for the metadata."""
    return [{"key": p.key, "shape": list(p.shape), "dtype": p.dtype.str} for p in parts]


def record_arrays(keys: Sequence[str], arrays: Sequence[Array]) -> list[dict[str, Any]]:
    """The same for pieces that were read whole, one row per step."""
    pairs = zip(keys, arrays, strict=True)
    return record_parts([Part(key, array.shape[1:], array.dtype) for key, array in pairs])


def join(pieces: Sequence[Array]) -> Array:
    """Pieces of shape (rows, n) side by side; one alone is not copied."""
    return pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)


def read_parts(record: Any, size: int) -> list[Part]:
    """The pieces that a record in the metadata names; none where they do not fill the observation.

    A file may say anything there, so nothing is believed that was not looked at.

    Args:
        record: `observation_parts` of the metadata of a set, if it has any.
        size: Dimensions of the whole observation.
    """
    parts: list[Part] = []
    for said in record if isinstance(record, list) else []:
        part = _read_part(said, size)
        if part is None:
            return []
        parts.append(part)
    return parts if sum(part.size for part in parts) == size else []


def _read_part(said: Any, size: int) -> Part | None:
    if not isinstance(said, Mapping):
        return None
    key, shape, kind = (said.get(name) for name in ("key", "shape", "dtype"))
    if not isinstance(key, str) or not isinstance(kind, str) or not _NUMBERS.fullmatch(kind):
        return None
    if not isinstance(shape, list) or len(shape) > _AXES:
        return None
    if not all(type(axis) is int and 0 <= axis <= size for axis in shape):
        return None
    try:
        return Part(key, tuple(shape), np.dtype(kind))
    except TypeError:  # a number of bytes that no element type has
        return None


def split(observations: Array, record: Any) -> dict[str, Array] | None:
    """Take joined observations apart by a record; None where it does not fit them."""
    parts = read_parts(record, observations.shape[1])
    if not parts or len({part.key for part in parts}) != len(parts):
        return None
    if joined_dtype(parts) != observations.dtype:
        return None
    found, start = {}, 0
    for part in parts:
        piece = observations[:, start : start + part.size]
        found[part.key] = piece.reshape(len(piece), *part.shape).astype(part.dtype)
        start += part.size
    return found
