"""`pubc inspect`: what a dataset holds, and every problem found in it."""

from __future__ import annotations

import dataclasses
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro

from pubc import formats
from pubc.cli.console import facts, histogram, say
from pubc.formats.detect import detect
from pubc.trajectory import TrajectorySet

__all__ = ["COMMAND", "Inspect"]


@dataclass(frozen=True)
class Inspect:
    """Say what a dataset holds, and every problem found in it.

    Shows format, trajectories, steps, dimensions, lengths, returns, how trajectories end
    and, where they are known, which policies acted. Nothing is written.
    """

    data: Annotated[Path, tyro.conf.Positional]
    """Dataset: a file or a folder in any format that `pubc formats` lists."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read it."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Read the dataset and describe it."""
        name = self.reading.format or detect(self.data)
        trajectories = formats.read(self.data, self.reading)
        document = {"data": str(self.data), "format": name, **describe(trajectories)}
        if not self.json:
            _show(document, trajectories)
        return document


COMMAND = Inspect


def describe(trajectories: TrajectorySet) -> dict[str, Any]:
    """The facts of a set as JSON values."""
    columns = trajectories.columns
    returns = trajectories.total_rewards()
    known = returns[np.isfinite(returns)]
    sources = trajectories.sources
    return {
        "trajectories": len(trajectories),
        "steps": trajectories.steps,
        "observation": {
            "size": trajectories.observation_size,
            "dtype": str(columns.observations.dtype),
        },
        "action": {
            "size": trajectories.action_size,
            "dtype": str(columns.actions.dtype),
        },
        "lengths": _spread(trajectories.lengths),
        "returns": _spread(known) if known.size else None,
        "ends": dict(Counter(trajectories.ends().tolist())),
        "final_observations": 0
        if trajectories.has_final is None
        else int(np.count_nonzero(trajectories.has_final)),
        "sources": None if sources is None else dict(Counter(sources.tolist())),
        "extras": {k: list(v.shape[1:]) for k, v in columns.extras.items()},
        "metadata": dict(trajectories.metadata),
        "problems": [dataclasses.asdict(problem) for problem in trajectories.problems],
    }


def _spread(values: Any) -> dict[str, float]:
    return {
        "min": float(np.min(values)),
        "median": float(np.median(values)),
        "mean": float(np.mean(values)),
        "max": float(np.max(values)),
    }


def _show(document: dict[str, Any], trajectories: TrajectorySet) -> None:
    observation, action = document["observation"], document["action"]
    rows = [
        ("data", document["data"]),
        ("format", document["format"]),
        ("trajectories", f"{document['trajectories']:,}"),
        ("steps", f"{document['steps']:,}"),
        ("observation", f"{observation['size']} x {observation['dtype']}"),
        ("action", f"{action['size']} x {action['dtype']}"),
        ("lengths", histogram(trajectories.lengths)),
        ("returns", histogram(trajectories.total_rewards())),
        ("ends", _counts(document["ends"])),
    ]
    if document["sources"] is not None:
        rows.append(("sources", _counts(document["sources"])))
    if document["extras"]:
        rows.append(("also holds", ", ".join(document["extras"])))
    facts(rows)
    say()
    problems = document["problems"]
    say(f"{len(problems)} problems found" if problems else "no problems found")
    for problem in problems:
        say(f"  {problem['outcome']:<8}  {problem['code']}: {problem['message']}")


def _counts(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: -item[1])
    return ", ".join(f"{count:,} {name}" for name, count in ordered)
