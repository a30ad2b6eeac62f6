"""Which files a run has, and how one that is not finished proves that it wrote them.

Its run.json is sealed; a line of rounds.jsonl is sealed and has the SHA-256 of the round's arrays,
before they get their name; a network or shard has a SHA-256 of itself; a result is listed with
its own before it gets its name (`pubc.runs.folder.run_results`). What lacks such a proof may be
somebody's work: `--force` does not remove it, and `--resume` does not believe it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pubc.errors import DataError
from pubc.storage import Draft, Fault, agrees, fits, hash_file, read_sealed, strangers

__all__ = [
    "COMING",
    "DRAFT",
    "FILES",
    "FOREIGN",
    "KEPT_FILES",
    "KIND",
    "RESULTS",
    "listed_results",
    "question_of",
    "unproven",
]

KIND = "filter"
"""What run.json and the manifest call the folder of a run."""
COMING = "coming.json"
"""What the manifest will say of the results, while they are put in place."""
KEPT_FILES = ("npz", "hdf5", "h5", "zip", "zarr.zip")
"""Suffixes of kept trajectories in one file."""
KEPT_FOLDERS = ("store", "minari", "lerobot", "zarr", "rlds")
"""Suffixes of kept trajectories in a folder."""
_NETWORKS = ("classifiers/round-*-*-*.safetensors",)
_SHARDS = ("shards/round-*-scores-*-*.safetensors", "shards/view-*-*.safetensors")
_ROUNDS = ("rounds.jsonl", "rounds/round-*.npz")
RESULTS = (
    "keep.json", "scores.csv", *(f"kept.{suffix}" for suffix in KEPT_FILES),
    *(f"kept.{suffix}/**" for suffix in KEPT_FOLDERS), "labels.json", "masked.hdf5", "steps.npy",
    "steps.npz", "borderline_steps.npz", "report.html", "report.md", "report.json",
)  # fmt: skip
"""Patterns of what a run comes to at its end."""
FILES = ("run.json", *_ROUNDS, *_NETWORKS, *_SHARDS, *RESULTS)
"""Patterns of every file of a run but its manifest."""
FOREIGN = "pubc did not write"
"""What is wrong with a file of a stranger."""
_CHANGED = "is not as pubc wrote it"


def question_of(document: Mapping[str, Any]) -> str:
    """A hash of what decides every network and every round of a run, whoever works where on it."""
    places = ("from", "labels")
    asked = {
        "data": document["data"]["fingerprint"],
        "seed": {name: told for name, told in document["seed"].items() if name not in places},
        **{name: document[name] for name in ("reading", "bad", "recipe", "random_seed")},
    }
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def listed_results(folder: Path) -> dict[str, Any]:
    """Size and SHA-256 of each result that an unfinished run has put in place, or is about to.

    Raises:
        DataError: The list was changed.
    """
    if not os.path.lexists(folder / COMING):
        return {}
    files = read_sealed(folder / COMING).get("files")
    return files if isinstance(files, dict) else {}


def unproven(folder: Path, under: str = "") -> list[Fault]:
    """What an unfinished run holds and cannot prove to have written.

    Args:
        folder: The folder of the run.
        under: Only files whose names begin so.

    Raises:
        DataError: Its run.json or its list of results is not as it was written.
    """
    question = _question(read_sealed(folder / "run.json"))
    results = listed_results(folder)
    rounds: dict[str, str] | None = None
    faults = []
    for name in strangers(folder, ("run.json", COMING)):
        if not name.startswith(under):
            continue
        proven = False
        if fits(name, _ROUNDS):
            if rounds is None:
                rounds = _proven_rounds(folder, question)
            proven = _is_round(folder, name, rounds)
        elif fits(name, (*_NETWORKS, *_SHARDS)):
            proven = _is_network(folder / name, question)
        elif fits(name, RESULTS) and name in results:
            proven = agrees(folder / name, results[name])
        else:
            faults.append(Fault(name, FOREIGN))
            continue
        if not proven:
            faults.append(Fault(name, _CHANGED))
    return faults


DRAFT = Draft("run.json", unproven)
"""How an unfinished run is known; docs/run-folder.md lists its files."""


def _question(document: Mapping[str, Any]) -> str | None:
    """What the run asks; None where its document does not say, so that nothing is of it."""
    try:
        return question_of(document)
    except (KeyError, TypeError, AttributeError, ValueError):
        return None


def _proven_rounds(folder: Path, question: str | None) -> dict[str, str]:
    from pubc.runs.folder.round_files import UNREADABLE, sealed_lines

    try:
        lines = sealed_lines(folder)
        if question is None or any(line["question"] != question for line in lines):
            return {}
        return {"rounds.jsonl": "", **{line["arrays"]: line["sha256"] for line in lines}}
    except UNREADABLE:
        return {}


def _is_round(folder: Path, name: str, rounds: Mapping[str, str]) -> bool:
    path = folder / name
    if name not in rounds or path.is_symlink() or not path.is_file():
        return False
    return name == "rounds.jsonl" or hash_file(path) == rounds[name]


def _is_network(path: Path, question: str | None) -> bool:
    from pubc.nets.files import load_tensors

    if question is None or path.is_symlink() or not path.is_file():
        return False
    try:
        _, about = load_tensors(path)
    except DataError:
        return False
    return about.get("question") == question
