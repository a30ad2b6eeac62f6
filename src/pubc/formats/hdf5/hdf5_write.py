"""New HDF5 files, and the group `pubc` in them for what a foreign layout cannot hold.

Other programs look for the names they know and pass over that group; pubc reads it, so that
a set comes back from any HDF5 layout as it went in.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.findings import Findings
from pubc.formats.hdf5.hdf5_disk import NewFile, new_hdf5
from pubc.formats.hdf5.hdf5_read import Checked
from pubc.storage import atomic_file
from pubc.trajectory import BLOCK, Array, TrajectorySet

__all__ = ["GROUP", "Side", "new_file", "places", "read_side", "stream", "write_side"]

GROUP = "pubc"
_CHUNK = 512 << 10
_ARRAYS = ("final_observations", "has_final", "terminals", "timeouts")


@dataclass(slots=True)
class Side:
    """What the group `pubc` of a file says of its trajectories."""

    lengths: NDArray[np.int64]
    ids: list[str]
    sources: list[str] | None
    metadata: dict[str, Any]
    absent: tuple[str, ...]
    """Columns that the layout demands but the set does not have; they hold zeros."""
    names: dict[str, str]
    """Name of an extra column by its place in the file, where they differ."""
    arrays: dict[str, Array] = field(default_factory=dict)
    """Final observations and flags, where the layout cannot hold them."""

    @property
    def finals(self) -> tuple[Array | None, NDArray[np.bool_] | None]:
        """Final observations, and which trajectories have one."""
        return self.arrays.get("final_observations"), self.arrays.get("has_final")


@contextlib.contextmanager
def new_file(path: Path, *, overwrite: bool = False) -> Iterator[NewFile]:
    """Give a new HDF5 file to write to, and move it into place on success.

    Raises:
        UsageError: `path` exists and `overwrite` is off.
        EnvironmentFailure: The disk said no; nothing was changed.
    """
    with atomic_file(path, overwrite=overwrite) as temporary, new_hdf5(temporary) as file:
        yield file


def stream(
    file: NewFile,
    trajectories: TrajectorySet,
    paths: Mapping[str, str],
) -> None:
    """Write flat columns block by block, so that a set larger than memory can be written.

    Args:
        file: Where to write.
        trajectories: The set; its order is the order of the rows.
        paths: Where each column goes, by its name in `Columns.named`.
    """
    targets = {}
    for name, column in trajectories.columns.named():
        if name in paths:
            shape = (trajectories.steps, *column.shape[1:])
            targets[name] = create(file, paths[name], shape, column.dtype)
    row = 0
    for block in trajectories.blocks():
        stop = row + len(block.observations)
        for name, column in block.named():
            if name in targets:
                targets[name][row:stop] = column
        file.check()
        row = stop


def create(file: h5py.Group, name: str, shape: tuple[int, ...], dtype: Any) -> h5py.Dataset:
    """A compressed dataset whose chunks fit the blocks that fill it."""
    width = max(1, int(np.prod(shape[1:])) * np.dtype(dtype).itemsize)
    rows = BLOCK
    while rows > 1 and rows * width > _CHUNK:
        rows //= 2
    chunks = (max(1, min(rows, shape[0])), *shape[1:])
    if 0 in shape:
        return file.create_dataset(name, shape=shape, dtype=dtype)
    return file.create_dataset(
        name, shape=shape, dtype=dtype, chunks=chunks, compression="gzip", shuffle=True
    )


def write_side(
    file: NewFile,
    trajectories: TrajectorySet,
    *,
    flags: bool = False,
    absent: Iterable[str] = (),
    names: Mapping[str, str] | None = None,
) -> h5py.Group:
    """Write the group `pubc`: lengths, ids, sources, final observations, metadata.

    Args:
        file: The file being written.
        trajectories: The set that it holds.
        flags: Keep the end marks of every step too.
        absent: Columns that are zeros only because the layout demands them.
        names: Name of an extra column by its place in the file, where they differ.

    Returns:
        The group.
    """
    group = file.create_group(GROUP)
    sources = trajectories.sources
    about = {
        "ids": trajectories.ids.tolist(),
        "sources": None if sources is None else sources.tolist(),
        "metadata": dict(trajectories.metadata),
        "absent": list(absent),
        "names": dict(names or {}),
    }
    text = json.dumps(about).encode()
    group.create_dataset("about", data=np.frombuffer(text, dtype=np.uint8))
    group.create_dataset("lengths", data=trajectories.lengths)
    if trajectories.final_observations is not None:
        group.create_dataset("final_observations", data=trajectories.final_observations)
        group.create_dataset("has_final", data=trajectories.has_final)
    if flags:
        places = {name: f"{GROUP}/{name}" for name in ("terminals", "timeouts")}
        stream(file, trajectories, places)
    return group


def read_side(checked: Checked, rows: int, findings: Findings) -> Side | None:
    """The group `pubc` of a file, if it has one that fits its rows.

    Another program may have changed the file since; then the group is passed over, and that
    is said.
    """
    if f"{GROUP}/about" not in checked or f"{GROUP}/lengths" not in checked:
        return None
    lengths = checked.array(f"{GROUP}/lengths")
    side = None
    with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError, AttributeError):
        about = json.loads(checked.array(f"{GROUP}/about").tobytes())
        sources = about["sources"]
        side = Side(
            lengths=np.asarray(lengths, dtype=np.int64).reshape(-1),
            ids=[str(word) for word in about["ids"]],
            sources=None if sources is None else [str(word) for word in sources],
            metadata=dict(about["metadata"]),
            absent=tuple(map(str, about["absent"])),
            names={str(place): str(name) for place, name in about["names"].items()},
        )
        for name in _ARRAYS:
            if f"{GROUP}/{name}" in checked:
                side.arrays[name] = checked.array(f"{GROUP}/{name}")
    if side is None or not _fits(side, rows):
        findings.warn(
            "stale_group",
            "does not fit the rest of the file, which another program seems to have changed; "
            "ids, sources and final observations in it were left out.",
            field=GROUP,
        )
        return None
    return side


def _fits(side: Side, rows: int) -> bool:
    count = len(side.lengths)
    per_trajectory = [side.ids, side.sources, *side.finals]
    per_step = [side.arrays.get("terminals"), side.arrays.get("timeouts")]
    return (
        bool((side.lengths > 0).all())
        and int(side.lengths.sum()) == rows
        and all(part is None or len(part) == count for part in per_trajectory)
        and all(part is None or part.shape == (rows,) for part in per_step)
        and ("final_observations" in side.arrays) == ("has_final" in side.arrays)
        and side.arrays.get("has_final", np.zeros(0, np.bool_)).dtype == np.bool_
    )


def places(names: Sequence[str], taken: Iterable[str], prefix: str = "") -> dict[str, str]:
    """A path in the file for each name; a plain number where the name cannot be one."""
    used = list(taken)
    found = {}
    for number, name in enumerate(names):
        path = prefix + name
        odd = any(part in ("", ".", "..") for part in name.split("/")) or "\0" in name
        if odd or any(_collide(path, other) for other in used):
            path = f"{prefix}extra_{number:03d}"
        used.append(path)
        found[name] = path
    return found


def _collide(one: str, other: str) -> bool:
    return one == other or one.startswith(other + "/") or other.startswith(one + "/")
