"""What zarr arrays say of themselves, read without zarr and before anything is decoded."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pubc.formats.core.findings import Findings
from pubc.formats.zarr.zarr_keys import Keys

__all__ = ["Described", "describe"]

_JSON_LIMIT = 1 << 20
_KINDS = {"bool", *(f"{k}{n}" for k in ("int", "uint") for n in (8, 16, 32, 64))} | {
    "float16",
    "float32",
    "float64",
}


@dataclass(frozen=True, slots=True)
class Described:
    """What an array says of itself, before anything is decoded."""

    name: str
    """Path of the array in the hierarchy."""
    document: dict[str, Any]
    """Its `.zarray` or `zarr.json`."""
    version: int
    """Zarr format, 2 or 3."""
    shape: tuple[int, ...]
    """Declared shape."""
    chunks: tuple[int, ...]
    """Shape of one chunk."""
    dtype: np.dtype[Any] | None
    """Element type; None where it is not a plain number."""
    codecs: tuple[str, ...]
    """Names of all codecs, in the order of encoding."""

    @property
    def bytes(self) -> int:
        """Bytes once decoded."""
        return math.prod(self.shape) * (self.dtype.itemsize if self.dtype else 1)

    def chunk_keys(self) -> Iterator[str]:
        """Key of every chunk, below the array."""
        grid = [range(-(-n // c)) for n, c in zip(self.shape, self.chunks, strict=True)]
        if self.version == 2:
            separator, first = str(self.document.get("dimension_separator") or "."), ""
        else:
            encoding = self.document.get("chunk_key_encoding") or {}
            inner = encoding.get("configuration") or {}
            plain = encoding.get("name") == "v2"
            separator = str(inner.get("separator") or ("." if plain else "/"))
            first = "" if plain else f"c{separator}"
        for place in itertools.product(*grid):
            yield first + separator.join(map(str, place))


def describe(keys: Keys, findings: Findings) -> dict[str, Described]:
    """Every array of a hierarchy by its path, in the order of the store."""
    found = {}
    for key in keys.names():
        folder, _, last = key.rpartition("/")
        if last == ".zarray":
            document = _document(keys, key, findings)
            found[folder] = _version_2(folder, document, findings)
        elif last == "zarr.json":
            document = _document(keys, key, findings)
            if document.get("node_type") == "array":
                found[folder] = _version_3(folder, document, findings)
    return dict(sorted(found.items()))


def _document(keys: Keys, key: str, findings: Findings) -> dict[str, Any]:
    if keys.size(key) > _JSON_LIMIT:
        findings.refuse("too_large", "more than a description needs.", field=key)
    try:
        document = json.loads(keys.read(key))
    except (ValueError, RecursionError) as error:
        findings.refuse("bad_json", f"not readable as JSON ({error}).", field=key)
    if not isinstance(document, dict):
        findings.refuse("bad_json", "expected a JSON object.", field=key)
    return document


def _version_2(name: str, document: dict[str, Any], findings: Findings) -> Described:
    codecs = [*(document.get("filters") or []), document.get("compressor")]
    kind = document.get("dtype")
    try:
        dtype = np.dtype(kind) if isinstance(kind, str) else None
    except TypeError:
        dtype = None
    return Described(
        name,
        document,
        2,
        _sizes(name, document.get("shape"), 0, findings),
        _sizes(name, document.get("chunks"), 1, findings),
        dtype if dtype is not None and dtype.kind in "fiub" and dtype.itemsize <= 8 else None,
        tuple(_codec(codec, "id") for codec in codecs if codec is not None),
    )


def _version_3(name: str, document: dict[str, Any], findings: Findings) -> Described:
    grid = document.get("chunk_grid")
    inner = grid.get("configuration") if isinstance(grid, dict) else None
    kind = document.get("data_type")
    return Described(
        name,
        document,
        3,
        _sizes(name, document.get("shape"), 0, findings),
        _sizes(name, inner.get("chunk_shape") if isinstance(inner, dict) else None, 1, findings),
        np.dtype(kind) if isinstance(kind, str) and kind in _KINDS else None,
        tuple(_codec(codec, "name") for codec in document.get("codecs") or []),
    )


def _codec(codec: Any, key: str) -> str:
    name = codec.get(key) if isinstance(codec, dict) else codec
    return str(name).removeprefix("numcodecs.")


def _sizes(name: str, value: Any, least: int, findings: Findings) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(
        isinstance(n, int) and not isinstance(n, bool) and n >= least for n in value
    ):
        findings.refuse("bad_shape", f"declares the shape {value!r}.", field=name)
    return tuple(value)
