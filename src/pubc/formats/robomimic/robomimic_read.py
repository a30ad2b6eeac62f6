"""robomimic HDF5: `data/demo_N` with named observations, and filter keys under `mask/`.

robomimic knows `dones` and no timeouts, and as many observations as actions. Exact end
marks, final observations and names go into the group `pubc`, which it passes over.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.column_shapes import to_flags
from pubc.formats.core.findings import Findings
from pubc.formats.core.named_parts import PARTS, Part, record_parts
from pubc.formats.core.options import ReadOptions
from pubc.formats.core.selection import Selection
from pubc.formats.episodes.episode_source import Episode, Layout
from pubc.formats.episodes.gather_episodes import gather
from pubc.formats.hdf5.hdf5_disk import new_hdf5
from pubc.formats.hdf5.hdf5_read import Checked, open_checked
from pubc.formats.hdf5.hdf5_write import GROUP, Side, new_file, read_side, write_side
from pubc.formats.robomimic.robomimic_masks import mask_array, read_masks, sources_from_masks
from pubc.formats.robomimic.robomimic_write import OWN, write
from pubc.storage import atomic_file
from pubc.trajectory import TrajectorySet

__all__ = ["EXTRA", "SLOW", "read", "subset", "write", "write_mask"]

EXTRA = None
SLOW = True
KEEP = "pubc_keep"
"""Name of the mask that holds a selection."""
BOUNDS = (np.array(-1.0), np.array(1.0))
"""robomimic takes actions to be normalised; its own tools stop at others."""
LAYOUT = Layout(
    observations="obs",
    terminals="dones",
    timeouts=None,
    is_extra=lambda path: path.split("/")[0] not in OWN,
)
_DEMO = re.compile(r"data/demo_(0|[1-9]\d{0,8})")


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Read the demonstrations in the order of their numbers."""
    with _open(path, findings) as (file, episodes):
        demos = [f"demo_{episode.number}" for episode in episodes]
        raw, parts = gather(file, episodes, LAYOUT, set(), options, findings)
        assert raw.lengths is not None
        if options.action_key is None:
            raw.action_bounds = BOUNDS
        _check_counts(file, demos, raw, options, findings)
        side = _side(file, raw, findings)
        masks = read_masks(file)
        raw.metadata = _metadata(file, parts)
        if side is None or options.source_key:
            raw.sources = sources_from_masks(masks, demos, options.source_key, findings)
        raw.ids = demos
        _ends(raw, findings)
        _finals(file, episodes, parts, raw)
    if side is not None:
        _apply(side, raw, options)
    return assemble(raw, options, findings)


def subset(selection: Selection, target: Path, *, overwrite: bool) -> None:
    """Copy the kept demonstrations under their old names, and the masks as far as they go."""
    chosen = _in_order(selection).read(read)
    findings = Findings(selection.source)
    with (
        _open(selection.source, findings) as (file, episodes),
        new_file(target, overwrite=overwrite) as new,
    ):
        file.check_heaps()
        demos = _demos_of(file, episodes, chosen, findings)
        data = new.create_group("data")
        for name, value in file.file["data"].attrs.items():
            data.attrs[name] = value
        data.attrs["total"] = chosen.steps
        for demo in demos:
            file.file.copy(f"data/{demo}", data, demo)
            new.check()
        for name in file.file:
            if name not in ("data", "mask", GROUP):
                file.file.copy(name, new, name)
        kept_names = set(demos)
        for name, members in read_masks(file).items():
            left = [member for member in members if member in kept_names]
            if left:
                new[f"mask/{name}"] = mask_array(left)
        side = read_side(file, sum(e.rows("actions") for e in episodes), findings)
        if side is not None:
            write_side(new, chosen, flags=True, absent=side.absent, names=side.names)


def write_mask(
    selection: Selection, target: Path, *, name: str = KEEP, overwrite: bool = False
) -> None:
    """Copy a file and add a mask that names the kept demonstrations.

    robomimic trains on it where `train.hdf5_filter_key` is the name of the mask.

    Args:
        selection: The file and the demonstrations.
        target: The copy.
        name: Name of the mask.
        overwrite: Replace an existing target.
    """
    chosen = _in_order(selection).read(read)
    findings = Findings(selection.source)
    with _open(selection.source, findings) as (file, episodes):
        demos = _demos_of(file, episodes, chosen, findings)
    with atomic_file(target, overwrite=overwrite) as temporary:
        shutil.copyfile(selection.source, temporary)
        with new_hdf5(temporary, edit=True) as copy:
            masks = copy.require_group("mask")
            if name in masks:
                del masks[name]
            masks[name] = mask_array(demos)


def _in_order(selection: Selection) -> Selection:
    """Demonstrations keep their numbers, and with them their order."""
    return replace(selection, kept=np.sort(selection.kept))


