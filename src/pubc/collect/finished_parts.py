"""Finished trajectories on disk before the mixture is put together.

A part holds a few consecutive trajectories of one source in one safetensors file, written
whole or not at all, that proves itself. A killed run keeps its parts; the same command plays only
what is missing. Each trajectory has one observation more than steps: the one after its last action,
which is also what a shorter cut of it ends with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pubc.collect.lapses import EXPERT_STEPS
from pubc.errors import DataError
from pubc.storage import utf8_name
from pubc.tensor_files import load_arrays, proves_itself, save_arrays
from pubc.trajectory import Array, Columns, Trajectory

__all__ = ["Index", "part_path", "parts_of", "read_index", "read_trajectory", "write_part"]

_UNSAFE = re.compile(r"[^A-Za-z0-9_]")
_NAME = re.compile(r"-(?P<first>\d+)x(?P<count>\d+)\.safetensors$")


@dataclass(frozen=True, slots=True)
class Index:
    """Which trajectories a part holds."""

    path: Path
    """The file."""
    lengths: tuple[int, ...]
    """Steps of each trajectory."""
    terminals: tuple[bool, ...]
    """Whether each ended as terminal; as a timeout otherwise."""


def part_path(folder: Path, number: int, source: str, first: int, count: int) -> Path:
    """Where a part belongs: source `number`, `count` trajectories from index `first` on."""
    return folder / f"{_stem(number, source)}{first:07d}x{count}.safetensors"


def parts_of(folder: Path, number: int, source: str) -> Iterator[tuple[int, int, Path]]:
    """The parts of one source in a folder: first index, count and path, in order."""
    for path in sorted(folder.glob(f"{_stem(number, source)}*.safetensors")):
        if named := _NAME.search(path.name):
            yield int(named["first"]), int(named["count"]), path


def _stem(number: int, source: str) -> str:
    return f"{number:02d}-{_UNSAFE.sub('_', source)}-"


def write_part(path: Path, trajectories: Sequence[Trajectory]) -> None:
    """Write a part, whole or not at all.

    A process that outlived its killed parent may have written the same part: same bytes.

    Raises:
        UsageError: Something else lies there.
    """
    if proves_itself(path):
        return
    steps = [trajectory.steps for trajectory in trajectories]
    rows = [
        row
        for trajectory in trajectories
        for row in (trajectory.steps.observations, np.asarray(trajectory.final_observation)[None])
    ]
    arrays = {
        "observations": np.concatenate(rows),
        "actions": np.concatenate([columns.actions for columns in steps]),
        "rewards": np.concatenate([np.asarray(columns.rewards) for columns in steps]),
        "lengths": np.array([len(trajectory) for trajectory in trajectories], dtype=np.int64),
        "terminals": np.array([columns.terminals[-1] for columns in steps]),
    }
    if all(EXPERT_STEPS in columns.extras for columns in steps):
        arrays[EXPERT_STEPS] = np.concatenate([columns.extras[EXPERT_STEPS] for columns in steps])
    save_arrays(path, arrays, {"kind": "part"}, overwrite=False)


def read_index(path: Path) -> Index | None:
    """What a part holds, or None where it is absent or no part, and must be played."""
    try:
        arrays, _ = load_arrays(path)
        lengths, terminals = arrays["lengths"], arrays["terminals"]
    except (DataError, KeyError):
        return None
    return Index(path, tuple(lengths.tolist()), tuple(terminals.tolist()))


def read_trajectory(part: Index, position: int, *, most: int, source: str) -> Trajectory:
    """One trajectory of a part, cut to at most `most` steps; a cut is a timeout.

    Raises:
        DataError: The part changed under our hands.
    """
    from safetensors import SafetensorError, safe_open

    start, length = sum(part.lengths[:position]), min(part.lengths[position], most)
    above = start + position
    try:
        with utf8_name(part.path) as name, safe_open(name, framework="numpy") as file:
            observations: Array = file.get_slice("observations")[above : above + length + 1]
            actions: Array = file.get_slice("actions")[start : start + length]
            rewards: Array = file.get_slice("rewards")[start : start + length]
            extras: dict[str, Array] = {}
            if EXPERT_STEPS in file.keys():  # noqa: SIM118 - not a dictionary
                extras[EXPERT_STEPS] = file.get_slice(EXPERT_STEPS)[start : start + length]
    except (SafetensorError, OSError) as error:
        raise DataError(
            f"{part.path}: not readable any more ({error}). Delete it and run the same command "
            "again.",
            code="damaged_part",
        ) from None
    terminals, timeouts = np.zeros((2, length), dtype=np.bool_)
    whole = length == part.lengths[position]
    terminals[-1] = whole and part.terminals[position]
    timeouts[-1] = not terminals[-1]
    return Trajectory(
        id=source,
        steps=Columns(observations[:-1], actions, rewards, terminals, timeouts, extras),
        final_observation=observations[-1],
        source=source,
    )
