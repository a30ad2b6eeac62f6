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
from pubc.cli.console import facts, histogram, one_line, say, warn
from pubc.cli.data.inspect_details import describe_ids, describe_keys, suggest_seeds
from pubc.cli.dataset_flag import Dataset
from pubc.formats.core.findings import Findings, plural
from pubc.formats.core.motion import check_motion
from pubc.formats.opening.open_dataset import open_dataset
from pubc.runs.folder.given_data import check_given, check_manifest
from pubc.storage import MANIFEST
from pubc.trajectory import Problem, TrajectorySet

__all__ = ["COMMAND", "Inspect"]


@dataclass(frozen=True)
class Inspect:
    """Say what a dataset holds, and every problem found in it.

    Shows format, trajectories, steps, ids, every key with its shape and type, lengths, returns,
    how trajectories end and, where they are known, which policies acted; and the flags of
    `pubc filter` that could name seeds here. Nothing is written but the picture of --plot.
    """

    data: Annotated[Dataset, tyro.conf.Positional]
    """Dataset: a file or a folder in any format that `pubc formats` lists, or the id of a
    Minari dataset on this disk."""
    plot: Path | None = None
    """Also draw lengths, returns and a few trajectories: .png or .svg."""
    force: bool = False
    """Replace the picture if it exists."""
    reading: formats.ReadOptions = formats.FROM_COMMAND_LINE
    """How to read it."""
    json: bool = False
    """Print one JSON document instead of text."""

    def run(self) -> dict[str, Any]:
        """Read the dataset, look at it more closely than reading does, and describe it."""
        if self.plot is not None:
            from pubc.cli.data.inspect_plot import check_place, draw

            check_place(self.plot, force=self.force)
        check_given(self.data, warn)
        opened = open_dataset(self.data, self.reading)
        check_manifest(self.data, self.reading)
        findings = Findings(self.data, strict=self.reading.strict)
        check_motion(opened.trajectories, findings)
        document = {
            "data": str(self.data),
            "format": opened.format,
            "cached": opened.cached,
            "isolated": opened.isolated,
            "integrity": _integrity(self.data, opened.format),
            **describe(opened.trajectories, tuple(findings.problems)),
            "seeds": suggest_seeds(self.data, opened.trajectories),
        }
        if self.plot is not None:
            draw(opened.trajectories, self.plot, force=self.force)
            document["plot"] = str(self.plot)
        if not self.json:
            _show(document, opened.trajectories)
        return document


COMMAND = Inspect

_INTEGRITY = {"store": "sealed", "npz": "checksums"}
_INTEGRITY_WORDS = {
    "sealed": "sizes and structure fit the manifest (`pubc verify` checks every byte)",
    "checksums": "the checksum of every array fits",
    "manifest": "not checked yet, but there is a manifest: `pubc verify` checks every byte",
    "unverified": "unverified, the format carries no checksums",
}
_OUTCOMES = ("repaired", "warned", "noticed")
_NAMES_SHOWN = 8
_KEYS_SHOWN = 16


def _integrity(path: Path, name: str) -> str:
    if name in _INTEGRITY:
        return _INTEGRITY[name]
    manifest = path / MANIFEST if path.is_dir() else path.with_name(f"{path.name}.{MANIFEST}")
    return "manifest" if manifest.is_file() else "unverified"


def describe(trajectories: TrajectorySet, found: tuple[Problem, ...] = ()) -> dict[str, Any]:
    """The facts of a set as JSON values, with its problems and those found since."""
    columns = trajectories.columns
    returns = trajectories.total_rewards()
    known = returns[np.isfinite(returns)]
    sources = trajectories.sources
    return {
        "trajectories": len(trajectories),
        "steps": trajectories.steps,
        "ids": describe_ids(trajectories),
        "keys": describe_keys(trajectories),
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
        "problems": [dataclasses.asdict(problem) for problem in trajectories.problems + found],
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
        ("format", document["format"] + _how(document)),
        ("integrity", _INTEGRITY_WORDS[document["integrity"]]),
        ("trajectories", f"{document['trajectories']:,}"),
        ("steps", f"{document['steps']:,}"),
        ("ids", _ids(document["ids"])),
        ("observation", f"{observation['size']} x {observation['dtype']}"),
        ("action", f"{action['size']} x {action['dtype']}"),
        ("lengths", histogram(trajectories.lengths)),
        ("returns", _returns(document, trajectories)),
        ("ends", _counts(document["ends"])),
    ]
    if document["final_observations"]:
        rows.append(("last states", f"{document['final_observations']:,} final observations"))
    if document["sources"] is not None:
        rows.append(("sources", _counts(document["sources"])))
    if document["metadata"]:
        rows.append(("metadata", _names(list(document["metadata"]))))
    if "plot" in document:
        rows.append(("picture", document["plot"]))
    facts(rows)
    _show_keys(document["keys"])
    _show_seeds(document["seeds"])
    say()
    _show_problems(document["problems"])


def _show_keys(keys: list[dict[str, Any]]) -> None:
    say()
    say("keys (one row per step)")
    shown = keys[:_KEYS_SHOWN]
    width = max((len(one_line(key["key"])) for key in shown), default=0)
    for key in shown:
        shape = " x ".join(map(str, key["shape"])) or "1"
        say(f"  {one_line(key['key']):<{width}}  {shape:>7}  {key['dtype']:<8}  {key['use']}")
    if len(keys) > len(shown):
        say(f"  and {len(keys) - len(shown):,} more (--json lists them)")


def _show_seeds(seeds: list[dict[str, str]]) -> None:
    if not seeds:
        return
    say()
    say("seeds (give `pubc filter` one of these)")
    width = max(len(one_line(way["flags"])) for way in seeds)
    for way in seeds:
        say(f"  {one_line(way['flags']):<{width}}  {one_line(way['takes'])}")


def _ids(ids: dict[str, Any]) -> str:
    if ids["first"] is None:
        return "none"
    told = ids["first"] if ids["first"] == ids["last"] else f"{ids['first']} ... {ids['last']}"
    return told if ids["pattern"] is None else f"{told} ({ids['pattern']})"


def _show_problems(problems: list[dict[str, Any]]) -> None:
    serious = sum(problem["outcome"] != "noticed" for problem in problems)
    say(f"{plural(serious, 'problem')} found" if serious else "no problems found")
    width = max((len(problem["code"]) for problem in problems), default=0)
    for outcome in _OUTCOMES:
        for problem in problems:
            if problem["outcome"] == outcome:
                where = f"{problem['field']}: " if problem["field"] else ""
                told = one_line(where + problem["message"])
                say(f"  {outcome:<8}  {one_line(problem['code']):<{width}}  {told}")


def _how(document: dict[str, Any]) -> str:
    if document["cached"]:
        return " (from the cached copy; --no-cache reads the file itself)"
    return " (parsed in a child process)" if document["isolated"] else ""


def _returns(document: dict[str, Any], trajectories: TrajectorySet) -> str:
    if trajectories.columns.rewards is None:
        return "unknown, the dataset has no rewards"
    if document["returns"] is None:
        return "unknown, every trajectory has a reward that is not a number"
    return histogram(trajectories.total_rewards())


def _names(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more:,} more" if more > 0 else shown


def _counts(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{count:,} {name or '(no name)'}" for name, count in ordered]
    return _names(told)
