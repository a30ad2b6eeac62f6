"""pubc's own format: a folder of flat .npy arrays with a manifest.

The arrays are memory-mapped, so opening, slicing and streaming a store costs what it
touches. Layout: one .npy per column (`extras/NAME.npy` for extras), `lengths.npy`,
`ids.npy`, optionally `sources.npy`, `final_observations.npy`, `has_final.npy`, and
`manifest.json` with the metadata, the problems its reader found, and sizes and SHA-256.
"""

from __future__ import annotations

import dataclasses
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib import format as npy

from pubc.errors import DataError
from pubc.formats.core.checks import check_words
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.storage import atomic_folder, hash_file, mark_entry, read_manifest
from pubc.trajectory import Array, Columns, Problem, TrajectorySet

__all__ = ["EXTRA", "SLOW", "read", "write"]

EXTRA = None
SLOW = False
KIND = "store"
_COLUMNS = ("observations", "actions", "rewards", "terminals", "timeouts")
_INDEX = ("lengths", "ids", "sources", "final_observations", "has_final")
_KINDS = {
    "observations": "fiub",
    "actions": "fiub",
    "rewards": "fiub",
    "terminals": "b",
    "timeouts": "b",
    "lengths": "i",
    "ids": "U",
    "sources": "U",
    "final_observations": "fiub",
    "has_final": "b",
}
"""Which kinds of dtype each array may have."""
_STRUCTURE = ("lengths", "ids", "sources", "has_final", "terminals", "timeouts")
"""Small arrays that say where trajectories are and how they end; checked at every opening."""
HASHED = 256 << 20
"""Larger ones are left to `pubc verify`."""
_ARRAY_FAULTS = (
    ValueError,
    TypeError,
    SyntaxError,
    KeyError,
    EOFError,
    MemoryError,
    RecursionError,
    tokenize.TokenError,
)
_SAFE = re.compile(r"[^A-Za-z0-9._-]")


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Open a store without loading it; sizes and structure are checked, values by `verify`."""
    manifest = read_manifest(path, kind=KIND)
    arrays = {name: _open(path, name, name, manifest, findings) for name in _KINDS}
    for name in ("observations", "actions", "terminals", "timeouts", "lengths", "ids"):
        if arrays[name] is None:
            findings.refuse("missing_file", "the store lacks this array.", field=name)
    extras = {}
    for name, file in _object(manifest, "extras", findings).items():
        column = _open(path, name, str(file), manifest, findings)
        if column is None:
            findings.refuse("missing_file", "the store lacks this array.", field=name)
        extras[name] = column
    try:
        trajectories = TrajectorySet.from_flat(
            Columns(**{name: arrays[name] for name in _COLUMNS}, extras=extras),  # type: ignore[arg-type]
            np.asarray(arrays["lengths"]),
            ids=np.asarray(arrays["ids"]),
            sources=arrays["sources"],
            final_observations=arrays["final_observations"],
            has_final=arrays["has_final"],
            metadata=_object(manifest, "metadata", findings),
            problems=tuple(_problems(manifest)),
        )
    except DataError as error:
        findings.refuse(error.code, str(error), field=error.field, index=error.index)
    check_words(trajectories.ids, "ids", findings)
    if trajectories.sources is not None:
        check_words(trajectories.sources, "sources", findings)
    if options.strict and any(p.outcome != "noticed" for p in trajectories.problems):
        first = next(p for p in trajectories.problems if p.outcome != "noticed")
        findings.refuse(first.code, f"{first.message} (refused: --strict)", field=first.field)
    return trajectories


def write(
    path: Path,
    trajectories: TrajectorySet,
    *,
    overwrite: bool,
    about: Mapping[str, Any] | None = None,
    copy_of: tuple[Path, str] | None = None,
    blocks: Callable[[Path], dict[str, Any]] | None = None,
) -> None:
    """Stream a set to a new store; memory stays at one block whatever the size.

    Args:
        path: Folder to make.
        trajectories: What goes into it.
        overwrite: Replace a store that is there.
        about: Further facts for its manifest.
        copy_of: The dataset that this is a cached copy of, and its format; the store then
            carries the marker of an entry of the cache.
        blocks: Digests of parts of its files, for the manifest of a cached copy.
    """
    told: dict[str, Any] = {
        **(about or {}),
        "trajectories": len(trajectories),
        "steps": trajectories.steps,
        "metadata": dict(trajectories.metadata),
        "problems": [dataclasses.asdict(problem) for problem in trajectories.problems],
        "extras": {},
    }
    if copy_of is not None:
        told["source"], told["origin"] = str(copy_of[0].resolve()), copy_of[1]
    with atomic_folder(path, kind=KIND, overwrite=overwrite, about=told) as folder:
        for number, name in enumerate(trajectories.columns.extras):
            told["extras"][name] = f"extra-{number:03d}-{_SAFE.sub('_', name)[:60]}"
        files = {f"extras/{name}": file for name, file in told["extras"].items()}
        if copy_of is not None:
            # First, so that what a kill leaves is known as ours too.
            columns = [files.get(name, name) for name, _ in trajectories.columns.named()]
            stems = [*columns, *(n for n in _INDEX if getattr(trajectories, n) is not None)]
            mark_entry(folder, path.name, [f"{stem}.npy" for stem in stems])
        for name, column in trajectories.columns.named():
            shape = (trajectories.steps, *column.shape[1:])
            with (folder / f"{files.get(name, name)}.npy").open("wb") as file:
                _header(file, column.dtype, shape)
                for block in trajectories.stream(column):
                    file.write(np.ascontiguousarray(block).data)
        for name in _INDEX:
            values = getattr(trajectories, name)
            if values is not None:
                np.save(folder / f"{name}.npy", np.asarray(values), allow_pickle=False)
        if blocks is not None:
            told["blocks"] = blocks(folder)


def _header(file: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    header = {
        "descr": npy.dtype_to_descr(dtype),
        "fortran_order": False,
        "shape": shape,
    }
    npy.write_array_header_1_0(file, header)


def _open(
    path: Path, name: str, stem: str, manifest: dict[str, Any], findings: Findings
) -> Array | None:
    """Map one array; None where the manifest does not list it."""
    file = f"{stem}.npy"
    if file not in manifest["files"]:
        return None
    entry = manifest["files"][file]
    if "/" in file or file.startswith(".") or "\\" in file or not isinstance(entry, dict):
        findings.refuse("bad_path", f"{file!r} is not a file that a store has.", field=name)
    full = path / file
    if full.is_symlink():
        findings.refuse("link", f"{file} is a link, where a store has only files.", field=name)
    try:
        size = full.stat().st_size
        if size != entry.get("size"):
            findings.refuse(
                "truncated",
                f"{file} has {size:,} bytes, the manifest says {entry.get('size')}. The store "
                "is damaged: write it anew from its source.",
                field=name,
            )
        if name in _STRUCTURE and size <= HASHED and hash_file(full) != entry.get("sha256"):
            findings.refuse(
                "checksum",
                f"{file} is not what was written (its SHA-256 differs). The store is damaged: "
                "write it anew from its source.",
                field=name,
            )
        return _map(full, size, _KINDS.get(name, "fiub"))
    except FileNotFoundError:
        findings.refuse("missing_file", f"{file} is missing.", field=name)
    except _ARRAY_FAULTS as error:
        findings.refuse("bad_array", f"{file} is not as pubc wrote it ({error}).", field=name)


def _map(path: Path, size: int, kinds: str) -> Array:
    with path.open("rb") as file:
        if npy.read_magic(file) == (1, 0):
            shape, _, dtype = npy.read_array_header_1_0(file)
        else:
            shape, _, dtype = npy.read_array_header_2_0(file)
        expected = file.tell() + int(np.prod(shape, dtype=object)) * dtype.itemsize
    if dtype.kind not in kinds or dtype.hasobject:
        raise ValueError(f"its dtype is {dtype}")
    if expected != size:
        raise ValueError(f"its header promises {expected} bytes, it has {size}")
    mode: Literal["r"] | None = None if 0 in shape else "r"
    # As a plain array: slicing the subclass np.memmap costs ten times as much.
    return np.asarray(np.load(path, mmap_mode=mode, allow_pickle=False))


def _object(manifest: dict[str, Any], key: str, findings: Findings) -> dict[str, Any]:
    value = manifest.get(key, {})
    if not isinstance(value, dict):
        findings.refuse("bad_manifest", "must be an object.", field=key)
    return value


def _problems(manifest: dict[str, Any]) -> Iterator[Problem]:
    names = {f.name for f in dataclasses.fields(Problem)}
    entries = manifest.get("problems", [])
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and {"code", "outcome", "message"} <= set(entry):
            yield Problem(**{key: entry[key] for key in names & set(entry)})
