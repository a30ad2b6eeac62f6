"""Diffusion-Policy replay buffers: a zarr group, as a folder or a zip archive.

`data/*` holds one row per step, `meta/episode_ends` the exclusive end of each trajectory. The
observation is `data/state` where there is one, else every vector but the action in the order
of the names; images are left out. Such buffers mark neither terminals nor time-outs.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.findings import Findings
from pubc.formats.core.named_parts import PARTS, join, record_arrays
from pubc.formats.core.options import ReadOptions
from pubc.formats.zarr.zarr_describe import Described, describe
from pubc.formats.zarr.zarr_keys import FolderKeys, Keys, ZipKeys
from pubc.formats.zarr.zarr_read import cut_to, ends_to_lengths, load, load_named
from pubc.trajectory import Array, TrajectorySet

__all__ = ["EXTRA", "SLOW", "read"]

EXTRA = "zarr"
SLOW = True
_ENDS = "meta/episode_ends"


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Read a replay buffer; a zip archive is never extracted."""
    if path.is_dir():
        return _read(FolderKeys(path), options, findings)
    with contextlib.closing(ZipKeys(path)) as keys:
        return _read(keys, options, findings)


def _read(keys: Keys, options: ReadOptions, findings: Findings) -> TrajectorySet:
    every = describe(keys, findings)
    arrays = {n.removeprefix("data/"): a for n, a in every.items() if n.startswith("data/")}
    if _ENDS not in every:
        findings.refuse(
            "missing_key",
            f"no such array. The group holds: {', '.join(every) or 'nothing'}.",
            field=_ENDS,
        )
    action = options.action_key or "action"
    reward = options.reward_key or next((n for n in ("reward", "rewards") if n in arrays), None)
    names = _observation_names(arrays, action, options, findings)
    parts = [load_named(keys, arrays, name, options, findings, below="data/") for name in names]
    rows = len(parts[0])
    flat = [_rows(part, name, rows, findings) for part, name in zip(parts, names, strict=True)]
    actions = load_named(keys, arrays, action, options, findings, below="data/")
    rewards = (
        None
        if reward is None
        else load_named(keys, arrays, reward, options, findings, below="data/")
    )
    ends = load(keys, every[_ENDS], options, findings)
    lengths = ends_to_lengths(ends, rows, _ENDS, options, findings)
    raw = Raw(
        observations=join(flat),
        actions=actions,
        rewards=rewards,
        terminals=None,
        timeouts=None,
        extras=_extras(keys, arrays, {*names, action, reward}, rows, options, findings),
        metadata={PARTS: record_arrays(names, parts)},
    )
    return assemble(cut_to(lengths, raw), options, findings)


def _observation_names(
    arrays: dict[str, Described], action: str, options: ReadOptions, findings: Findings
) -> tuple[str, ...]:
    if options.observation_keys:
        return options.observation_keys
    if "state" in arrays:
        return ("state",)
    vectors = tuple(
        name
        for name, array in arrays.items()
        if name != action and len(array.shape) == 2 and array.dtype is not None
    )
    if not vectors:
        findings.refuse(
            "missing_key",
            f"no vector to observe. Name one with --observation-keys; there are: "
            f"{', '.join(arrays) or 'none'}.",
            field="data/state",
        )
    findings.notice(
        "observation_keys",
        f"no data/state; the observation is {', '.join(vectors)}, in this order.",
        field="observations",
    )
    return vectors


def _rows(part: Array, name: str, rows: int, findings: Findings) -> Array:
    if not part.ndim or len(part) != rows:
        findings.refuse(
            "unequal_lengths",
            f"shape {part.shape}, where the observation has {rows:,} steps.",
            field=f"data/{name}",
            index=min(rows, len(part) if part.ndim else 0),
        )
    return part.reshape(rows, -1)


def _extras(
    keys: Keys,
    arrays: dict[str, Described],
    used: set[str | None],
    rows: int,
    options: ReadOptions,
    findings: Findings,
) -> dict[str, Array]:
    """Whatever else has one row of numbers per step; images are not even decoded."""
    found = {}
    for name, array in arrays.items():
        if name in used:
            continue
        if len(array.shape) >= 3 or array.dtype is None or array.shape[:1] != (rows,):
            findings.notice(
                "image_left_out",
                f"data/{name} of shape {array.shape} is no vector per step; left out.",
                field=f"data/{name}",
            )
            continue
        found[name] = load(keys, array, options, findings, needed=False)
    return found
