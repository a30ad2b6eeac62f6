"""New robomimic files, laid out as the library's own loader expects them."""

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
from pubc.formats.hdf5.hdf5_write import new_file, places, write_side
from pubc.formats.robomimic.robomimic_masks import mask_array
from pubc.trajectory import Array, Trajectory, TrajectorySet

__all__ = ["OWN", "write"]

OWN = ("obs", "next_obs", "actions", "rewards", "dones")
"""Names in a demonstration that the layout defines."""


def write(path: Path, trajectories: TrajectorySet, *, overwrite: bool) -> None:
    """Write a new file; sources become masks, recorded observation keys their own arrays."""
    names = _new_names(trajectories)
    place = places(list(trajectories.columns.extras), OWN)
    record = trajectories.metadata.get(PARTS)
    has = trajectories.has_final
    with new_file(path, overwrite=overwrite) as file:
        data = file.create_group("data")
        data.attrs["total"] = trajectories.steps
        environment = trajectories.metadata.get("env_args")
        if environment is not None:
            known = isinstance(environment, str)
            data.attrs["env_args"] = environment if known else json.dumps(environment)
        notes = segment_facts(trajectories)
        for number, (name, trajectory) in enumerate(zip(names, trajectories, strict=True)):
            following = has is not None and bool(np.all(has))
            _write_demo(data.create_group(name), trajectory, place, record, following=following)
            data[name].attrs.update(notes[number] if notes else {})
            file.check()
        if trajectories.sources is not None:
            _write_masks(file, trajectories.sources.tolist(), names)
        absent = ["rewards"] if trajectories.columns.rewards is None else []
        moved = {where: name for name, where in place.items() if where != name}
        write_side(file, trajectories, flags=True, absent=absent, names=moved)


def _new_names(trajectories: TrajectorySet) -> list[str]:
    """The ids where they are robomimic's own and in its order, else numbers."""
    ids = trajectories.ids.tolist()
    numbers = [int(m.group(1)) for word in ids if (m := re.fullmatch(r"demo_(0|[1-9]\d*)", word))]
    ordered = len(numbers) == len(ids) and numbers == sorted(set(numbers))
    return ids if ordered else [f"demo_{number}" for number in range(len(ids))]


def _write_demo(
    group: h5py.Group,
    trajectory: Trajectory,
    place: Mapping[str, str],
    record: Any,
    *,
    following: bool,
) -> None:
    steps = trajectory.steps
    group.attrs["num_samples"] = len(trajectory)
    group["actions"] = steps.actions
    rewards = steps.rewards
    group["rewards"] = np.zeros(len(trajectory)) if rewards is None else rewards
    group["dones"] = steps.terminals.astype(np.int64)
    _write_observations(group, "obs", steps.observations, record)
    if following and trajectory.final_observation is not None:
        last = np.asarray(trajectory.final_observation, dtype=steps.observations.dtype)[None]
        _write_observations(
            group, "next_obs", np.concatenate([steps.observations[1:], last]), record
        )
    for name, where in place.items():
        group[where] = steps.extras[name]


def _write_observations(group: h5py.Group, name: str, values: Array, record: Any) -> None:
    parts = split(values, record) if record else None
    for key, piece in (parts or {"flat": values}).items():
        group[f"{name}/{key}"] = piece


def _write_masks(file: h5py.File, sources: list[str], names: list[str]) -> None:
    words = list(dict.fromkeys(sources))
    place = places(words, (), prefix="mask/")
    for word in words:
        members = [n for n, source in zip(names, sources, strict=True) if source == word]
        file[place[word]] = mask_array(members)
