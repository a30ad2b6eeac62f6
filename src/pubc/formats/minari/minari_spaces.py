"""Minari's description of observation and action spaces, read and written as plain JSON.

Nothing is built from it: a space that a stranger described is shown to the user, and tells
which observations are pictures.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from pubc.formats.core.named_parts import is_image
from pubc.trajectory import Array

__all__ = ["bounds", "box", "describes", "image_keys", "is_discrete", "nested", "parse"]


def parse(text: Any) -> dict[str, Any]:
    """A serialised space as JSON; empty where it is not readable."""
    try:
        document = json.loads(text) if isinstance(text, str) else {}
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}


def image_keys(space: Mapping[str, Any], prefix: str = "") -> set[str]:
    """Paths of the leaves that are pictures; the empty path is the whole space."""
    found: set[str] = set()
    below = space.get("subspaces")
    if isinstance(below, list):
        below = {f"_index_{number}": part for number, part in enumerate(below)}
    if isinstance(below, dict):
        for key, part in below.items():
            if isinstance(part, dict):
                found |= image_keys(part, f"{prefix}/{key}" if prefix else str(key))
        return found
    shape = space.get("shape")
    if isinstance(shape, list) and all(isinstance(axis, int) for axis in shape):
        return {prefix} if is_image(tuple(shape)) and space.get("dtype") == "uint8" else found
    return found


def bounds(space: Mapping[str, Any], column: Array) -> tuple[Array, Array] | None:
    """Lowest and highest value of a box that fits the rows of a column, where it has them."""
    if space.get("type") != "Box" or column.ndim != 2:
        return None
    try:
        low, high = (np.asarray(space.get(key), dtype=np.float64) for key in ("low", "high"))
        ends = [np.broadcast_to(end.reshape(-1), column.shape[1:]) for end in (low, high)]
    except (ValueError, TypeError, OverflowError):
        return None
    return None if np.isnan(ends).any() else (ends[0], ends[1])


def is_discrete(space: Mapping[str, Any]) -> bool:
    """Whether values of the space are single integers without an axis."""
    return space.get("type") == "Discrete"


def describes(space: Mapping[str, Any], column: Array) -> bool:
    """Whether a space fits rows of a column, so that it may be kept when writing."""
    if is_discrete(space):
        return column.dtype == np.int64 and column.shape[1] == 1
    return space.get("shape") == list(column.shape[1:]) and space.get("dtype") == str(column.dtype)


def box(shape: tuple[int, ...], dtype: np.dtype[Any]) -> dict[str, Any]:
    """A space without bounds."""
    if dtype.kind == "f":
        low, high = -np.inf, np.inf
    elif dtype.kind == "b":
        low, high = False, True
    else:
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    return {
        "type": "Box",
        "dtype": str(dtype),
        "shape": list(shape),
        "low": np.full(shape, low, dtype=dtype).tolist(),
        "high": np.full(shape, high, dtype=dtype).tolist(),
    }


def nested(leaves: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """The space of named leaves: a tuple where the names count `_index_0 …`, else a dict."""
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for path, leaf in leaves.items():
        head, _, rest = path.partition("/")
        groups.setdefault(head, {})[rest] = leaf
    below = {
        head: inner[""] if list(inner) == [""] else nested(inner) for head, inner in groups.items()
    }
    numbered = [f"_index_{number}" for number in range(len(below))]
    if sorted(below) == sorted(numbered):
        return {"type": "Tuple", "subspaces": [below[name] for name in numbered]}
    return {"type": "Dict", "subspaces": below}
