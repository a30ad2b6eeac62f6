"""Compressed chunks of zarr arrays: which codecs are decoded, and what a chunk would become.

Decoders believe what a chunk says of itself; so it is looked at here first.
"""

from __future__ import annotations

import zlib

__all__ = ["CODECS", "grows", "is_torn"]

CODECS = {"blosc", "zstd", "gzip", "zlib", "lz4", "bytes", "crc32c", "shuffle", "delta"}
"""Codecs that only move bytes."""


def is_torn(data: bytes, codecs: tuple[str, ...]) -> bool:
    """Whether a blosc chunk has not the length it states: its decoder reads on regardless."""
    if codecs and codecs[-1] == "crc32c":
        return is_torn(data[:-4], codecs[:-1])
    if not codecs or codecs[-1] != "blosc":
        return False
    return len(data) < 16 or int.from_bytes(data[12:16], "little") != len(data)


def grows(data: bytes, codecs: tuple[str, ...], limit: int) -> bool:
    """Whether a compressed chunk holds more than a chunk has, before it is unpacked."""
    last = codecs[-1] if codecs else ""
    if last == "crc32c":
        return grows(data[:-4], codecs[:-1], limit)
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
