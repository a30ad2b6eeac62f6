"""A table small enough for tests, and a driver of it that can be killed.

python -m tests.experiments.tiny OUT ENGINE DATA    prints a line after every piece of work
"""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import pubc
from pubc.engine import open_engine
from pubc.experiments.cell import Cell, DatasetSpec, FilterSpec, Scale, SeedSpec, Table
from pubc.experiments.record_files import RecordFiles
from pubc.experiments.run_table import Plan, Progress, reproduce
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stage_versions import versions
from pubc.pu.recipes import get_recipe, recipe_to_json, with_settings
from pubc.storage import hash_file
from tests.pu.piles import pile

SCALE = Scale("tiny", trajectories_per_source=2)
AUTO = {"residual.updates": 20, "opinion.updates": 20, "opinion.features": 32, "loop.max_rounds": 2}
PAPER = {"ensemble.schedule.epochs": 1, "ensemble.subset": 1024, "loop.max_rounds": 2}


def labelled(path: Path, *, sources: bool = True) -> Path:
    mixed = pile([8, 8], steps=50)
    names = np.where(np.asarray(mixed.sources) == "0", "expert", "other")
    pubc.save(path, replace(mixed, sources=names if sources else None))
    return path


def spec(name: str, settings: Mapping[str, Any], seeds: SeedSpec) -> FilterSpec:
    recipe = json.loads(json.dumps(recipe_to_json(with_settings(get_recipe(name), settings))))
    return FilterSpec("pu", recipe=recipe, seeds=seeds)


def cells(scale: Scale, random_seeds: int, data: Mapping[str, DatasetSpec]) -> list[Cell]:
    columns = {
        "auto": spec("auto", AUTO, SeedSpec(trajectories=3)),
        "paper": spec("paper", PAPER, SeedSpec(trajectories=3)),
        "greedy": spec("auto", AUTO, SeedSpec(trajectories=999)),
    }
    return [
        Cell(name, column, data.get(name, DatasetSpec(name=name)), chosen, random_seed=seed)
        for name in ("push", "lift")
        for column, chosen in columns.items()
        for seed in range(random_seeds)
    ]


TABLE = Table(
    name="tiny",
    title="A table for tests",
    caption="",
    scaled_down={},
    rows=("push", "lift"),
    columns=("auto", "paper", "greedy"),
    cells=cells,
    data={"push": "a pile", "lift": "another pile"},
)


def plan(out: Path, given: Mapping[str, Path], random_seeds: int = 2) -> Plan:
    hashes = {name: hash_file(path) for name, path in given.items()}
    places = {hashes[name]: str(path) for name, path in given.items()}
    data = {name: DatasetSpec(name=name, sha256=sha256) for name, sha256 in hashes.items()}
    return Plan(TABLE, SCALE, random_seeds, Cache(out / "cache", versions(), given=places), data)


def run(chosen: Plan, engine: str, *, retry_failed: bool = False) -> Iterator[Progress]:
    with open_engine(engine, workers=2) as running:
        yield from reproduce(chosen, running, retry_failed=retry_failed)


def records(chosen: Plan, out: Path) -> list[dict[str, Any]]:
    """The records without what a clock said."""
    found = RecordFiles(out / "records", chosen, "tiny").write(0.0)
    return [{k: v for k, v in one.items() if k != "seconds"} for one in found]


if __name__ == "__main__":
    folder, engine, data = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    for now in run(plan(folder, {"push": data}), engine):
        sys.stdout.write(f"{now.done} {now.total}\n")
        sys.stdout.flush()
