"""One NumPy archive: `observations, actions, rewards, terminals, timeouts`.

Optional: `sources` (one string per trajectory), `ids`, `lengths`, `final_observations`
with `has_final`, `metadata` (a JSON text), and any further array with one row per step.
Written archives are plain zip files of .npy arrays, byte for byte the same for the same
set, streamed so that a set larger than memory can be written.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.findings import Findings
from pubc.formats.core.key_hints import key_flags
from pubc.formats.core.options import ReadOptions
from pubc.formats.npz_archive import load_arrays
from pubc.storage import atomic_file
from pubc.trajectory import Array, TrajectorySet

__all__ = ["EXTRA", "SLOW", "read", "write"]

EXTRA = None
SLOW = False
_OWN = {"observations", "actions", "rewards", "terminals", "timeouts"}
_INDEX = {"sources", "ids", "lengths", "final_observations", "has_final", "metadata"}


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Read an archive; every array's size is checked before it is allocated."""
    arrays = load_arrays(path, findings)
    observations = _observations(arrays, options, findings)
    actions = _need(arrays, options.action_key or "actions", findings)
    reward_key = options.reward_key or "rewards"
    if options.reward_key is not None:
        _need(arrays, reward_key, findings)
    used = {options.action_key, reward_key, options.source_key, *options.observation_keys}
    return assemble(
        Raw(
            observations=observations,
            actions=actions,
            rewards=arrays.get(reward_key),
            terminals=arrays.get("terminals"),
            timeouts=arrays.get("timeouts"),
            lengths=_lengths(arrays, findings),
            ids=_words(arrays, "ids", findings),
            sources=_words(arrays, options.source_key or "sources", findings),
            final_observations=arrays.get("final_observations"),
            has_final=arrays.get("has_final"),
            extras={
                name: column for name, column in arrays.items() if name not in _OWN | _INDEX | used
            },
            metadata=_metadata(arrays, findings),
        ),
        options,
        findings,
    )


def write(path: Path, trajectories: TrajectorySet, *, overwrite: bool) -> None:
    """Stream a set into a new archive."""
    with (
        atomic_file(path, overwrite=overwrite) as temporary,
        zipfile.ZipFile(temporary, "w", zipfile.ZIP_STORED, allowZip64=True) as archive,
    ):
        for name, column in trajectories.columns.named():
            shape = (trajectories.steps, *column.shape[1:])
            blocks = trajectories.stream(column)
            _add(archive, name.removeprefix("extras/"), column.dtype, shape, blocks)
        for name, values in _index(trajectories):
            _add(archive, name, values.dtype, values.shape, [values])


def _index(trajectories: TrajectorySet) -> Iterator[tuple[str, Array]]:
    yield "lengths", trajectories.lengths
    yield "ids", trajectories.ids
    if trajectories.sources is not None:
        yield "sources", trajectories.sources
    if trajectories.final_observations is not None:
        yield "final_observations", np.asarray(trajectories.final_observations)
        yield "has_final", np.asarray(trajectories.has_final)
    if trajectories.metadata:
        yield "metadata", np.array(json.dumps(dict(trajectories.metadata)))


def _add(
    archive: zipfile.ZipFile,
    name: str,
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    blocks: Any,
) -> None:
    # A ZipInfo made by hand carries 1980 as its date, so equal sets give equal bytes.
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as file:
        header = {
            "descr": npy.dtype_to_descr(dtype),
            "fortran_order": False,
            "shape": shape,
        }
        npy.write_array_header_1_0(cast(BinaryIO, file), header)
        for block in blocks:
            file.write(np.ascontiguousarray(block).tobytes())


def _observations(arrays: dict[str, Array], options: ReadOptions, findings: Findings) -> Array:
    if not options.observation_keys:
        return _need(arrays, "observations", findings)
    parts = [_need(arrays, key, findings) for key in options.observation_keys]
    if len({len(part) for part in parts}) != 1 or any(part.ndim > 2 for part in parts):
        shapes = ", ".join(f"{k} {arrays[k].shape}" for k in options.observation_keys)
        findings.refuse(
            "bad_shape",
            f"cannot be joined into one observation: {shapes}.",
            field="observations",
        )
    if len(parts) == 1:
        return parts[0]
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def _need(arrays: dict[str, Array], key: str, findings: Findings) -> Array:
    if key not in arrays:
        findings.refuse(
            "missing_key",
            f"no such array. The archive holds: {', '.join(sorted(arrays)) or 'nothing'}."
            + key_flags(arrays),
            field=key,
        )
    if not arrays[key].ndim:
        findings.refuse("bad_shape", "a single number, not one row per step.", field=key)
    return arrays[key]


def _lengths(arrays: dict[str, Array], findings: Findings) -> Any:
    lengths = arrays.get("lengths")
    if lengths is not None and (lengths.ndim != 1 or lengths.dtype.kind not in "iu"):
        findings.refuse("bad_dtype", f"must be integers. Got {lengths.dtype}.", field="lengths")
    return lengths


def _words(arrays: dict[str, Array], key: str, findings: Findings) -> list[str] | None:
    words = arrays.get(key)
    if words is None:
        return None
    if words.ndim != 1 or words.dtype.kind not in "USiu":
        findings.refuse(
            "bad_dtype",
            f"must hold one string per trajectory. Got {words.dtype}, shape {words.shape}.",
            field=key,
        )
    if words.dtype.kind == "S":
        return [word.decode("utf-8", "replace") for word in words.tolist()]
    return [str(word) for word in words.tolist()]


def _metadata(arrays: dict[str, Array], findings: Findings) -> dict[str, Any]:
    text = arrays.get("metadata")
    if text is None:
        return {}
    try:
        document = json.loads(str(text.reshape(-1)[0])) if text.dtype.kind == "U" else None
    except (ValueError, RecursionError, IndexError):
        document = None
    if not isinstance(document, dict):
        findings.warn("bad_metadata", "not the text of a JSON object; left out.", field="metadata")
        return {}
    return document
