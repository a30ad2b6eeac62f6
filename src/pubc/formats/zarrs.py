"""Zarr arrays from strangers: codecs and sizes checked before zarr opens anything.

An array may name a codec that runs a pickle, promise terabytes, or lack half of its chunks,
which zarr would fill with zeros without a word. So the descriptions are read here first,
and zarr is given only the keys of one checked array, in memory.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import MissingExtraError
from pubc.formats.cuts import with_tail
from pubc.formats.findings import Findings
from pubc.formats.options import ReadOptions
from pubc.formats.zarr_keys import FREE_BYTES, RATIO_LIMIT, Keys
from pubc.trajectory import Array

__all__ = ["Described", "describe", "ends_to_lengths", "load", "load_named"]

CODECS = {"blosc", "zstd", "gzip", "zlib", "lz4", "bytes", "crc32c", "shuffle", "delta"}
"""Codecs that only move bytes."""
_SPARE_CHUNKS = 100_000
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


def load_named(
    keys: Keys,
    arrays: dict[str, Described],
    name: str,
    options: ReadOptions,
    findings: Findings,
    *,
    below: str = "",
) -> Array:
    """Decode an array that must be there; `below` is the group that users know it by."""
    if name not in arrays:
        findings.refuse(
            "missing_key",
            f"no such array. The dataset holds: {', '.join(arrays) or 'nothing'}.",
            field=f"{below}{name}",
        )
    return load(keys, arrays[name], options, findings)


def load(
    keys: Keys,
    array: Described,
    options: ReadOptions,
    findings: Findings,
    *,
    needed: bool = True,
) -> Array:
    """Decode one array through zarr, once its codecs, sizes and chunks hold up.

    Args:
        keys: Where it lies.
        array: Its description.
        options: With `trust=data` a missing chunk is filled, as zarr would.
        findings: Where problems are recorded.
        needed: Refuse missing chunks, rather than warn that they were filled.
    """
    foreign = [name for name in array.codecs if name not in CODECS]
    if foreign:
        findings.refuse(
            "codec",
            f"declares the codec {foreign[0]!r}. Only these are decoded: "
            f"{', '.join(sorted(CODECS))}.",
            field=array.name,
        )
    if array.dtype is None:
        findings.refuse(
            "bad_dtype",
            "its elements are not plain numbers, so it is never opened.",
            field=array.name,
        )
    present = _present(keys, array, options, findings, needed=needed)
    if any(c > n for n, c in zip(array.shape[1:], array.chunks[1:], strict=True)):
        findings.warn(
            "odd_chunks",
            f"chunks of {array.chunks} are wider than the array of {array.shape}, so it may "
            "have been wider once.",
            field=array.name,
        )
    return _decode(keys, array, present, findings)


def ends_to_lengths(
    ends: Array, rows: int, name: str, options: ReadOptions, findings: Findings
) -> Any:
    """Lengths from exclusive ends; the rows after the last one go by `trailing`."""
    if ends.ndim != 1 or ends.dtype.kind not in "iu" or not len(ends):
        findings.refuse(
            "bad_dtype",
            f"must be whole numbers, one per trajectory. Got {ends.dtype}, shape {ends.shape}.",
            field=name,
        )
    lengths: NDArray[np.int64] = np.diff(np.concatenate([[0], ends.astype(np.int64)]))
    if (lengths < 0).any():
        first = int(np.argmax(lengths < 0))
        findings.refuse(
            "bad_index",
            f"must increase. Found {int(ends[first])} at position {first}.",
            field=name,
            index=first,
            count=int((lengths < 0).sum()),
        )
    if int(ends[-1]) > rows:
        first = int(np.argmax(ends > rows))
        findings.refuse(
            "meta_conflict",
            f"trajectory {first} ends at step {int(ends[first]):,}, the data has {rows:,} steps.",
            field=name,
            index=first,
        )
    return with_tail(lengths, rows - int(ends[-1]), options, findings)


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


def _present(
    keys: Keys, array: Described, options: ReadOptions, findings: Findings, *, needed: bool
) -> list[str]:
    """Keys of the chunks that are there; what is promised must fit what is stored."""
    if len(array.shape) != len(array.chunks):
        findings.refuse("bad_shape", "shape and chunks have different axes.", field=array.name)
    known = keys.names()
    prefix = f"{array.name}/" if array.name else ""
    count = math.prod(-(-n // c) for n, c in zip(array.shape, array.chunks, strict=True))
    if count > len(known) + _SPARE_CHUNKS:
        findings.refuse("bomb", f"promises {count:,} chunks.", field=array.name)
    wanted = list(array.chunk_keys())
    present = [key for key in wanted if prefix + key in known]
    stored = [keys.size(prefix + key) for key in present]
    chunk = math.prod(array.chunks) * (array.dtype.itemsize if array.dtype else 1)
    for promised, held in ((array.bytes, sum(stored)), (chunk, max(stored, default=0))):
        if promised > max(FREE_BYTES, RATIO_LIMIT * held):
            findings.refuse(
                "bomb", f"{held:,} bytes that claim to unpack to {promised:,}.", field=array.name
            )
    if len(present) < len(wanted):
        here = set(present)
        first = next(i for i, key in enumerate(wanted) if key not in here)
        gone = len(wanted) - len(present)
        said = f"{gone:,} of {len(wanted):,} chunks are missing, first {wanted[first]}"
        if needed and options.trust != "data":
            findings.refuse(
                "missing_file",
                f"{said}: an unfinished download? --trust data reads them as the fill value.",
                field=array.name,
                index=first,
                count=gone,
            )
        findings.warn(
            "missing_chunks", f"{said}; read as the fill value.", field=array.name, first=first
        )
    return present


def _decode(keys: Keys, array: Described, present: list[str], findings: Findings) -> Array:
    try:
        import zarr
        from zarr.core.buffer import default_buffer_prototype
    except ImportError:
        raise MissingExtraError("Reading zarr arrays", "zarr") from None
    buffer = default_buffer_prototype().buffer
    prefix = f"{array.name}/" if array.name else ""
    limit = math.prod(array.chunks) * (array.dtype.itemsize if array.dtype else 1)
    content = {
        ".zarray" if array.version == 2 else "zarr.json": json.dumps(array.document).encode()
    }
    for key in present:
        data = keys.read(prefix + key)
        if _torn(data, array.codecs):
            findings.refuse("bad_array", f"chunk {key} is not whole.", field=array.name)
        if _grows(data, array.codecs, limit):
            findings.refuse(
                "bomb",
                f"chunk {key} unpacks to more than the {limit:,} bytes of a chunk.",
                field=array.name,
            )
        content[key] = data
    store = zarr.storage.MemoryStore({k: buffer.from_bytes(v) for k, v in content.items()})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            opened = zarr.open_array(store, mode="r", zarr_format=array.version)
            values = np.asarray(opened[...])
    except Exception as error:
        # Decoders raise whatever their libraries do; all of it means a damaged chunk.
        said = " ".join(str(error).split())[:200]
        findings.refuse("bad_array", f"cannot be decoded ({said}).", field=array.name)
    if values.shape != array.shape or values.dtype != array.dtype:
        findings.refuse("bad_array", "decodes to another shape or type.", field=array.name)
    return values


def _torn(data: bytes, codecs: tuple[str, ...]) -> bool:
    """Whether a blosc chunk has not the length it states: its decoder reads on regardless."""
    if codecs and codecs[-1] == "crc32c":
        return _torn(data[:-4], codecs[:-1])
    if not codecs or codecs[-1] != "blosc":
        return False
    return len(data) < 16 or int.from_bytes(data[12:16], "little") != len(data)


def _grows(data: bytes, codecs: tuple[str, ...], limit: int) -> bool:
    """Whether a compressed chunk holds more than a chunk has, before it is unpacked."""
    last = codecs[-1] if codecs else ""
    if last == "crc32c":
        return _grows(data[:-4], codecs[:-1], limit)
    if last == "blosc":
        return int.from_bytes(data[4:8], "little") > limit
    if last == "lz4":
        return int.from_bytes(data[:4], "little") > limit
    if last == "zstd":
        return _zstd_grows(data, limit)
    return last in ("gzip", "zlib") and _deflate_grows(data, limit)


def _zstd_grows(data: bytes, limit: int) -> bool:
    """Read the size from the frame header; one that does not tell is not believed."""
    flags = data[4] if len(data) > 4 else 0
    single = bool(flags & 0x20)
    start = 5 + (not single) + (0, 1, 2, 4)[flags & 3]
    size = (int(single), 2, 4, 8)[flags >> 6]
    told = int.from_bytes(data[start : start + size], "little") + (256 if size == 2 else 0)
    return not size or told > limit


def _deflate_grows(data: bytes, limit: int) -> bool:
    """Unpack in small pieces and count; deflate has no header that tells."""
    engine = zlib.decompressobj(wbits=47)
    count = 0
    try:
        while data and not engine.eof and count <= limit:
            count += len(engine.decompress(data, 1 << 20))
            data = engine.unconsumed_tail
    except zlib.error:
        return False  # damaged, which the decoder says in its own words
    return count > limit
