"""RLDS datasets in TFDS folders of tfrecords: one Example is one trajectory.

`features.json` gives the shapes; lists in an Example are flat. Observations and actions may
be nested: their vectors are concatenated in the order of `features.json`, which is recorded
in the metadata. Images and texts are left out. In strict RLDS the last step only carries the
final observation (`last_step=drop`); demonstration sets usually keep its action valid.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import DataError
from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.column_shapes import to_flags
from pubc.formats.core.findings import Findings
from pubc.formats.core.named_parts import PARTS, Part, record_parts
from pubc.formats.core.options import ReadOptions
from pubc.formats.core.selection import Selection
from pubc.formats.rlds.rlds_features import Leaf, choose, names_of, read_leaves
from pubc.formats.rlds.rlds_files import compare_counts, declared_counts, record_files
from pubc.formats.rlds.rlds_subset import copy_records
from pubc.formats.rlds.tfrecords import Feature, parse_example, read_records
from pubc.trajectory import Array, TrajectorySet

__all__ = ["EXTRA", "SLOW", "read", "subset"]

EXTRA = "rlds"
SLOW = True
_FLAGS = ("steps/is_first", "steps/is_last", "steps/is_terminal")


@dataclass(slots=True)
class Episodes:
    """What was read so far."""

    columns: dict[str, list[Array]]
    undeclared: set[str] = field(default_factory=set)
    """Features of steps that `features.json` does not know."""
    ids: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Read every split and shard of a TFDS folder."""
    leaves = read_leaves(path, findings)
    observation, action = choose(leaves, options, findings)
    chosen = _vectors(leaves, [*observation, *action], findings)
    episodes = Episodes({name: [] for name in chosen})
    promised = declared_counts(path)
    for split, number, file in record_files(path, options, findings):
        before = len(episodes.ids)
        _read_file(file, split, chosen, episodes, options, findings)
        told = promised.get((split, number))
        compare_counts(file.name, told, len(episodes.ids) - before, options, findings)
    if not episodes.ids:
        findings.refuse("empty", "the records hold no trajectory.", field="steps")
    undeclared = sorted(episodes.undeclared - set(leaves))
    if undeclared:
        findings.warn(
            "undeclared_feature",
            "the records hold it, features.json does not declare it; left out.",
            field=undeclared[0],
            count=len(undeclared),
        )
    columns = {name: np.concatenate(parts) for name, parts in episodes.columns.items()}
    extra_flags = {n for n, leaf in chosen.items() if leaf.dtype == "bool"} - set(_FLAGS)
    for name in extra_flags:
        columns[name] = to_flags(columns[name], name, len(columns[name]), findings)
    reward = f"steps/{options.reward_key or 'reward'}"
    if options.reward_key is not None and reward not in columns:
        findings.refuse(
            "missing_key", f"no such feature. There are: {names_of(leaves)}", field=reward
        )
    lengths = np.array(episodes.lengths, dtype=np.int64)
    terminals, timeouts = _ends(columns, lengths, options, findings)
    used = {*(leaf.name for leaf in (*observation, *action)), reward, *_FLAGS}
    raw = Raw(
        observations=_join(columns, observation),
        actions=_join(columns, action),
        rewards=columns.get(reward),
        terminals=terminals,
        timeouts=timeouts,
        lengths=lengths,
        ids=episodes.ids,
        sources=episodes.sources or None,
        extras={n.removeprefix("steps/"): c for n, c in columns.items() if n not in used},
        metadata={
            PARTS: record_parts([_part(leaf, columns) for leaf in observation]),
            "action_parts": record_parts([_part(leaf, columns) for leaf in action]),
        },
    )
    if options.last_step == "drop":
        _drop_last(raw, lengths)
    return assemble(raw, options, findings)


def subset(selection: Selection, target: Path, *, overwrite: bool) -> None:
    """Copy the records of the kept trajectories as they are."""
    ids = [str(name) for name in selection.read(read).ids]
    copy_records(selection.source, target, ids, selection.options, overwrite=overwrite)


def _vectors(leaves: dict[str, Leaf], asked: list[Leaf], findings: Findings) -> dict[str, Leaf]:
    """What is read of every step: what was asked for, and whatever else is numbers."""
    chosen = {leaf.name: leaf for leaf in asked}
    for leaf in leaves.values():
        if leaf.name.startswith("steps/") and leaf.is_vector:
            chosen.setdefault(leaf.name, leaf)
        elif leaf.name.startswith("steps/"):
            findings.notice(
                "image_left_out",
                f"{leaf.name} ({leaf.dtype}) is no vector of numbers; left out.",
                field=leaf.name,
            )
    return chosen


