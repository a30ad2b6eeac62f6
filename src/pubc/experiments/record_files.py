"""What a run leaves for readers: the records of a table, and a head that says how they were made.

OUT/records/TABLE.jsonl has one line per finished cell, in the order of the table; TABLE.json is
its head; with `--scale paper` they are called TABLE-paper. Both are written anew, whole or not at
all, so that a page can be drawn at any time. The values themselves lie in the cache of OUT: lines
that it does not know are somebody's, and stay.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from pubc import results
from pubc.errors import DataError, UsageError
from pubc.experiments.cell import DatasetSpec, Scale, Table
from pubc.experiments.stage_cache import Cache
from pubc.results import Record
from pubc.storage import atomic_file, claim, read_json, read_sealed, write_sealed
from pubc.version import __version__

__all__ = ["Planned", "RecordFiles"]


class Planned(Protocol):
    """What record files are about: the plan of a table, or of a suite."""

    @property
    def table(self) -> Table:
        """What is computed."""
        ...

    @property
    def scale(self) -> Scale:
        """How large."""
        ...

    @property
    def random_seeds(self) -> int:
        """How often, with other seeds."""
        ...

    @property
    def cache(self) -> Cache:
        """Where everything lies."""
        ...

    @property
    def data(self) -> Mapping[str, DatasetSpec]:
        """The user's files by name."""
        ...

    def cells(self) -> Sequence[Any]:
        """The cells in the order of the table."""
        ...

    def values(self, cell: Any) -> dict[str, Any] | None:
        """The values of a finished cell; None where it is not finished."""
        ...

    def record(self, cell: Any) -> Record | None:
        """The record of a finished cell."""
        ...


class RecordFiles:
    """The records of one table in a folder."""

    def __init__(self, folder: Path, plan: Planned, command: str) -> None:
        self.plan, self.command = plan, command
        self.name = _name(plan)
        self.lines, self.head = folder / f"{self.name}.jsonl", folder / f"{self.name}.json"
        self._left: dict[Path, tuple[int, ...] | None] = {}
        self._claim()
        before = self._before()
        self.seconds: float = before.get("wall_seconds", 0.0)
        self.machines: list[Any] = before.get("machines", [])

    def write(self, seconds: float) -> list[dict[str, Any]]:
        """Write every record there is, and the head; the documents of the records.

        Args:
            seconds: How long this run has taken so far.

        Raises:
            UsageError: Somebody put something else there meanwhile.
        """
        self._claim()
        records = [self.plan.record(cell) for cell in self.plan.cells()]
        documents = [record.document() for record in records if record is not None]
        with atomic_file(self.lines, overwrite=True) as new:
            new.write_text(
                "".join(json.dumps(d, allow_nan=False) + "\n" for d in documents), encoding="utf-8"
            )
        write_sealed(self.head, self._head(seconds, len(records)))
        self._left = {path: _stamp(path) for path in (self.lines, self.head)}
        return documents

    def _claim(self) -> None:
        """A table is written anew every few seconds, but never over what is not a table of ours."""
        for path, proof in ((self.lines, self._is_own), (self.head, _is_head)):
            if path not in self._left or _stamp(path) != self._left[path]:
                claim(path, "records", force=True, proof=proof)

    def _head(self, seconds: float, cells: int) -> dict[str, Any]:
        plan, table = self.plan, self.plan.table
        return {
            "table": self.name,
            "title": _title(plan),
            "caption": table.caption,
            "scale": plan.scale.name,
            "scaled_down": table.differences(plan.scale),
            "command": self.command,
            "wall_seconds": round(self.seconds + seconds, 1),
            "cells": cells,
            "random_seeds": plan.random_seeds,
            "data": {name: spec.sha256 for name, spec in plan.data.items()},
            "pubc": __version__,
            "code": asdict(plan.cache.code),
            "machines": self._machines(),
            "rows": list(table.rows),
            "columns": list(table.columns),
            "unit": table.unit,
            "direction": table.direction,
            "extra": dict(table.extra),
        }

    def _is_own(self, path: Path) -> bool:
        """Whether every line of a file is a whole record of this table at this scale.

        Raises:
            UsageError: They are records of something else, or the cache does not have them.
        """
        try:
            found = results.read(path)
        except DataError:
            return False
        own = {"table": self.plan.table.name, "scale": self.plan.scale.name}
        for record in found:
            values = record.values
            other = {name: values.get(name) for name in own}
            if other != own:
                told = "{table} at scale {scale}" if other["table"] else "another command"
                raise UsageError(
                    f"{path} holds records of {told.format(**other)}, where those of "
                    f"{own['table']} at scale {own['scale']} are to go. Choose another --out."
                )
            if not self._can_be_written_again(record):
                raise UsageError(
                    f"{path} holds a record of {values.get('row')}, {values.get('column')} that is "
                    f"not in {self.plan.cache.root} (of another version, from elsewhere or changed "
                    "since), so it would be lost. Move the file away or choose another --out."
                )
        return path.stat().st_size == 0 or path.read_bytes().endswith(b"\n")

    def _can_be_written_again(self, record: Record) -> bool:
        """Whether the cache has every value of a record but its place in the table."""
        known = self.plan.cache.record(record.key)
        place = {"table", "scale", "row", "column", "paper", "measure"}
        told = {name: value for name, value in record.values.items() if name not in place}
        return "failed" in told or (
            known is not None and all(known.get(name) == value for name, value in told.items())
        )

    def _before(self) -> dict[str, Any]:
        """The head of earlier runs of the same table at the same scale and version."""
        if not self.head.is_file():
            return {}
        head = read_json(self.head)
        now = {"scale": self.plan.scale.name, "code": asdict(self.plan.cache.code)}
        return head if all(head.get(name) == value for name, value in now.items()) else {}

    def _machines(self) -> list[Any]:
        """Every machine that has worked on the table."""
        here = _machine(self.plan.cache.device)
        return self.machines if here in self.machines else [*self.machines, here]


def _name(plan: Planned) -> str:
    """What the files are called: the paper's size has files of its own, beside the smaller."""
    return f"{plan.table.name}-paper" if plan.scale.name == "paper" else plan.table.name


def _title(plan: Planned) -> str:
    title = plan.table.title
    return f"{title}, at the paper's size" if plan.scale.name == "paper" else title


def _is_head(path: Path) -> bool:
    """Whether a file is the head of the table that it is named after."""
    try:
        document = read_sealed(path)
    except DataError:
        return False
    told = {"scale", "command", "cells", "pubc", "code", "machines", "rows", "columns"}
    return document.get("table") == path.stem and told <= set(document)


def _stamp(path: Path) -> tuple[int, ...] | None:
    """What tells a file from one that somebody else put in its place."""
    with contextlib.suppress(OSError):
        found = path.lstat()
        return found.st_ino, found.st_size, found.st_mtime_ns
    return None


def _machine(device: str) -> dict[str, Any]:
    """What the numbers are computed on."""
    import torch

    has_gpu = device == "cuda" and torch.cuda.is_available()
    gpu = torch.cuda.get_device_name() if has_gpu else None
    return {
        "cores": os.cpu_count(),
        "cpu": _cpu_name(),
        "gpu": gpu,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
    }


def _cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
