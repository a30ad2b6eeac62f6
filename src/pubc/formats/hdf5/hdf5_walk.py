"""The walk over an HDF5 file that comes before anything is read from it.

Only headers are touched: links, layouts, filters and declared sizes.
"""

from __future__ import annotations

import math
import posixpath
from collections import deque
from dataclasses import dataclass
from typing import Any, cast

from h5py import h5, h5d, h5g, h5l, h5o, h5p, h5s, h5t

from pubc.formats.core.findings import Findings

__all__ = ["H5_ERRORS", "Node", "Walk", "brief", "decode"]

RATIO_LIMIT = 1000
"""Stored numbers rarely unpack tenfold; a thousandfold is a trap."""
SMALL = 64 << 20
"""Bytes that any file may declare: flags that are all False shrink without bound."""
OBJECT_LIMIT = 1_000_000
DEPTH_LIMIT = 32
FILTERS = {1: "gzip", 2: "shuffle", 3: "fletcher32", 4: "szip", 5: "nbit", 6: "scaleoffset"}
_LZF = 32000
# What the library raises on a damaged file, depending on the place of the damage.
H5_ERRORS = (OSError, RuntimeError, LookupError, ValueError, TypeError, SystemError, MemoryError)


@dataclass(frozen=True, slots=True)
class Node:
    """A dataset of a file, known but not yet read."""

    name: str
    """Its path from the top, without the first slash."""
    id: Any
    """Its open handle."""
    shape: tuple[int, ...] | None
    """None where it declares no data space."""
    kind: int
    """Class of its elements, as the library numbers them."""
    width: int
    """Bytes of one element."""

    @property
    def rows(self) -> int:
        """Length of the first axis; 0 where there is none."""
        return self.shape[0] if self.shape else 0


class Walk:
    """One visit to every object of a file; nothing is read but headers."""

    def __init__(self, size: int, findings: Findings) -> None:
        self.size = size
        self.findings = findings
        self.datasets: dict[str, Node] = {}
        self.groups: dict[str, Any] = {}
        self.soft: list[tuple[str, str]] = []
        self.waiting: deque[tuple[Any, str, int]] = deque()
        self.seen: set[tuple[int, ...]] = set()
        self.count = 0
        self.declared = 0

    def run(self, file: Any) -> None:
        """Visit everything below the top of an open file.

        Raises:
            DataError: Something reaches out of the file, or declares more than it holds.
        """
        self._enter(h5g.open(file, b"/"), "", 0)
        # Level by level: a file of too many objects is told by its links before they are opened.
        while self.waiting:
            self._group(*self.waiting.popleft())
        for name, target in self.soft:
            node = self.datasets.get(target)
            if node is None:
                self.findings.refuse(
                    "link",
                    f"a soft link to {target!r}, which is no dataset of this file.",
                    field=name,
                )
            self.datasets[name] = Node(name, node.id, node.shape, node.kind, node.width)

    def _enter(self, group: Any, path: str, depth: int) -> None:
        # Not h5o.get_info: it also measures the index of the group, along siblings that a damaged
        # file may link in a circle.
        address = h5g.get_objinfo(group).objno
        if address in self.seen or depth > DEPTH_LIMIT:
            self.findings.refuse(
                "link", "groups are linked in a circle or nested too deep.", field=path
            )
        self.seen.add(address)
        self.groups[path] = group
        self.count += group.get_num_objs()
        if self.count > OBJECT_LIMIT:
            self.findings.refuse("bomb", f"more than {OBJECT_LIMIT:,} objects.", field=path)
        self.waiting.append((group, path, depth))

    def _group(self, group: Any, path: str, depth: int) -> None:
        tracked = group.get_create_plist().get_link_creation_order() & h5p.CRT_ORDER_INDEXED
        links: list[tuple[bytes, int]] = []
        group.links.iterate(
            lambda name, info: links.append((name, info.type)),
            idx_type=h5.INDEX_CRT_ORDER if tracked else h5.INDEX_NAME,
            info=True,
        )
        for name, kind in links:
            full = f"{path}/{decode(name)}" if path else decode(name)
            if kind == h5l.TYPE_HARD:
                self._object(h5o.open(group, name), full, depth)
            elif kind == h5l.TYPE_SOFT:
                target = decode(group.links.get_val(name))
                whole = posixpath.normpath(posixpath.join("/", path, target))
                self.soft.append((full, whole.lstrip("/")))
            else:
                self.findings.refuse(
                    "link", "a link to another file, which is never followed.", field=full
                )

    def _object(self, handle: Any, name: str, depth: int) -> None:
        if isinstance(handle, h5d.DatasetID):
            self._dataset(handle, name)
        elif isinstance(handle, h5g.GroupID):
            self._enter(handle, name, depth + 1)

    def _dataset(self, handle: Any, name: str) -> None:
        plan = handle.get_create_plist()
        layout = plan.get_layout()
        if layout == h5d.VIRTUAL or (layout == h5d.CONTIGUOUS and plan.get_external_count()):
            self.findings.refuse(
                "external_storage", "its values lie in other files, which are not read.", field=name
            )
        for number in range(plan.get_nfilters()):
            known = plan.get_filter(number)[0]
            if known not in FILTERS and known != _LZF:
                self.findings.refuse(
                    "unknown_filter",
                    f"encoded by filter {known}, which needs a plug-in. Rewrite it with gzip "
                    "(h5repack -f GZIP=4).",
                    field=name,
                )
        space = handle.get_space()
        null = space.get_simple_extent_type() == h5s.NULL
        shape = None if null else cast(tuple[int, ...], space.get_simple_extent_dims())
        kind = handle.get_type()
        logical = 0 if shape is None else math.prod(shape) * kind.get_size()
        self.declared += logical
        stored = handle.get_storage_size()
        too_much = logical > max(SMALL, RATIO_LIMIT * stored)
        if too_much or self.declared > max(SMALL, RATIO_LIMIT * self.size):
            self.findings.refuse(
                "bomb",
                f"declares {logical:,} bytes (shape {shape}) where {stored:,} are stored in a "
                f"file of {self.size:,}.",
                field=name,
            )
        numbers = kind.get_class() in (h5t.INTEGER, h5t.FLOAT, h5t.ENUM)
        if stored and numbers and not _fills(plan, stored, logical, kind.get_size()):
            self.findings.refuse(
                "damaged",
                f"declares {logical:,} bytes (shape {shape}) where {stored:,} are stored.",
                field=name,
            )
        self.datasets[name] = Node(name, handle, shape, kind.get_class(), kind.get_size())


def _fills(plan: Any, stored: int, logical: int, width: int) -> bool:
    """Whether what is stored can be what is declared, where no filter changes the size."""
    if plan.get_layout() != h5d.CHUNKED:
        return stored == logical
    return bool(plan.get_nfilters() or stored % (math.prod(plan.get_chunk()) * width) == 0)


def decode(value: Any) -> str:
    """Text of a name or a string element; bytes that are no UTF-8 are replaced."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return str(value)


def brief(error: BaseException) -> str:
    """What the library said, on one short line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