def _read_file(
    file: Path,
    split: str,
    chosen: dict[str, Leaf],
    episodes: Episodes,
    options: ReadOptions,
    findings: Findings,
) -> None:
    count = sum(name.startswith(f"{split}/") for name in episodes.ids)
    try:
        for number, record in enumerate(read_records(file)):
            place = f"{file.name}, record {number}"
            try:
                example = parse_example(record)
            except ValueError as error:
                findings.refuse("bad_file", f"{place}: no Example ({error}).", field=file.name)
            episodes.undeclared.update(name for name in example if name.startswith("steps/"))
            columns = _columns(example, chosen, place, number, findings)
            for name, column in columns.items():
                episodes.columns[name].append(column)
            episodes.lengths.append(len(next(iter(columns.values()))))
            episodes.ids.append(f"{split}/{count + number}")
            if options.source_key is not None:
                episodes.sources.append(_source(example, options.source_key, place, findings))
    except DataError as error:
        if not options.skip_bad_files or error.code not in ("truncated", "checksum"):
            raise
        findings.repair(error.code, f"{error} The rest of the file was left out.", field=file.name)


def _columns(
    example: dict[str, Feature],
    chosen: dict[str, Leaf],
    place: str,
    number: int,
    findings: Findings,
) -> dict[str, Array]:
    columns = {}
    for name, leaf in chosen.items():
        if name not in example:
            findings.refuse("missing_key", f"{place}: lacks it.", field=name, index=number)
        try:
            columns[name] = leaf.array(example[name])
        except (ValueError, OverflowError) as error:
            findings.refuse("bad_shape", f"{place}: {error}.", field=name, index=number)
    lengths = {name: len(column) for name, column in columns.items()}
    first = next(iter(lengths.values()))
    for name, length in lengths.items():
        if length != first:
            findings.refuse(
                "unequal_lengths",
                f"{place}: {length:,} steps, {next(iter(lengths))} has {first:,}.",
                field=name,
                index=number,
            )
    return columns


def _source(example: dict[str, Feature], key: str, place: str, findings: Findings) -> str:
    feature = example.get(f"episode_metadata/{key}") or example.get(key)
    if feature is None or not feature.parts:
        findings.refuse("missing_key", f"{place}: no such fact of the episode.", field=key)
    if feature.kind == 1:
        return feature.words()[0].decode("utf-8", "replace")
    return str(feature.numbers()[0].item())


def _ends(
    columns: dict[str, Array], lengths: Any, options: ReadOptions, findings: Findings
) -> tuple[Array | None, Array | None]:
    """Terminal and time-out marks; a first or last mark in the middle contradicts RLDS."""
    stops = np.cumsum(lengths)
    for name, places in (("steps/is_first", stops - lengths), ("steps/is_last", stops - 1)):
        marks = columns.get(name)
        if marks is None:
            continue
        odd = np.setdiff1d(np.flatnonzero(marks), places[lengths > 0])
        if len(odd):
            owner = int(np.searchsorted(stops, odd[0], side="right"))
            said = (
                f"{len(odd):,} marks are inside a trajectory (first: trajectory {owner}, step "
                f"{int(odd[0] - (stops - lengths)[owner])})"
            )
            if options.trust != "data":
                findings.refuse(
                    "meta_conflict",
                    f"{said}: a record should be one trajectory. --trust data goes on.",
                    field=name,
                    index=owner,
                    count=len(odd),
                )
            findings.repair("meta_conflict", f"{said}; records decide.", field=name, first=owner)
    terminal, last = columns.get("steps/is_terminal"), columns.get("steps/is_last")
    if last is None or terminal is None:
        return terminal, last
    return terminal, np.where((last == 1) & (terminal == 1), 0, last)


def _part(leaf: Leaf, columns: dict[str, Array]) -> Part:
    name = leaf.name.removeprefix("steps/").removeprefix("observation/")
    column = columns[leaf.name]
    return Part(name, column.shape[1:], column.dtype)


def _join(columns: dict[str, Array], leaves: list[Leaf]) -> Array:
    parts = [columns[leaf.name].reshape(len(columns[leaf.name]), -1) for leaf in leaves]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)


def _drop_last(raw: Raw, lengths: Any) -> None:
    """Take the last step of each trajectory as its final observation."""
    stops = np.cumsum(lengths)
    full = lengths > 0
    last = stops[full] - 1
    kept = np.ones(len(raw.observations), dtype=np.bool_)
    kept[last] = False
    finals = np.zeros((len(lengths), raw.observations.shape[1]), dtype=raw.observations.dtype)
    finals[full] = raw.observations[last]
    raw.final_observations, raw.has_final = finals, full
    before = last[lengths[full] > 1]
    for name in ("terminals", "timeouts"):
        marks = getattr(raw, name)
        if marks is not None:
            moved = marks.copy()
            moved[before - 1] |= marks[before]
            setattr(raw, name, moved[kept])
    raw.observations, raw.actions = raw.observations[kept], raw.actions[kept]
    raw.rewards = None if raw.rewards is None else raw.rewards[kept]
    raw.extras = {name: column[kept] for name, column in raw.extras.items()}
    raw.lengths = np.maximum(lengths - 1, 0)
