"""HDF5 files from strangers, opened with their tricks refused.

An HDF5 file can point to other files (external links and storage, virtual datasets), load
plug-ins to decode itself, and declare terabytes in a kilobyte. None of that belongs into a
dataset, so the whole tree is walked before anything is read.
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

# Read once when libhdf5 loads: no filter plug-in may come from outside.
os.environ["HDF5_PLUGIN_PATH"] = "/nonexistent"

import h5py
import numpy as np
from h5py import h5a, h5s, h5t

from pubc.errors import DataError, EnvironmentFailure, PubcError
from pubc.formats.core.findings import Findings
from pubc.formats.core.key_hints import key_flags
from pubc.formats.hdf5.hdf5_heaps import broken_heap
from pubc.formats.hdf5.hdf5_walk import H5_ERRORS, Node, Walk, brief, decode
from pubc.trajectory import Array

__all__ = ["Checked", "open_checked", "root_names"]

WORD_LIMIT = 20_000
"""Texts in one dataset, which are read one by one."""
TEXT_LIMIT = 16 << 20
"""Letters in one text; more is a trap."""
_NUMBERS = (h5t.INTEGER, h5t.FLOAT, h5t.ENUM)


@dataclass(slots=True)
class Checked:
    """A file whose whole tree was walked and found to stand on its own."""

    path: Path
    file: h5py.File
    findings: Findings
    datasets: dict[str, Node]
    """Every dataset by path, in the order of the file."""
    groups: dict[str, Any]
    """Handle of every group by path; the top is the empty path."""
    _heaps_are_sound: bool = False

    def __contains__(self, name: str) -> bool:
        return name in self.datasets

    def need(self, name: str) -> Node:
        """The dataset of that name, or a refusal that lists what there is."""
        if name not in self.datasets:
            known = ", ".join(list(self.datasets)[:40]) or "nothing"
            self.findings.refuse(
                "missing_key",
                f"no such dataset. The file holds: {known}.{key_flags(self.datasets)}",
                field=name,
            )
        return self.datasets[name]

    def below(self, group: str) -> dict[str, Node]:
        """Datasets below a group, by their path relative to it."""
        start = f"{group}/"
        return {
            name.removeprefix(start): node
            for name, node in self.datasets.items()
            if name.startswith(start)
        }

    def dtype(self, node: Node) -> np.dtype[Any]:
        """Element type of a dataset of numbers, in the byte order of this machine."""
        dtype: np.dtype[Any] = np.dtype(object)
        if node.kind in _NUMBERS:
            with self._words(node.name):
                dtype = np.dtype(node.id.dtype.str).newbyteorder("=")
        if dtype.kind not in "fiub" or dtype.itemsize > 8:
            self.findings.refuse(
                "bad_dtype",
                "expected numbers of at most 64 bits, found text, objects or references.",
                field=node.name,
            )
        if dtype.itemsize != node.width:
            self.findings.refuse(
                "bad_dtype",
                f"numbers of {node.width} bytes in a layout that no machine uses; damaged?",
                field=node.name,
            )
        return dtype

    def is_numeric(self, node: Node) -> bool:
        """Whether a dataset holds plain numbers or booleans."""
        try:
            self.dtype(node)
        except DataError:
            return False
        return True

    def array(self, name: str) -> Array:
        """All of a dataset of numbers."""
        node = self.need(name)
        if node.shape is None:
            self.findings.refuse("bad_shape", "the dataset is empty.", field=name)
        out = np.empty(node.shape, dtype=self.dtype(node))
        self.fill(node, out)
        return out

    def fill(self, node: Node, out: Array) -> None:
        """Read all of a dataset into an array of its shape."""
        with self._words(node.name):
            node.id.read(h5s.ALL, h5s.ALL, out)
        if out.dtype == np.bool_ and out.size and (wrong := out.view(np.uint8) > 1).any():
            first = int(np.argmax(wrong.reshape(-1)))
            self.findings.refuse(
                "not_boolean",
                f"booleans must be 0 or 1. Found {int(out.view(np.uint8).reshape(-1)[first])}.",
                field=node.name,
                index=first,
                count=int(wrong.sum()),
            )

    def words(self, name: str) -> list[str]:
        """All of a dataset of strings, or of one string."""
        node = self.need(name)
        dataset = h5py.Dataset(node.id)
        found, size = [], 0
        with self._words(name):
            kind = h5py.check_string_dtype(dataset.dtype)
            if kind is None or node.shape is None:
                self.findings.refuse("bad_dtype", f"expected text: {dataset.dtype}.", field=name)
            if kind.length is not None and dataset.size * kind.length <= TEXT_LIMIT:
                return [decode(word) for word in np.ravel(dataset[()]).tolist()]
            self.check_heaps()
            if dataset.size > WORD_LIMIT:
                self.findings.refuse("bomb", f"more than {WORD_LIMIT:,} texts.", field=name)
            # One at a time: many elements of one small file may share one large text.
            for place in np.ndindex(dataset.shape or ()):
                found.append(decode(dataset[place]))
                size += len(found[-1])
                if size > TEXT_LIMIT:
                    self.findings.refuse("bomb", f"more than {TEXT_LIMIT:,} letters.", field=name)
        return found

    def check_heaps(self) -> None:
        """Refuse texts that libhdf5 would never be done with; needed before it reads or copies any.

        Not part of the walk: it goes through the whole file, and most have no such text.
        """
        if self._heaps_are_sound:
            return
        broken = broken_heap(self.path)
        if broken is not None:
            self.findings.refuse(
                "damaged",
                f"the texts of the file are damaged at byte {broken:,}. Copy or download it again.",
            )
        self._heaps_are_sound = True

    def attributes(self, group: str = "") -> dict[str, Any]:
        """Attributes of a group that are JSON values; large and odd ones are left out."""
        handle = self.groups[group]
        found = {}
        with self._words(group or "/"):
            attributes = h5py.Group(handle).attrs
            for name in attributes:
                value = self._attribute(handle, attributes, name)
                if value is not None:
                    found[str(name)] = value
        return found

    def attribute(self, group: str, name: str) -> Any:
        """One attribute of a group as a JSON value; None where there is none."""
        handle = self.groups[group]
        with self._words(f"{group}@{name}"):
            if h5a.exists(handle, name.encode()):
                return self._attribute(handle, h5py.Group(handle).attrs, name)
        return None

    def _attribute(self, handle: Any, attributes: Any, name: str) -> Any:
        identifier = h5a.open(handle, name.encode("utf-8", "surrogateescape"))
        space, kind = identifier.get_space(), identifier.get_type()
        count = space.get_simple_extent_npoints()
        if space.get_simple_extent_type() == h5s.NULL or count > 10_000:
            return None
        if kind.get_class() not in (*_NUMBERS, h5t.STRING) or count * kind.get_size() > TEXT_LIMIT:
            return None
        if kind.get_class() == h5t.STRING and kind.is_variable_str():
            self.check_heaps()
        value = attributes[name]
        if isinstance(value, bytes | str):
            return decode(value)
        value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
        return value if _is_json(value) else None

    @contextlib.contextmanager
    def _words(self, name: str) -> Iterator[None]:
        try:
            yield
        except PubcError:
            raise
        except H5_ERRORS as error:
            self.findings.refuse("damaged", f"cannot be read ({brief(error)}).", field=name)


@contextlib.contextmanager
def open_checked(path: Path, findings: Findings) -> Iterator[Checked]:
    """Open a file for reading, after a walk that refuses what reaches out of it.

    Args:
        path: The file; it is never opened for writing.
        findings: Where refusals are raised.

    Yields:
        The file with an index of its groups and datasets.

    Raises:
        DataError: The file is truncated, was not closed, is damaged, holds links out of
            itself, virtual or external storage, unknown filters, or declares more bytes than
            it can hold.
    """
    try:
        # A dataset is read once and whole, so a cache of its chunks would only cost memory.
        file = h5py.File(path, "r", rdcc_nbytes=0, locking="best-effort")
    except H5_ERRORS as error:
        _refuse_opening(path, error, findings)
    with file:
        try:
            walk = Walk(path.stat().st_size, findings)
            walk.run(file.id)
        except H5_ERRORS as error:
            if isinstance(error, PubcError):
                raise
            findings.refuse("damaged", f"its tree cannot be walked ({brief(error)}).")
        yield Checked(path, file, findings, walk.datasets, walk.groups)


def root_names(path: Path) -> list[str]:
    """Names at the top of a file, without following a link."""
    try:
        with h5py.File(path, "r", locking="best-effort") as file:
            return [decode(name) for name in file]
    except H5_ERRORS as error:
        _refuse_opening(path, error, Findings(path))


def _refuse_opening(path: Path, error: BaseException, findings: Findings) -> NoReturn:
    said = str(error)
    sizes = re.search(r"eof = (\d+).*stored_eof = (\d+)", said)
    if sizes:
        has, expected = int(sizes.group(1)), int(sizes.group(2))
        findings.refuse(
            "truncated",
            f"truncated: expected >= {expected:,} bytes, has {has:,}. Copy or download it again.",
        )
    if "h5clear" in said or "consistency flag" in said or "already open for write" in said:
        findings.refuse(
            "not_closed",
            "not closed cleanly by its writer, or still being written. If the writer is gone, "
            f"run `h5clear --status` on a copy of {path.name} and read that.",
        )
    if isinstance(error, PermissionError):
        raise EnvironmentFailure(f"{path}: no permission to read it.") from None
    findings.refuse("truncated", f"not readable as HDF5 ({brief(error)}).")


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | int | bool)
