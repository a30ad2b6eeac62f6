"""Which files a run has, and which of them an unfinished one may have by now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pubc.storage import Draft

__all__ = ["DRAFT", "ENDING", "KEPT_FILES", "KIND"]

KIND = "filter"
"""What run.json and the manifest call the folder of a run."""
KEPT_FILES = ("npz", "hdf5", "h5", "zip", "zarr.zip")
"""Suffixes of kept trajectories in one file."""
KEPT_FOLDERS = ("store", "minari", "lerobot", "zarr", "rlds")
"""Suffixes of kept trajectories in a folder."""
ENDING = "writing_results"
"""Where run.json says, until the run is finished, that its results are being written."""
_WORK = (
    "run.json", "rounds.jsonl", "rounds/round-*.npz", "classifiers/round-*-*-*.safetensors",
    "shards/round-*-scores-*-*.safetensors", "shards/view-*-*.safetensors",
)  # fmt: skip
_RESULTS = (
    "keep.json", "scores.csv", *(f"kept.{suffix}" for suffix in KEPT_FILES),
    *(f"kept.{suffix}/**" for suffix in KEPT_FOLDERS), "masked.hdf5", "steps.npy",
    "steps.npz", "borderline_steps.npz", "report.html", "report.md", "report.json",
)  # fmt: skip
_MARKS = ("labels.json",)


def _now(document: Mapping[str, Any]) -> tuple[str, ...]:
    """What an unfinished run may hold: marks if it was told any, results once it writes them."""
    ending = document.get("status") != "running" or document.get(ENDING) is True
    told = document.get("labels") is not None
    return _WORK + (_MARKS if told else ()) + (_RESULTS if ending else ())


DRAFT = Draft("run.json", _WORK + _MARKS + _RESULTS, _now)
"""How an unfinished run is known; docs/run-folder.md lists its files."""