@contextmanager
def _open(path: Path, findings: Findings) -> Iterator[tuple[Checked, list[Episode]]]:
    with open_checked(path, findings) as file:
        found: dict[str, dict[str, Any]] = {}
        for group in file.groups:
            if _DEMO.fullmatch(group):
                found[group] = {}
        for name, node in file.datasets.items():
            group = "/".join(name.split("/")[:2])
            if group in found:
                found[group][name.removeprefix(f"{group}/")] = node
        episodes = [Episode(int(name.rpartition("_")[2]), found[name]) for name in found]
        if not episodes:
            findings.refuse("empty", "the file holds no demonstration.", field="data/demo_0")
        yield file, sorted(episodes, key=lambda episode: episode.number)


def _check_counts(
    file: Checked, demos: list[str], raw: Raw, options: ReadOptions, findings: Findings
) -> None:
    """`total` and `num_samples` that disagree with the arrays mean a broken copy."""
    assert raw.lengths is not None
    said = {"data@total": (file.attribute("data", "total"), int(raw.lengths.sum()))}
    for demo, length in zip(demos, raw.lengths.tolist(), strict=True):
        said[f"{demo}@num_samples"] = (file.attribute(f"data/{demo}", "num_samples"), length)
    wrong = {
        name: pair for name, pair in said.items() if pair[0] is not None and pair[0] != pair[1]
    }
    if not wrong:
        return
    name, (told, found) = next(iter(wrong.items()))
    message = f"the attribute says {told} steps, the arrays hold {found:,}"
    if options.trust != "data":
        findings.refuse(
            "meta_conflict",
            message + f" ({len(wrong):,} such attributes). --trust data goes by the arrays.",
            field=name,
            count=len(wrong),
        )
    findings.repair("meta_conflict", message + "; taken.", field=name, count=len(wrong))


def _side(file: Checked, raw: Raw, findings: Findings) -> Side | None:
    side = read_side(file, len(raw.actions), findings)
    if side is None or raw.lengths is None or side.lengths.tolist() == raw.lengths.tolist():
        return side
    findings.warn("stale_group", "does not fit the demonstrations; left out.", field=GROUP)
    return None


def _apply(side: Side, raw: Raw, options: ReadOptions) -> None:
    """Let what pubc wrote beside the demonstrations speak for them."""
    raw.ids = side.ids
    if not options.source_key:
        raw.sources = side.sources
    if not options.observation_keys:
        raw.final_observations, raw.has_final = side.finals
        raw.metadata = side.metadata
    if "rewards" in side.absent and options.reward_key is None:
        raw.rewards = None
    raw.terminals = side.arrays.get("terminals", raw.terminals)
    raw.timeouts = side.arrays.get("timeouts", raw.timeouts)
    raw.extras = {side.names.get(path, path): column for path, column in raw.extras.items()}


def _ends(raw: Raw, findings: Findings) -> None:
    """Take the last step alone as an end: success is marked wherever it holds."""
    assert raw.lengths is not None
    rows = len(raw.actions)
    last = np.cumsum(raw.lengths)[raw.lengths > 0] - 1
    done = to_flags(raw.terminals, "dones", rows, findings)
    inside = np.ones(rows, dtype=np.bool_)
    inside[last] = False
    if early := int(np.count_nonzero(done & inside)):
        findings.notice(
            "dones_inside",
            f"{early:,} steps before the last of their demonstration are marked done; a "
            "demonstration ends at its last step.",
            field="dones",
        )
    raw.terminals = done & ~inside
    raw.timeouts = ~done & ~inside


def _finals(file: Checked, episodes: list[Episode], parts: list[Part], raw: Raw) -> None:
    """The last rows of `next_obs` are the observations after the last actions."""
    paths = [f"next_obs/{part.key}" for part in parts]
    if not parts or any(path not in e.leaves for e in episodes for path in paths):
        return
    final = np.zeros((len(episodes), raw.observations.shape[1]), dtype=raw.observations.dtype)
    for row, episode in enumerate(episodes):
        pieces = []
        for path, part in zip(paths, parts, strict=True):
            values = file.array(episode.leaves[path].name)
            if values.shape != (episode.rows("actions"), *part.shape) or not len(values):
                return
            pieces.append(values[-1].reshape(-1))
        final[row] = np.concatenate(pieces)
    raw.final_observations = final
    raw.has_final = np.ones(len(episodes), dtype=np.bool_)


def _metadata(file: Checked, parts: list[Part]) -> dict[str, Any]:
    found = file.attributes("data")
    if parts:
        found[PARTS] = record_parts(parts)
    try:
        environment = json.loads(str(found.get("env_args", "")))
        found["env_args"] = environment
    except (ValueError, RecursionError):
        pass  # shown as the text it is
    return found


def _demos_of(
    file: Checked, episodes: list[Episode], chosen: TrajectorySet, findings: Findings
) -> list[str]:
    """Names in the file of the chosen demonstrations."""
    demos = [f"demo_{episode.number}" for episode in episodes]
    side = read_side(file, sum(episode.rows("actions") for episode in episodes), findings)
    ids = side.ids if side is not None and len(side.ids) == len(demos) else demos
    named = dict(zip(ids, demos, strict=True))
    return [named[str(word)] for word in chosen.ids]
