"""New Minari datasets in the HDF5 layout, written with h5py alone."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from pubc.formats.core.named_parts import PARTS, split
from pubc.formats.core.provenance import segment_facts
from pubc.formats.hdf5.hdf5_disk import new_hdf5
from pubc.formats.hdf5.hdf5_write import places
from pubc.formats.minari import minari_spaces as spaces
from pubc.storage import atomic_folder, write_json
from pubc.trajectory import Array, Trajectory, TrajectorySet

__all__ = ["MAIN", "write"]

MAIN = "main_data.hdf5"
_ID = re.compile(r"(?:[-_\w][-_\w/]*[-_\w]/)?[-_\w]+-v\d+")
# The oldest release that wrote this layout, so that every later one accepts it.
_VERSION = "0.5.0"


def write(
    path: Path,
    trajectories: TrajectorySet,
    *,
    overwrite: bool,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write a new dataset in the HDF5 layout, with further facts for its manifest.

    A trajectory without a final observation repeats its last one there, since readers of
    Minari count on the extra row; the attribute `pubc_no_final` tells.
    """
    extras = list(trajectories.columns.extras)
    inner = {name: name.removeprefix("infos/") for name in extras}
    if len(set(inner.values())) < len(inner):
        inner = {name: name for name in extras}
    found = places(list(inner.values()), (), prefix="infos/")
    paths = {name: found[short] for name, short in inner.items()}
    shape = (1, *trajectories.columns.observations.shape[1:])
    probe = np.zeros(shape, dtype=trajectories.columns.observations.dtype)
    record = trajectories.metadata.get(PARTS)
    with atomic_folder(path, kind="minari", overwrite=overwrite, about=about) as folder:
        data = folder / "data"
        data.mkdir()
        with new_hdf5(data / MAIN) as file:
            notes = segment_facts(trajectories)
            for number, trajectory in enumerate(trajectories):
                group = file.create_group(f"episode_{number}")
                _write_episode(group, number, trajectory, paths, record)
                group.attrs.update(notes[number] if notes else {})
                file.check()
        parts = split(probe, record) if record else None
        document = _description(path, trajectories, parts)
        names = {place: name for name, place in paths.items() if place != name}
        document["pubc"] = {
            "metadata": dict(trajectories.metadata),
            "absent": [
                name
                for name, values in (
                    ("rewards", trajectories.columns.rewards),
                    ("final_observations", trajectories.final_observations),
                )
                if values is None
            ],
            "names": names,
        }
        document["dataset_size"] = round((data / MAIN).stat().st_size / 1e6, 1)
        write_json(data / "metadata.json", document)


def _write_episode(
    group: h5py.Group,
    number: int,
    trajectory: Trajectory,
    paths: Mapping[str, str],
    record: Any,
) -> None:
    steps, final = trajectory.steps, trajectory.final_observation
    group.attrs["id"] = number
    group.attrs["total_steps"] = len(trajectory)
    group.attrs["pubc_id"] = trajectory.id
    if trajectory.source is not None:
        group.attrs["source"] = trajectory.source
    if final is None:
        group.attrs["pubc_no_final"] = True
        final = steps.observations[-1]
    last = np.asarray(final, dtype=steps.observations.dtype)[None]
    observations = np.concatenate([steps.observations, last])
    parts = split(observations, record) if record else None
    for path, piece in (parts or {"": observations}).items():
        group[f"observations/{path}" if path else "observations"] = piece
    group["actions"] = steps.actions
    rewards = steps.rewards
    group["rewards"] = np.zeros(len(trajectory)) if rewards is None else rewards
    group["terminations"] = steps.terminals
    group["truncations"] = steps.timeouts
    for name, path in paths.items():
        group[path] = steps.extras[name]


def _description(
    path: Path, trajectories: TrajectorySet, parts: dict[str, Array] | None
) -> dict[str, Any]:
    """`metadata.json`: facts of a source that was Minari too are kept, the rest is ours."""
    known = trajectories.metadata
    columns = trajectories.columns
    facts = {
        key: known[key]
        for key in (
            "env_spec", "eval_env_spec", "author", "author_email", "code_permalink",
            "algorithm_name", "description", "ref_min_score", "ref_max_score", "requirements",
        )
        if key in known and "minari_version" in known
    }  # fmt: skip
    name = str(known.get("dataset_id", ""))
    if not _ID.fullmatch(name):
        name = re.sub(r"[^-_\w]+", "-", path.name).strip("-") or "dataset"
        name = name if re.search(r"-v\d+$", name) else f"{name}-v0"
    observation = spaces.parse(known.get("observation_space"))
    if parts:
        leaves = {key: spaces.box(part.shape[1:], part.dtype) for key, part in parts.items()}
        observation = spaces.nested(leaves)
    elif spaces.is_discrete(observation) or not spaces.describes(observation, columns.observations):
        observation = spaces.box(columns.observations.shape[1:], columns.observations.dtype)
    action = spaces.parse(known.get("action_space"))
    if spaces.is_discrete(action) or not spaces.describes(action, columns.actions):
        action = spaces.box(columns.actions.shape[1:], columns.actions.dtype)
    return {
        "total_episodes": len(trajectories),
        "total_steps": trajectories.steps,
        "data_format": "hdf5",
        "observation_space": json.dumps(observation),
        "action_space": json.dumps(action),
        "dataset_id": name,
        "minari_version": _VERSION,
        **facts,
    }
