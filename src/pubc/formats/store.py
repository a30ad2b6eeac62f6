"""pubc's own format: a folder of flat .npy arrays with a manifest.

The arrays are memory-mapped, so opening, slicing and streaming a store costs what it
touches. Layout: one .npy per column (`extras/NAME.npy` for extras), `lengths.npy`,
`ids.npy`, optionally `sources.npy`, `final_observations.npy`, `has_final.npy`, and
`manifest.json` with the metadata, the problems its reader found, and sizes and SHA-256.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.lib import format as npy

from pubc.errors import DataError
from pubc.formats.findings import Findings
from pubc.formats.options import ReadOptions
from pubc.storage import atomic_folder, read_manifest
from pubc.trajectory import Array, Columns, Problem, TrajectorySet

__all__ = ["EXTRA", "SLOW", "read", "write"]

EXTRA = None
SLOW = False
KIND = "store"
_COLUMNS = ("observations", "actions", "rewards", "terminals", "timeouts")
_INDEX = ("lengths", "ids", "sources", "final_observations", "has_final")
_SAFE = re.compile(r"[^A-Za-z0-9._-]")


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Open a store without loading it; sizes are checked, contents by `pubc verify`."""
    manifest = read_manifest(path, kind=KIND)
    arrays = {name: _open(path, name, manifest) for name in (*_COLUMNS, *_INDEX)}
    for name in ("observations", "actions", "terminals", "timeouts", "lengths", "ids"):
        if arrays[name] is None:
            findings.refuse("missing_file", "the store lacks this array.", field=name)
    extras = {}
    for name, file in dict(manifest.get("extras", {})).items():
        column = _open(path, str(file), manifest)
        if column is not None:
            extras[str(name)] = column
    try:
        trajectories = TrajectorySet.from_flat(
            Columns(**{name: arrays[name] for name in _COLUMNS}, extras=extras),  # type: ignore[arg-type]
            np.asarray(arrays["lengths"]),
            ids=np.asarray(arrays["ids"]),
            sources=arrays["sources"],
            final_observations=arrays["final_observations"],
            has_final=arrays["has_final"],
            metadata=dict(manifest.get("metadata", {})),
            problems=tuple(_problems(manifest)),
        )
    except DataError as error:
        findings.refuse(error.code, str(error), field=error.field, index=error.index)
    if options.strict and any(p.outcome != "noticed" for p in trajectories.problems):
        first = next(p for p in trajectories.problems if p.outcome != "noticed")
        findings.refuse(first.code, f"{first.message} (refused: --strict)", field=first.field)
    return trajectories


def write(path: Path, trajectories: TrajectorySet, *, overwrite: bool) -> None:
    """Stream a set to a new store; memory stays at one block whatever the size."""
    about: dict[str, Any] = {
        "trajectories": len(trajectories),
        "steps": trajectories.steps,
        "metadata": dict(trajectories.metadata),
        "problems": [dataclasses.asdict(problem) for problem in trajectories.problems],
        "extras": {},
    }
    with atomic_folder(path, kind=KIND, overwrite=overwrite, about=about) as folder:
        for number, name in enumerate(trajectories.columns.extras):
            about["extras"][name] = f"extra-{number:03d}-{_SAFE.sub('_', name)[:60]}"
        files = {f"extras/{name}": file for name, file in about["extras"].items()}
        for name, column in trajectories.columns.named():
            shape = (trajectories.steps, *column.shape[1:])
            with (folder / f"{files.get(name, name)}.npy").open("wb") as file:
                _header(file, column.dtype, shape)
                for block in _stream(trajectories, column):
                    file.write(np.ascontiguousarray(block).data)
        for name in _INDEX:
            values = getattr(trajectories, name)
            if values is not None:
                np.save(folder / f"{name}.npy", np.asarray(values), allow_pickle=False)


def _stream(trajectories: TrajectorySet, column: Array) -> Iterator[Array]:
    """One column of the selected trajectories, block by block."""
    lone = dataclasses.replace(
        trajectories,
        columns=_lone(column, len(trajectories.columns.observations)),
        final_observations=None,
        has_final=None,
    )
    for block in lone.blocks():
        yield block.extras["it"]


def _lone(column: Array, rows: int) -> Columns:
    """Columns whose only content is `column`, so that streaming touches nothing else."""
    none = np.broadcast_to(np.zeros((1, 1), dtype=np.bool_), (rows, 1))
    flags = np.broadcast_to(np.zeros(1, dtype=np.bool_), (rows,))
    return Columns(none, none, None, flags, flags, {"it": column})


def _header(file: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    header = {
        "descr": npy.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    npy.write_array_header_1_0(file, header)


def _open(path: Path, name: str, manifest: dict[str, Any]) -> Array | None:
    file = f"{name}.npy"
    entry = manifest["files"].get(file)
    if entry is None:
        return None
    if "/" in file or file.startswith(".") or "\\" in file:
        raise DataError(f"{path}: {file!r} is not a name a store uses.", code="bad_path")
    full = path / file
    if full.is_symlink():
        raise DataError(f"{full}: a link, where a store has only files.", code="link")
    try:
        size = full.stat().st_size
        if size != entry.get("size"):
            raise DataError(
                f"{full}: {size:,} bytes, the manifest says {entry.get('size'):,}. The "
                "store is damaged: write it anew from its source.",
                code="truncated",
                field=name,
            )
        with full.open("rb") as handle:
            shape, _, dtype = (
                npy.read_array_header_1_0(handle)
                if (npy.read_magic(handle) == (1, 0))
                else npy.read_array_header_2_0(handle)
            )
            header = handle.tell()
        expected = header + int(np.prod(shape, dtype=object)) * dtype.itemsize
        if dtype.hasobject or expected != size:
            raise ValueError(f"its header says {expected} bytes")
        return cast(Array, np.load(full, mmap_mode="r", allow_pickle=False))
    except FileNotFoundError:
        raise DataError(f"{full}: missing.", code="missing_file", field=name) from None
    except (ValueError, TypeError, SyntaxError, KeyError, EOFError) as error:
        raise DataError(
            f"{full}: not an array that pubc wrote ({error}).",
            code="bad_array",
            field=name,
        ) from None


def _problems(manifest: dict[str, Any]) -> Iterator[Problem]:
    names = {f.name for f in dataclasses.fields(Problem)}
    for entry in manifest.get("problems", []):
        if isinstance(entry, dict) and {"code", "outcome", "message"} <= set(entry):
            yield Problem(**{key: entry[key] for key in names & set(entry)})
