"""LeRobot datasets v2.1 and v3.0: states and actions, read and written with pyarrow.

lerobot itself is not used (it cannot share an environment with d3rlpy). The observation is
`observation.state`, followed by `observation.environment_state` where there is one; images
and video are left out. `next.done` is a terminal, as in lerobot's own replay buffer; a set
that has `next.terminal` and `next.timeout`, as pubc writes them, says it exactly.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.findings import Findings
from pubc.formats.core.named_parts import PARTS, join, record_arrays
from pubc.formats.core.options import ReadOptions
from pubc.formats.core.selection import Selection
from pubc.formats.lerobot.lerobot_check import cross_check
from pubc.formats.lerobot.lerobot_meta import (
    INDEX,
    Episodes,
    Info,
    read_episodes,
    read_info,
    read_tasks,
)
from pubc.formats.lerobot.lerobot_notes import read_notes
from pubc.formats.lerobot.lerobot_rows import Rows, read_rows
from pubc.formats.lerobot.lerobot_subset import (
    has_pictures,
    keep_command,
    numbers_of,
    subset_of,
    train_command,
)
from pubc.formats.lerobot.lerobot_write import VERSIONS, write
from pubc.formats.parquet.parquet_read import OpenAhead
from pubc.trajectory import Array, TrajectorySet

__all__ = [
    "EXTRA",
    "SLOW",
    "VERSIONS",
    "has_pictures",
    "keep_command",
    "numbers_of",
    "read",
    "subset",
    "train_command",
    "write",
]

EXTRA = "lerobot"
SLOW = True
_STATE = ("observation.state", "observation.environment_state")
_NUMBERS = ("float", "int", "uint", "bool")
_FLAGS = ("next.done", "next.terminal", "next.timeout")


def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
    """Read a dataset folder; the frames decide, and the metadata must agree with them."""
    trajectories, _ = _read(path, options, findings)
    return trajectories


def subset(selection: Selection, target: Path, *, overwrite: bool) -> tuple[str, ...]:
    """Copy the kept trajectories with all their columns and films, renumbered."""
    source, options = selection.source, selection.options
    trajectories, numbers = _read(source, options, Findings(source, strict=options.strict))
    chosen = [numbers[str(name)] for name in trajectories.ids[selection.kept]]
    return subset_of(read_info(source, Findings(source)), target, chosen, overwrite=overwrite)


def _read(
    path: Path, options: ReadOptions, findings: Findings
) -> tuple[TrajectorySet, dict[str, int]]:
    """The set, and the `episode_index` behind each id."""
    info = read_info(path, findings)
    with OpenAhead(info.data_files()) as data:
        episodes = read_episodes(info, findings)
        chosen = options.observation_keys or options.action_key or options.reward_key
        notes = None if chosen else read_notes(info, findings)
        wanted = None if notes is None else {*notes.features(), *INDEX[1:4]}
        rows = read_rows(info, data, episodes, wanted, options, findings)
    cross_check(info, episodes, rows, options, findings)
    _check_widths(info, rows, options, findings)
    if wanted is None:
        _check_features(info, rows, options, findings)
    numbers, lengths = _with_empty(rows, episodes)
    if notes is not None and not notes.fit(rows.columns, lengths):
        findings.warn(
            "stale_notes",
            "does not fit the data, so somebody changed the dataset since; the ids, sources "
            "and final observations noted there were left out.",
            field="meta/pubc.json",
        )
        notes = None
    raw = _plain(info, rows, options, findings) if notes is None else notes.raw(rows.columns)
    raw.lengths = lengths
    raw.ids = [str(n) for n in numbers] if raw.ids is None else raw.ids
    if options.source_key is not None:
        raw.sources = _sources(episodes, numbers, options.source_key, findings)
    by_name = dict(zip(map(str, raw.ids), numbers.tolist(), strict=True))
    return assemble(raw, options, findings), by_name


def _check_widths(info: Info, rows: Rows, options: ReadOptions, findings: Findings) -> None:
    """A feature must be of the kind and as wide as `meta/info.json` declares it."""
    for name, column in rows.columns.items():
        about = info.features.get(name, {})
        _check_kind(name, str(about.get("dtype")), column, options, findings)
        shape = about.get("shape")
        if not isinstance(shape, list) or not all(isinstance(n, int) for n in shape):
            continue
        found = int(np.prod(column.shape[1:], dtype=np.int64))
        if int(np.prod(shape, dtype=object)) != found:
            said = f"meta/info.json declares shape {shape}, the data has {list(column.shape[1:])}"
            _conflict(name, said, options, findings)


def _check_kind(
    name: str, declared: str, column: Array, options: ReadOptions, findings: Findings
) -> None:
    """Whole numbers, fractions and flags are told apart; how many bits they have varies."""
    if not declared.startswith(_NUMBERS):
        return
    kinds = {"f": "f", "i": "i", "u": "i", "b": "b"}
    expected = "b" if declared.startswith("bool") else kinds.get(declared[0])
    if expected not in (None, kinds.get(column.dtype.kind)):
        said = f"meta/info.json declares {declared}, the data has {column.dtype}"
        _conflict(name, said, options, findings)


def _check_features(info: Info, rows: Rows, options: ReadOptions, findings: Findings) -> None:
    """A feature of numbers that `meta/info.json` declares must be in the data."""
    for name, about in info.features.items():
        kind = str(about.get("dtype"))
        if name in rows.columns or name in INDEX[1:4] or not kind.startswith(_NUMBERS):
            continue
        said = f"meta/info.json declares it ({kind}), the data does not hold it"
        _conflict(name, said, options, findings)


def _conflict(name: str, said: str, options: ReadOptions, findings: Findings) -> None:
    if options.trust != "data":
        findings.refuse("meta_conflict", f"{said}. --trust data goes by the data.", field=name)
    findings.repair("meta_conflict", f"{said}; went by the data.", field=name)


def _with_empty(
    rows: Rows, episodes: Episodes | None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers and lengths of the episodes, with those that are listed without a frame."""
    if episodes is None or episodes.lengths.all():
        return rows.numbers, rows.lengths
    empty = np.setdiff1d(episodes.numbers[episodes.lengths == 0], rows.numbers)
    numbers = np.concatenate([rows.numbers, empty])
    lengths = np.concatenate([rows.lengths, np.zeros_like(empty)])
    order = np.argsort(numbers, kind="stable")
    return numbers[order], lengths[order]


