"""The first stage of a cell: its dataset, collected or the user's, and a summary of it."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc import formats
from pubc.errors import DataError
from pubc.experiments.cell import DatasetSpec
from pubc.experiments.stage_cache import Cache
from pubc.results import key_of
from pubc.storage import read_json, write_json
from pubc.threads import cores
from pubc.trajectory import TrajectorySet

__all__ = [
    "data_path",
    "dataset_key",
    "expert_of",
    "make_dataset",
    "open_dataset",
    "open_seed_pool",
    "read_summary",
    "within",
]

_EXPERTS = ("E+", "expert")
_SEED_POOL = "data-seed.store"


def dataset_key(spec: DatasetSpec, cache: Cache) -> str:
    """Hash of a dataset: of its recipe and the code that plays it, or of the user's file.

    What is cut from it by source is not made anew, so that is no part of the hash.
    """
    return key_of({**asdict(replace(spec, sources=None)), "code": cache.code.dataset})


def make_dataset(cache: Cache, spec: DatasetSpec) -> str:
    """Collect a dataset if it is missing, and summarise it; its key.

    Raises:
        DataError: A user's file is not where it was.
    """
    key = dataset_key(spec, cache)
    cache.make("datasets", key, lambda folder: _build(folder, cache, spec))
    return key


def open_dataset(cache: Cache, spec: DatasetSpec) -> TrajectorySet:
    """The trajectories of a dataset that was made."""
    whole = formats.read(data_path(cache, spec))
    return whole if spec.sources is None else whole[within(whole, spec)]


def open_seed_pool(cache: Cache, spec: DatasetSpec) -> TrajectorySet | None:
    """The expert's trajectories that were collected beside a dataset, if there are any."""
    if not spec.seed_steps:
        return None
    return formats.read(data_path(cache, spec).with_name(_SEED_POOL))


def within(whole: TrajectorySet, spec: DatasetSpec) -> NDArray[np.bool_]:
    """Which trajectories of the file a cell is about, shape (trajectories,)."""
    if spec.sources is None:
        return np.ones(len(whole), dtype=np.bool_)
    assert whole.sources is not None  # only collected data is cut, and that has sources
    return np.isin(whole.sources, spec.sources)


def data_path(cache: Cache, spec: DatasetSpec) -> Path:
    """Where the trajectories lie."""
    if spec.recipe is not None:
        return cache.path("datasets", dataset_key(spec, cache)) / "data.store"
    path = cache.given.get(spec.sha256 or "")
    if path is None:
        raise DataError(f"No file was given for {spec.name}.", code="data_not_given")
    return Path(path)


def read_summary(cache: Cache, spec: DatasetSpec) -> dict[str, Any]:
    """What a dataset holds: the size of each source and what it earned."""
    return read_json(cache.path("datasets", dataset_key(spec, cache)) / "summary.json")


def expert_of(trajectories: TrajectorySet) -> str | None:
    """The source that a filter should find; None where the data does not say who acted.

    Raises:
        DataError: There are sources, but none is known to be the expert.
    """
    if trajectories.sources is None:
        return None
    names = set(trajectories.sources.tolist())
    for name in (str((trajectories.metadata or {}).get("expert", "")), *_EXPERTS):
        if name in names:
            return name
    raise DataError(
        f"None of the sources {', '.join(sorted(names)[:8])} is called {' or '.join(_EXPERTS)}, "
        "so nobody knows which one a filter should find.",
        code="no_expert",
        field="sources",
    )


def _build(folder: Path, cache: Cache, spec: DatasetSpec) -> None:
    if spec.recipe is not None:
        _collect(folder / "data.store", cache, spec)
        trajectories = formats.read(folder / "data.store")
    else:
        trajectories = formats.read(data_path(cache, spec))
    write_json(folder / "summary.json", _summary(trajectories))


def _collect(out: Path, cache: Cache, spec: DatasetSpec) -> None:
    from pubc.collect import Request, collect, find

    assert spec.recipe is not None
    request = Request(
        find(spec.recipe),
        spec.steps_per_source,
        spec.trajectories_per_source,
        seed_steps=spec.seed_steps,
        random_seed=spec.random_seed,
    )
    collect(request, out, processes=cache.workers or cores())


def _summary(trajectories: TrajectorySet) -> dict[str, Any]:
    names = trajectories.sources
    parts = {} if names is None else {name: names == name for name in np.unique(names).tolist()}
    returns = None if trajectories.columns.rewards is None else trajectories.total_rewards()
    return {
        "trajectories": len(trajectories),
        "steps": trajectories.steps,
        "expert": expert_of(trajectories),
        "sources": {name: _source(trajectories, where, returns) for name, where in parts.items()},
    }


def _source(trajectories: TrajectorySet, where: Any, returns: Any) -> dict[str, Any]:
    lengths = trajectories.lengths[where]
    earned = None if returns is None else returns[where]
    return {
        "trajectories": int(where.sum()),
        "steps": int(lengths.sum()),
        "mean_length": float(lengths.mean()),
        "mean_return": None if earned is None else float(earned.mean()),
        "std_return": None if earned is None else float(earned.std()),
    }
