"""D4RL HDF5: flat columns, trajectories cut at `terminals | timeouts`.

The layout has no place for final observations, names of trajectories or ends without a mark;
those go into the group `pubc` (see `pubc.formats.hdf5.hdf5_write`), which D4RL passes over.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.findings import Findings
from pubc.formats.core.named_parts import is_image
from pubc.formats.core.options import ReadOptions
from pubc.formats.core.selection import Selection
from pubc.formats.hdf5.hdf5_read import Checked, open_checked
from pubc.formats.hdf5.hdf5_write import (
    GROUP,
    Side,
    new_file,
    places,
    read_side,
    stream,
    write_side,
)
from pubc.trajectory import Array, TrajectorySet

__all__ = ["EXTRA", "SLOW", "read", "subset", "write"]

EXTRA = None
SLOW = False
_OWN = ("observations", "actions", "rewards", "terminals", "timeouts")
_METADATA = "metadata/"
_NEXT = "next_observations"
_SIMPLE = 1000


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Read a flat file; every other key with one row per step becomes an extra column."""
    with open_checked(path, findings) as file:
        observations = _observations(file, options)
        rows = len(observations)
        side = None if options.episode_length else read_side(file, rows, findings)
        absent = side.absent if side else ()
        reward_key = options.reward_key or "rewards"
        has_rewards = options.reward_key or (reward_key in file and reward_key not in absent)
        timeouts = _optional(file, "timeouts")
        if timeouts is None and "terminals" in file and not options.episode_length:
            findings.warn(
                "no_timeouts",
                "the file marks no timeouts, so trajectories are cut at terminals only. If "
                "a step limit cut them too, give --episode-length.",
                field="timeouts",
            )
        for name in (reward_key, "terminals"):
            if name not in file:
                findings.warn(
                    "missing_key", "every D4RL file has it, this one does not.", field=name
                )
        used = {*options.observation_keys, options.action_key, reward_key, *_OWN}
        extras = _extras(file, rows, used, side, findings)
        raw = Raw(
            observations=observations,
            actions=file.array(options.action_key or "actions"),
            rewards=file.array(reward_key) if has_rewards else None,
            terminals=_optional(file, "terminals"),
            timeouts=timeouts,
            extras=extras,
            metadata=side.metadata if side else _metadata(file, findings),
        )
    if side is not None:
        raw.lengths, raw.ids, raw.sources = side.lengths, side.ids, side.sources
        if not options.observation_keys:
            raw.final_observations, raw.has_final = side.finals
    elif _NEXT in extras and not options.observation_keys:
        return _with_finals(assemble(raw, options, findings), raw)
    return assemble(raw, options, findings)


def write(path: Path, trajectories: TrajectorySet, *, overwrite: bool) -> None:
    """Stream a set into a new gzip-compressed file."""
    extras = list(trajectories.columns.extras)
    place = places(extras, (*_OWN, GROUP, "metadata"))
    paths = {name: name for name in _OWN} | {f"extras/{n}": place[n] for n in extras}
    with new_file(path, overwrite=overwrite) as file:
        stream(file, trajectories, paths)
        absent = []
        if trajectories.columns.rewards is None:
            file.create_dataset("rewards", shape=(trajectories.steps,), dtype=np.float32)
            absent.append("rewards")
        names = {where: name for name, where in place.items() if where != name}
        write_side(file, trajectories, absent=absent, names=names)


def subset(selection: Selection, target: Path, *, overwrite: bool) -> None:
    """Copy the rows of the kept trajectories from every key that has one row per step."""
    chosen = selection.read(read)
    rows = chosen.rows()
    findings = Findings(selection.source)
    with (
        open_checked(selection.source, findings) as file,
        new_file(target, overwrite=overwrite) as new,
    ):
        file.check_heaps()
        total = file.need((*selection.options.observation_keys, "observations")[0]).rows
        for name, value in file.file.attrs.items():
            new.attrs[name] = value
        for name, node in file.datasets.items():
            if name.startswith(f"{GROUP}/"):
                continue
            if node.rows == total and file.is_numeric(node):
                _copy_rows(file, name, rows, new)
            else:
                file.file.copy(file.file[name], new, name)
            new.check()
        side = read_side(file, total, findings)
        names = side.names if side else None
        write_side(new, chosen, names=names, absent=side.absent if side else ())


def _copy_rows(file: Checked, name: str, rows: NDArray[np.int64], new: Any) -> None:
    old = file.file[name]
    values = file.array(name)[rows]
    chunks = None
    if old.chunks is not None and values.size:
        chunks = tuple(min(c, s) for c, s in zip(old.chunks, values.shape, strict=True))
    copy = new.create_dataset(
        name,
        data=values,
        chunks=chunks,
        compression=old.compression if chunks else None,
        compression_opts=old.compression_opts if chunks else None,
        shuffle=old.shuffle if chunks else None,
        fletcher32=old.fletcher32 if chunks else None,
    )
    for attribute, value in old.attrs.items():
        copy.attrs[attribute] = value


def _observations(file: Checked, options: ReadOptions) -> Array:
    keys = options.observation_keys or ("observations",)
    parts = [file.array(key) for key in keys]
    if len(parts) == 1:
        return parts[0]
    if len({len(part) for part in parts}) != 1 or any(part.ndim > 2 for part in parts):
        shapes = {key: part.shape for key, part in zip(keys, parts, strict=True)}
        file.findings.refuse(
            "bad_shape", f"cannot be joined into one observation: {shapes}.", field="observations"
        )
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


def _optional(file: Checked, name: str) -> Array | None:
    return file.array(name) if name in file else None


def _extras(
    file: Checked, rows: int, used: set[str | None], side: Side | None, findings: Findings
) -> dict[str, Array]:
    extras = {}
    names = side.names if side else {}
    for path, node in file.datasets.items():
        if path in used or path.startswith((f"{GROUP}/", _METADATA)):
            continue
        shape = node.shape or ()
        if shape[:1] != (rows,) or is_image(shape[1:]) or not file.is_numeric(node):
            findings.notice(
                "extra_left_out",
                f"{path} (shape {shape}) is not one row of numbers per step and was left out.",
                field=path,
            )
            continue
        extras[names.get(path, path)] = file.array(path)
    return extras


def _metadata(file: Checked, findings: Findings) -> dict[str, Any]:
    """Attributes and `metadata/*` as JSON values; large ones, such as weights, are left out."""
    found = dict(file.attributes())
    for path, node in file.datasets.items():
        if not path.startswith(_METADATA):
            continue
        name = path.removeprefix(_METADATA)
        size = int(np.prod(node.shape or (), dtype=object))
        if node.shape is None or size > _SIMPLE:
            findings.notice("metadata_left_out", f"{path} is too large to show.", field=path)
        elif file.is_numeric(node):
            values = file.array(path)
            if np.isfinite(values).all():
                found[name] = values.tolist()
        else:
            words = file.words(path)
            found[name] = words if node.shape else words[0]
    return found


def _with_finals(trajectories: TrajectorySet, raw: Raw) -> TrajectorySet:
    """The row of `next_observations` at each last step is the final observation."""
    following = raw.extras[_NEXT]
    if following.shape != raw.observations.shape:
        return trajectories
    last = trajectories.starts + trajectories.lengths - 1
    return replace(
        trajectories,
        final_observations=following[last],
        has_final=np.ones(len(trajectories), dtype=np.bool_),
    )
