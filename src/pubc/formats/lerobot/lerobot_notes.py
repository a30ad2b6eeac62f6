"""What pubc notes beside a LeRobot dataset, so that a round trip loses nothing.

`meta/pubc.json` says which feature holds which column, in which shape and byte order, and
keeps the metadata; `meta/pubc.parquet` has a row per episode with its length, id, source and
final observation. lerobot ignores both. The lengths tell when another tool has changed the
dataset since: then the notes are not believed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.assemble import Raw
from pubc.formats.core.findings import Findings
from pubc.formats.lerobot.lerobot_meta import Info
from pubc.formats.lerobot.lerobot_paths import inside
from pubc.formats.parquet.parquet_read import read_table, to_numpy
from pubc.formats.parquet.parquet_write import make_table, pick, write_tables
from pubc.storage import read_json, write_json
from pubc.trajectory import Array, TrajectorySet

__all__ = ["Notes", "features_of", "read_notes", "write_notes"]

Integers = NDArray[np.int64]
JSON, TABLE = "meta/pubc.json", "meta/pubc.parquet"
_NATIVE = {"timestamp": "<f4", "task_index": "<i8", "next.success": "|b1"}
"""Extras that LeRobot has a place of its own for."""


@dataclass(frozen=True, slots=True)
class Notes:
    """The notes of one dataset."""

    columns: dict[str, dict[str, Any]]
    """Column, as `Columns.named` spells it, to feature, dtype and shape of one row."""
    metadata: dict[str, Any]
    """The metadata of the set."""
    path: Path
    """Where the table came from."""
    table: Any
    """Row per episode: `length`, `id`, and what else there is."""

    def features(self) -> set[str]:
        """The features that hold columns."""
        return {str(about["feature"]) for about in self.columns.values()}

    def fit(self, columns: dict[str, Array], lengths: Integers) -> bool:
        """Whether the dataset is still the one that the notes were written for."""
        if not np.array_equal(to_numpy(self.path, self.table, "length"), lengths):
            return False
        if not {"observations", "actions", "terminals", "timeouts"} <= set(self.columns):
            return False
        for about in self.columns.values():
            column = columns.get(str(about["feature"]))
            kind = np.dtype(str(about["dtype"]))
            shape = tuple(about["shape"])
            if column is None or kind.newbyteorder("=") != column.dtype:
                return False
            if np.prod(shape, dtype=np.int64) * len(column) != column.size:
                return False
        return True

    def raw(self, columns: dict[str, Array]) -> Raw:
        """The set as it was when it was written."""
        found = {
            name: columns[str(about["feature"])]
            .reshape(-1, *about["shape"])
            .astype(np.dtype(str(about["dtype"])), copy=False)
            for name, about in self.columns.items()
        }
        names = self.table.column_names
        final = has = None
        if "final_observation" in names:
            final = to_numpy(self.path, self.table, "final_observation")
            final = final.reshape(-1, found["observations"].shape[1])
            has = to_numpy(self.path, self.table, "has_final")
        return Raw(
            observations=found["observations"],
            actions=found["actions"],
            rewards=found.get("rewards"),
            terminals=found["terminals"],
            timeouts=found["timeouts"],
            ids=self.table.column("id").to_pylist(),
            sources=self.table.column("source").to_pylist() if "source" in names else None,
            final_observations=final,
            has_final=has,
            extras={
                name.removeprefix("extras/"): column
                for name, column in found.items()
                if name.startswith("extras/")
            },
            metadata=self.metadata,
        )

    def write(self, folder: Path, rows: list[int] | None = None) -> None:
        """Write the notes into a dataset, for the given episodes in that order."""
        document = {
            "version": 1,
            "columns": self.columns,
            "metadata": self.metadata,
            "sha256": _checksum(self.columns, self.metadata),
        }
        write_json(folder / JSON, document)
        write_tables(folder / TABLE, [self.table if rows is None else pick(self.table, rows)])


def read_notes(info: Info, findings: Findings) -> Notes | None:
    """The notes beside a dataset, or None where there are none that can be used."""
    path, table = info.root / JSON, info.root / TABLE
    if not (path.is_file() and table.is_file()):
        if path.is_file() or table.is_file():
            findings.warn("stale_notes", "one of two files, so it was left out.", field=JSON)
        return None
    document = read_json(inside(info.root, path))
    columns: Any = document.get("columns")
    metadata: Any = document.get("metadata")
    rows = read_table(inside(info.root, table))
    if (
        isinstance(columns, dict)
        and isinstance(metadata, dict)
        and document.get("sha256") == _checksum(columns, metadata)
        and {"length", "id"} <= set(rows.column_names)
        and all(map(_readable, columns.values()))
    ):
        return Notes(columns, metadata, table, rows)
    findings.warn("stale_notes", "damaged, so it was left out.", field=JSON)
    return None


def _checksum(columns: Any, metadata: Any) -> str:
    text = json.dumps([columns, metadata], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _readable(about: Any) -> bool:
    if not isinstance(about, dict) or not isinstance(about.get("feature"), str):
        return False
    shape = about.get("shape")
    if not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
        return False
    text = str(about.get("dtype"))
    return len(text) == 3 and text[0] in "<>|" and text[1] in "fiub" and text[2] in "1248"


def features_of(trajectories: TrajectorySet) -> dict[str, str]:
    """Which feature each column of a set is written to."""
    names = {
        "observations": "observation.state",
        "actions": "action",
        "rewards": "next.reward",
        "terminals": "next.terminal",
        "timeouts": "next.timeout",
    }
    for number, (name, column) in enumerate(trajectories.columns.extras.items()):
        native = _NATIVE.get(name) == column.dtype.str and column.ndim == 1
        if name == "task_index" and native:
            native = _numbers_tasks(column, trajectories.metadata.get("tasks"))
        safe = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "_" for c in name)
        # A name of its own, for lerobot takes every "observation..." and "action..." feature
        # as an input or output of the policy.
        names[f"extras/{name}"] = name if native else f"extra.{number}.{safe[:60]}"
    return names


def _numbers_tasks(column: Array, tasks: Any) -> bool:
    return (
        isinstance(tasks, list)
        and bool(tasks)
        and all(isinstance(task, str) for task in tasks)
        and len(set(tasks)) == len(tasks)
        and (not len(column) or (int(column.min()) >= 0 and int(column.max()) < len(tasks)))
    )


def write_notes(folder: Path, trajectories: TrajectorySet) -> None:
    """Note what LeRobot's own files cannot hold."""
    features = features_of(trajectories)
    columns = {
        name: {
            "feature": features[name],
            "dtype": column.dtype.str,
            "shape": list(column.shape[1:]),
        }
        for name, column in trajectories.columns.named()
    }
    table: dict[str, Any] = {"length": trajectories.lengths, "id": trajectories.ids}
    if trajectories.sources is not None:
        table["source"] = trajectories.sources
    if trajectories.final_observations is not None:
        table["final_observation"] = np.asarray(trajectories.final_observations)
        table["has_final"] = np.asarray(trajectories.has_final)
    rows = make_table(table)
    Notes(columns, dict(trajectories.metadata), folder / TABLE, rows).write(folder)
