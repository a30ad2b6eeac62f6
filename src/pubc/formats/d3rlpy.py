"""d3rlpy replay buffers: four arrays per episode (version 2.1), or flat arrays (version 1).

d3rlpy keeps whether an episode ended in a terminal state, and nothing after its last
action. Everything else goes into the group `pubc`, which it passes over.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.column_shapes import to_flags
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.formats.episodes.episode_source import Episode, Layout
from pubc.formats.episodes.gather_episodes import gather
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

__all__ = ["EXTRA", "SLOW", "read", "write"]

EXTRA = None
SLOW = True
VERSION = "2.1"
_COLUMNS = ("observations", "actions", "rewards", "terminated")
_EXTRAS = f"{GROUP}/extras"
LAYOUT = Layout(
    observations="observations", terminals="", timeouts=None, is_extra=lambda path: False
)


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Read a buffer that `ReplayBuffer.dump` or version 1 wrote."""
    with open_checked(path, findings) as file:
        if "num_episodes" not in file:
            return assemble(_flat(file, options), options, findings)
        _check_version(file, findings)
        episodes = _episodes(file, findings)
        raw, _ = gather(file, episodes, LAYOUT, set(), options, findings)
        assert raw.lengths is not None
        last = np.cumsum(raw.lengths) - 1
        terminated = _terminated(file, episodes, findings)
        raw.terminals = _at(last[terminated], len(raw.actions))
        raw.timeouts = _at(last[~terminated], len(raw.actions))
        side = read_side(file, len(raw.actions), findings)
        if side is not None and side.lengths.tolist() == raw.lengths.tolist():
            _apply(file, side, raw, options)
    return assemble(raw, options, findings)


def write(path: Path, trajectories: TrajectorySet, *, overwrite: bool) -> None:
    """Write a new buffer of version 2.1."""
    extras = list(trajectories.columns.extras)
    place = places(extras, ())
    with new_file(path, overwrite=overwrite) as file:
        file.create_dataset("columns", data=list(_COLUMNS), dtype=h5py.string_dtype())
        file.create_dataset("num_episodes", data=len(trajectories))
        for number, trajectory in enumerate(trajectories):
            steps = trajectory.steps
            rewards = np.zeros(len(trajectory), np.float32)
            rewards = rewards if steps.rewards is None else np.asarray(steps.rewards)
            file[f"observations_{number}"] = steps.observations
            file[f"actions_{number}"] = steps.actions
            file[f"rewards_{number}"] = rewards[:, None]
            file[f"terminated_{number}"] = bool(steps.terminals[-1])
            file.check()
        file.create_dataset("version", data=VERSION, dtype=h5py.string_dtype())
        absent = ["rewards"] if trajectories.columns.rewards is None else []
        moved = {where: name for name, where in place.items() if where != name}
        write_side(file, trajectories, flags=True, absent=absent, names=moved)
        stream(file, trajectories, {f"extras/{n}": f"{_EXTRAS}/{place[n]}" for n in extras})


def _check_version(file: Checked, findings: Findings) -> None:
    found = file.words("version") if "version" in file else ["none"]
    if found != [VERSION]:
        findings.refuse(
            "bad_version",
            f"expected version {VERSION}, found {found[0]!r}, which d3rlpy itself no longer "
            "reads. Load and dump it again with the release that wrote it.",
            field="version",
        )


def _episodes(file: Checked, findings: Findings) -> list[Episode]:
    count = _whole_number(file, "num_episodes", findings)
    present = sum(bool(re.fullmatch(r"actions_\d+", name)) for name in file.datasets)
    if count != present:
        findings.refuse(
            "meta_conflict",
            f"the file says {count:,} episodes and holds the actions of {present:,}.",
            field="num_episodes",
        )
    if not count:
        findings.refuse("empty", "the buffer holds no episode.", field="num_episodes")
    episodes = []
    for number in range(count):
        leaves = {
            name: file.datasets[f"{name}_{number}"]
            for name in _COLUMNS
            if f"{name}_{number}" in file
        }
        if "observations" not in leaves and f"observations_{number}_0" in file:
            findings.refuse(
                "tuple_observation",
                "observations are a tuple of several arrays, of which d3rlpy does not say the "
                "names. Join them into one vector before the buffer is written.",
                field=f"observations_{number}_0",
            )
        episodes.append(Episode(number, leaves))
    return episodes


def _whole_number(file: Checked, name: str, findings: Findings) -> int:
    values = file.array(name)
    if values.size != 1 or values.dtype.kind not in "iu" or values.reshape(-1)[0] < 0:
        findings.refuse("bad_dtype", "expected one whole number.", field=name)
    return int(values.reshape(-1)[0])


def _terminated(file: Checked, episodes: list[Episode], findings: Findings) -> NDArray[np.bool_]:
    flags = []
    for episode in episodes:
        name = f"terminated_{episode.number}"
        values = file.array(name)
        if values.size != 1:
            findings.refuse("bad_shape", f"expected one flag, found {values.shape}.", field=name)
        flags.append(values.reshape(-1)[0])
    return to_flags(np.array(flags), "terminated", len(flags), findings)


def _at(positions: NDArray[np.int64], rows: int) -> NDArray[np.bool_]:
    flags = np.zeros(rows, dtype=np.bool_)
    flags[positions[positions >= 0]] = True
    return flags


def _apply(file: Checked, side: Side, raw: Raw, options: ReadOptions) -> None:
    """Let what pubc wrote beside the episodes speak for them."""
    raw.ids, raw.sources, raw.metadata = side.ids, side.sources, side.metadata
    raw.final_observations, raw.has_final = side.finals
    raw.terminals = side.arrays.get("terminals", raw.terminals)
    raw.timeouts = side.arrays.get("timeouts", raw.timeouts)
    if "rewards" in side.absent and options.reward_key is None:
        raw.rewards = None
    raw.extras = {
        side.names.get(path, path): file.array(node.name)
        for path, node in file.below(_EXTRAS).items()
    }


def _flat(file: Checked, options: ReadOptions) -> Raw:
    """Version 1: flat arrays, and `episode_terminals` at every end of an episode."""
    terminals = file.array("terminals")
    timeouts: Array | None = None
    if "episode_terminals" in file:
        rows = len(terminals)
        ends = to_flags(file.array("episode_terminals"), "episode_terminals", rows, file.findings)
        timeouts = ends & ~to_flags(terminals, "terminals", rows, file.findings)
    keys: tuple[Any, ...] = options.observation_keys or ("observations",)
    return Raw(
        observations=file.array(str(keys[0])),
        actions=file.array(options.action_key or "actions"),
        rewards=file.array(options.reward_key or "rewards"),
        terminals=terminals,
        timeouts=timeouts,
    )
