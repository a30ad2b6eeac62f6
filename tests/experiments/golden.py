"""Tiny cells with exact results: what a stage computes is what its version number promises.

    python -m tests.experiments.golden        compute them and write golden.json

A stage whose results change gets another number in `pubc.experiments.stage_versions`; then its
records of before are no longer taken for its own. Floats are kept to five digits: other
processors and builds of PyTorch differ behind that.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pubc.experiments.cell import Cell, DatasetSpec, FilterSpec, LearnerSpec, SeedSpec
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stage_versions import NUMBERS, versions
from pubc.experiments.stages.datasets import make_dataset, open_dataset, read_summary
from pubc.experiments.stages.filters import FilterJob, make_filter, read_filter, read_mask
from pubc.experiments.stages.learn import learn
from pubc.formats import save
from pubc.storage import hash_file
from tests.experiments.tiny import PAPER, labelled, spec
from tests.policies.sets import tiny

FILE = Path(__file__).with_name("golden.json")


def dataset(folder: Path) -> dict[str, Any]:
    """Ant, the expert and the weak policy, 60 steps each: too few for chaos to grow."""
    cache = Cache(folder, versions())
    asked = DatasetSpec("ant:E+W", steps_per_source=60)
    make_dataset(cache, asked)
    made = open_dataset(cache, asked)
    return {
        "sources": made.sources.tolist(),
        "steps": {
            name: one["steps"] for name, one in read_summary(cache, asked)["sources"].items()
        },
        "first observation": made.columns.observations[0][:5].tolist(),
        "first rewards": made.columns.rewards[:5].tolist(),
    }


def filters(folder: Path) -> dict[str, Any]:
    """The paper's recipe and the highest returns, on a pile of two behaviours."""
    path = labelled(folder / "pile.npz")
    sha256 = hash_file(path)
    cache = Cache(folder / "cache", versions(), given={sha256: str(path)})
    given, found = DatasetSpec(name="pile", sha256=sha256), {}
    for name, chosen in {
        "paper": spec("paper", PAPER, SeedSpec(trajectories=3)),
        "top returns": FilterSpec("top_returns", share=0.25),
    }.items():
        job = FilterJob(given, chosen, random_seed=0)
        make_filter(cache, job)
        result = read_filter(cache, job)
        found[name] = {
            "kept": np.flatnonzero(read_mask(cache, job)).tolist(),
            "accuracy": result["accuracy"],
            "auc": result.get("auc"),
        }
    return found


def learners(folder: Path) -> dict[str, Any]:
    """Two epochs of cloning, and three trajectories of the policy."""
    save(folder / "data.npz", tiny(trajectories=6, observations=3, actions=1))
    found = {}
    for algo in ("bc", "50%bc"):
        chosen = LearnerSpec(algo, "Pendulum-v1", {"epochs": 2}, 3, reference=(-2000.0, 0.0))
        asked = Cell("row", algo, DatasetSpec(name="mine", sha256="0"), learner=chosen)
        values = learn(asked, folder / "data.npz", None, Cache(folder / "cache", versions()))
        found[algo] = {"return": values["return"], "score": values["score"]}
    return found


STAGES: dict[str, Callable[[Path], dict[str, Any]]] = {
    "dataset": dataset,
    "filter": filters,
    "learner": learners,
}


def compute(stage: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        return _rounded(STAGES[stage](Path(folder)))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(one) for one in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


if __name__ == "__main__":
    document = {stage: {"number": NUMBERS[stage], "results": compute(stage)} for stage in STAGES}
    FILE.write_text(json.dumps(document, indent=1) + "\n")
    sys.stdout.write(f"{FILE}\n")
