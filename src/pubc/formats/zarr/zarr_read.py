"""Zarr arrays from strangers: codecs and sizes checked before zarr opens anything.

An array may name a codec that runs a pickle, promise terabytes, or lack half of its chunks,
which zarr would fill with zeros without a word. So the descriptions are read first
(`zarr_describe`), and zarr is given only the keys of one checked array, in memory.
"""

from __future__ import annotations

import json
import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import MissingExtraError
from pubc.formats.core.assemble import Raw
from pubc.formats.core.cuts import with_tail
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.formats.zarr.zarr_codecs import CODECS, grows, is_torn
from pubc.formats.zarr.zarr_describe import Described
from pubc.formats.zarr.zarr_keys import FREE_BYTES, RATIO_LIMIT, Keys
from pubc.trajectory import Array

__all__ = ["cut_to", "ends_to_lengths", "load", "load_named"]

_SPARE_CHUNKS = 100_000


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


def cut_to(lengths: NDArray[np.int64], raw: Raw) -> Raw:
    """The columns as far as the trajectories go; one with other rows is left for the checks."""
    rows, kept = len(raw.observations), int(lengths.sum())

    def cut(column: Array | None) -> Array | None:
        return column if column is None or len(column) != rows else column[:kept]

    return replace(
        raw,
        lengths=lengths,
        observations=raw.observations[:kept],
        actions=raw.actions if len(raw.actions) != rows else raw.actions[:kept],
        rewards=cut(raw.rewards),
        timeouts=cut(raw.timeouts),
        extras={name: column[:kept] for name, column in raw.extras.items()},
    )


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
        if is_torn(data, array.codecs):
            findings.refuse("bad_array", f"chunk {key} is not whole.", field=array.name)
        if grows(data, array.codecs, limit):
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
