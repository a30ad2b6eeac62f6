"""TriFinger RL datasets: an LMDB file that holds a zarr group.

`episode_ends` is the index of the last step of each trajectory, inclusive. There are no
terminals. Observations come as they were stored: the dataset's own loader clips them to the
bounds of its environment, pubc does not.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.findings import Findings
from pubc.formats.core.named_parts import PARTS, join, record_arrays
from pubc.formats.core.options import ReadOptions
from pubc.formats.zarr.lmdb_pages import LmdbFile
from pubc.formats.zarr.zarr_describe import describe
from pubc.formats.zarr.zarr_keys import FolderKeys, Keys
from pubc.formats.zarr.zarr_read import cut_to, ends_to_lengths, load, load_named
from pubc.trajectory import Array, TrajectorySet

__all__ = ["EXTRA", "SLOW", "read"]

EXTRA = "zarr"
SLOW = True
_IMAGES = ("images", "obs_to_image_index")


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Read `data.mdb`, the folder around it, or the same group as plain files."""
    with _open(path) as keys:
        arrays = describe(keys, findings)
        ends = load_named(keys, arrays, "episode_ends", options, findings)
        names = options.observation_keys or ("observations",)
        parts = [load_named(keys, arrays, name, options, findings) for name in names]
        flat = [part.reshape(len(part), -1) if part.ndim else part for part in parts]
        action = options.action_key or "actions"
        reward = options.reward_key or "rewards"
        actions = load_named(keys, arrays, action, options, findings)
        optional = {
            name: load(keys, arrays[name], options, findings, needed=False)
            for name in (reward, "timeouts")
            if name in arrays and name != options.reward_key
        }
        if options.reward_key is not None:
            optional[reward] = load_named(keys, arrays, reward, options, findings)
        used = {*names, action, reward, "timeouts", "episode_ends"}
        rows = len(flat[0])
        extras = {
            name: load(keys, array, options, findings, needed=False)
            for name, array in arrays.items()
            if name not in used and name not in _IMAGES and array.shape[:1] == (rows,)
        }
    for name in _IMAGES:
        if name in arrays:
            findings.notice("image_left_out", f"{name} belongs to images; left out.", field=name)
    lengths = ends_to_lengths(_exclusive(ends, findings), rows, "episode_ends", options, findings)
    timeouts = optional.get("timeouts")
    for name in (reward, "timeouts"):
        if optional.get(name) is None:
            findings.warn("missing_key", "every TriFinger set has one, this has none.", field=name)
    _compare(timeouts, ends, findings)
    rewards = optional.get(reward)
    for name, column in (("observations", flat[0]), (action, actions), (reward, rewards)):
        if column is not None and column.dtype.kind != "f":
            findings.warn(
                "odd_dtype",
                f"every TriFinger set has fractions here, this has {column.dtype}.",
                field=name,
            )
    raw = Raw(
        observations=join(flat),
        actions=actions,
        rewards=rewards,
        terminals=None,
        timeouts=timeouts,
        extras=extras,
        metadata={PARTS: record_arrays(names, parts)},
    )
    return assemble(cut_to(lengths, raw), options, findings)


@contextlib.contextmanager
def _open(path: Path) -> Iterator[Keys]:
    file = path / "data.mdb" if path.is_dir() else path
    if not file.exists():
        yield FolderKeys(path)
        return
    with LmdbFile(file) as keys:
        yield keys


def _exclusive(ends: Array, findings: Findings) -> Array:
    if ends.dtype.kind not in "iu":
        findings.refuse("bad_dtype", f"must be integers. Got {ends.dtype}.", field="episode_ends")
    return ends.astype(np.int64) + 1


def _compare(timeouts: Array | None, ends: Array, findings: Findings) -> None:
    """Time-outs elsewhere than at the ends are odd, and said; the ends decide."""
    if timeouts is None or timeouts.ndim != 1:
        return
    marked = np.flatnonzero(timeouts)
    odd = np.setdiff1d(marked, ends)
    if len(odd):
        findings.warn(
            "timeouts_elsewhere",
            f"{len(odd):,} time-outs are not at an episode end (first: step {int(odd[0]):,}); "
            "episode_ends decides.",
            field="timeouts",
            count=len(odd),
            first=int(odd[0]),
        )
