"""The second stage of a cell: which trajectories are selected, how rightly, round by round."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pubc.experiments.cell import Cell, DatasetSpec, FilterSpec, SeedSpec, StepFilterSpec
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stages.datasets import dataset_key, expert_of, open_dataset, open_seed_pool
from pubc.experiments.stages.judged_steps import write_judged
from pubc.metrics import confusion, roc_auc
from pubc.results import key_of
from pubc.select import by_source, single_steps, top_returns
from pubc.storage import read_json, write_json
from pubc.streams import stream
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from pubc.pu.rounds import Round
    from pubc.runs.find_expert import Result

__all__ = [
    "FilterJob",
    "draw_seeds",
    "filter_key",
    "job_of",
    "make_filter",
    "read_filter",
    "read_mask",
]

Mask = NDArray[np.bool_]
_EXPERT = "expert"


@dataclass(frozen=True, slots=True)
class FilterJob:
    """A filter of a dataset, which any number of cells may ask for."""

    dataset: DatasetSpec
    """What is filtered."""
    filter: FilterSpec
    """How."""
    random_seed: int
    """Of the seeds that are drawn, and of the filter."""


def job_of(cell: Cell) -> FilterJob | None:
    """The filter that a cell asks for."""
    if cell.filter is None:
        return None
    return FilterJob(cell.dataset, cell.filter, cell.random_seed)


def filter_key(job: FilterJob, cache: Cache) -> str:
    """Hash of a selection."""
    drawn = job.filter.kind == "pu"
    return key_of(
        {
            "dataset": dataset_key(job.dataset, cache),
            "sources": job.dataset.sources,
            "filter": asdict(job.filter),
            "random_seed": job.random_seed if drawn else None,
            "code": cache.code.filter,
            "device": cache.device,
        }
    )


def make_filter(cache: Cache, job: FilterJob) -> str:
    """Filter a dataset that was made, if that is missing; the key of the selection."""
    key = filter_key(job, cache)
    cache.make("filters", key, lambda folder: _build(folder, cache, job))
    return key


def read_filter(cache: Cache, job: FilterJob) -> dict[str, Any]:
    """What a filter came to: accuracy, status, rounds and so on."""
    return read_json(cache.path("filters", filter_key(job, cache)) / "result.json")


def read_mask(cache: Cache, job: FilterJob) -> Mask:
    """The selected trajectories, shape (trajectories,)."""
    path = cache.path("filters", filter_key(job, cache)) / "mask.npy"
    mask: Mask = np.load(path, allow_pickle=False)
    return mask


def draw_seeds(
    mixed: TrajectorySet, spec: SeedSpec, random_seed: int, pool: TrajectorySet | None = None
) -> TrajectorySet:
    """Seed positives for a mixed set.

    Args:
        mixed: The set.
        spec: How many.
        random_seed: Another one draws others.
        pool: The expert's trajectories beside the set; only steps and shares are drawn from it.

    Raises:
        DataError: The set does not say who acted, and seeds of the expert are asked for.
        UsageError: The expert has too few trajectories.
    """
    if spec.top is not None:
        return mixed[top_returns(mixed, spec.top, at_least=2)]
    rng = stream(random_seed, "experiments", "seeds")
    if spec.trajectories is not None:
        return mixed[by_source(mixed, expert_of(mixed) or _EXPERT, spec.trajectories, rng)]
    theirs = pool or _experts(mixed, rng)
    wanted = spec.steps or max(1, round((spec.share or 0.0) * mixed.steps))
    order = rng.permutation(len(theirs))
    count = int(np.searchsorted(np.cumsum(theirs.lengths[order]), wanted)) + 1
    chosen = theirs[order[:count]]
    spare = chosen.steps - wanted
    if spec.steps is not None or spare <= 0:
        return chosen
    lengths = chosen.lengths.copy()
    lengths[-1] -= spare
    return TrajectorySet(chosen.columns, chosen.starts, lengths, chosen.ids)


def _experts(mixed: TrajectorySet, rng: np.random.Generator) -> TrajectorySet:
    # Without sources there is no expert to draw from, and `by_source` says so.
    expert = expert_of(mixed) or _EXPERT
    count = 1 if mixed.sources is None else int(np.count_nonzero(mixed.sources == expert))
    return mixed[by_source(mixed, expert, count, rng)]


def _build(folder: Path, cache: Cache, job: FilterJob) -> None:
    began = time.perf_counter()
    mixed = open_dataset(cache, job.dataset)
    spec = job.filter
    if spec.kind == "pu":
        mask, values = _find(folder, mixed, cache, job)
    else:
        mask = np.ones(len(mixed), dtype=np.bool_)
        if spec.kind == "top_returns":
            mask = np.zeros(len(mixed), dtype=np.bool_)
            mask[top_returns(mixed, spec.share or 1.0)] = True
        values = {**_rightness(mask, _truth(mixed)), "kept": int(mask.sum())}
    with (folder / "mask.npy").open("wb") as file:
        np.save(file, mask, allow_pickle=False)
    seconds = round(time.perf_counter() - began, 2)
    write_json(folder / "result.json", {**values, "trajectories": len(mixed), "seconds": seconds})


def _find(
    folder: Path, mixed: TrajectorySet, cache: Cache, job: FilterJob
) -> tuple[Mask, dict[str, Any]]:
    from pubc.pu.recipes import recipe_from_json
    from pubc.runs.find_expert import find_expert

    spec = job.filter
    assert spec.seeds is not None
    assert spec.recipe is not None
    pool = open_seed_pool(cache, job.dataset)
    seeds = draw_seeds(mixed, spec.seeds, job.random_seed, pool)
    values: dict[str, Any] = {"seed_trajectories": len(seeds), "seed_steps": seeds.steps}
    by_step = spec.decision == "step"
    found = find_expert(
        single_steps(mixed) if by_step else mixed,
        single_steps(seeds) if by_step else seeds,
        recipe=recipe_from_json(spec.recipe),
        random_seed=job.random_seed,
        device=cache.device,
        workers=cache.workers,
    )
    truth = _truth(mixed)
    judged = truth
    mask = found.mask
    if by_step:
        judged = None if truth is None else np.repeat(truth, mixed.lengths)
        mask = _majority_of_steps(found.mask, mixed)
        values["trajectory_accuracy"] = _rightness(mask, truth)["accuracy"]
    values.update(_rightness(found.mask, judged))
    values.update(_course(found, judged))
    if isinstance(spec, StepFilterSpec):
        values.update(write_judged(folder, mixed, seeds, found, spec, job.random_seed))
    return mask, values


def _majority_of_steps(kept: Mask, mixed: TrajectorySet) -> Mask:
    """Trajectories of which more than half of the steps are kept."""
    counts = np.add.reduceat(kept.astype(np.int64), mixed.offsets[:-1])
    return np.asarray(2 * counts > mixed.lengths)


def _truth(mixed: TrajectorySet) -> Mask | None:
    expert = expert_of(mixed)
    return None if expert is None else np.asarray(mixed.sources == expert)


def _rightness(mask: Mask, truth: Mask | None) -> dict[str, Any]:
    if truth is None:
        return {"accuracy": None, "confusion": None}
    counts = confusion(mask, truth)
    return {"accuracy": counts.accuracy, "confusion": asdict(counts)}


def _course(found: Result, truth: Mask | None) -> dict[str, Any]:
    """How the rounds went; the AUC is over what is not a seed."""
    others = ~found.seeds
    auc = None if truth is None else roc_auc(found.confidence[others], truth[others])
    return {
        "auc": auc if auc is not None and np.isfinite(auc) else None,
        "status": found.status,
        "sound": found.sound,
        "rounds": len(found.rounds),
        "decided_by_round": found.round,
        "threshold": found.threshold,
        "chance_wrong": found.weighed.chance_wrong,
        "kept": int(found.mask.sum()),
        "trace": [_round(done, truth) for done in found.rounds],
    }


def _round(done: Round, truth: Mask | None) -> dict[str, Any]:
    cut = done.cut
    return {
        "round": done.number,
        "attempt": done.attempt,
        "threshold": cut.threshold,
        "status": done.status,
        "changed": done.changed,
        "kept": int(done.selected.sum()),
        **_rightness(done.selected, truth),
        "histogram": {
            "centres": _rounded(cut.centres),
            "counts": [int(count) for count in cut.counts],
            "curve": _rounded(cut.curve),
        },
    }


def _rounded(values: NDArray[np.float64]) -> list[float]:
    """Numbers to be drawn: four significant digits are more than a screen shows."""
    return [float(f"{value:.4g}") for value in values]