def _plain(info: Info, rows: Rows, options: ReadOptions, findings: Findings) -> Raw:
    """The columns of a dataset that pubc did not write."""
    columns = rows.columns
    keys = _observation_keys(info, columns, options, findings)
    parts = [_need(columns, key, findings) for key in keys]
    flat = [part.reshape(len(part), -1) for part in parts]
    action = options.action_key or ("action" if "action" in columns else "actions")
    reward = options.reward_key or "next.reward"
    exact = "next.terminal" in columns and "next.timeout" in columns
    used = {*keys, action, reward, *INDEX[1:4]}
    used |= set(_FLAGS if exact else _FLAGS[:1])
    tasks = read_tasks(info)
    if options.reward_key is not None:
        _need(columns, reward, findings)
    return Raw(
        observations=join(flat),
        actions=_need(columns, action, findings),
        rewards=columns.get(reward),
        terminals=columns["next.terminal"] if exact else columns.get("next.done"),
        timeouts=columns["next.timeout"] if exact else None,
        extras={name: column for name, column in columns.items() if name not in used},
        metadata={
            "codebase_version": info.document.get("codebase_version"),
            "fps": info.document.get("fps"),
            "robot_type": info.document.get("robot_type"),
            PARTS: record_arrays(keys, parts),
            "action_key": action,
            "tasks": _task_words(tasks),
        },
    )


def _task_words(tasks: dict[int, str]) -> list[str] | dict[str, str]:
    if sorted(tasks) == list(range(len(tasks))):
        return [tasks[number] for number in range(len(tasks))]
    return {str(number): words for number, words in tasks.items()}


def _observation_keys(
    info: Info, columns: dict[str, Array], options: ReadOptions, findings: Findings
) -> list[str]:
    if options.observation_keys:
        return list(options.observation_keys)
    keys = [key for key in _STATE if key in columns]
    if keys:
        return keys
    keys = [
        name
        for name in info.features
        if name.startswith("observation") and name in columns and columns[name].ndim <= 2
    ]
    if not keys:
        findings.refuse(
            "missing_key",
            f"no observation.state. Name the observation with --observation-keys; the data "
            f"has: {', '.join(sorted(set(columns) - set(INDEX)))}.",
            field="observation.state",
        )
    findings.notice(
        "observation_keys",
        f"no observation.state; the observation is {', '.join(keys)}, in this order.",
        field="observations",
    )
    return keys


def _need(columns: dict[str, Array], key: str, findings: Findings) -> Array:
    if key not in columns:
        findings.refuse(
            "missing_key",
            f"no such column of numbers. The data has: {', '.join(sorted(columns))}.",
            field=key,
        )
    return columns[key]


def _sources(
    episodes: Episodes | None, numbers: NDArray[np.int64], key: str, findings: Findings
) -> list[str]:
    """One word per episode: a column of the list of episodes, or the task."""
    known: dict[str, list[Any]] = {} if episodes is None else episodes.columns
    name = "tasks" if key == "task" else key
    if episodes is None or name not in known:
        findings.refuse(
            "missing_key",
            f"the list of episodes has no such column. It has: {', '.join(sorted(known))}.",
            field=key,
        )
    words = {}
    for number, value in zip(episodes.numbers.tolist(), known[name], strict=True):
        words[number] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return [words.get(number, "unknown") for number in numbers.tolist()]
