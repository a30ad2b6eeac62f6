"""From a recipe to a dataset on disk: play, shuffle, write.

Everything that decides the content is in the request; the number of processes, the order in
which they finish and how often the run was killed are not. The trajectories lie in a work
folder beside the target until the dataset is complete, and a run that is started again
with the same request goes on from there.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pubc.collect.mixture_recipes import NOISE
from pubc.collect.put_together import assemble, seed_positives
from pubc.collect.request import Request
from pubc.collect.source_quota import Quota, SourceProgress
from pubc.collect.worker_pool import Sizes, Task, WorkerPool
from pubc.errors import EnvironmentFailure, PubcError, UsageError
from pubc.formats import claim_dataset, save_sealed
from pubc.formats.opening.detect import format_for_new
from pubc.storage import MANIFEST, WorkFolder, claim, hash_file, lock, sealed_file, write_json
from pubc.storage.manifest import read_manifest, sidecar
from pubc.tensor_files import proves_itself
from pubc.trajectory import TrajectorySet

__all__ = ["Collected", "Progress", "collect", "collecting", "work_folder"]

Standing = Mapping[str, str | None]
"""What stands at targets, by their names; None where nothing does."""
SEED_SOURCE = "seed positives"
_COLLECTION = "collection"
"""Names, in the manifest of a result, the request that it is the answer to."""
_PARTS = ("[0-9][0-9]-*-*x*.safetensors",)
"""Every file of a collection that is not complete."""
_COPIES = 3.6
"""Parts, flat columns and the target, with a fifth to spare."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What was written."""

    path: Path
    """The mixture."""
    seed_path: Path | None
    """The seed positives: a dataset, or the list of the marked ids; None without any."""
    trajectories: int
    """Trajectories in the mixture."""
    steps: int
    """Steps in the mixture."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a collection is."""

    steps: int
    """Environment steps played, with those of earlier runs that were resumed."""
    resumed: int
    """How many of them an earlier run had played."""
    done: float
    """Share of the work that is done, between 0 and 1."""
    written: Collected | None = None
    """The result, in the last report."""


def collect(
    request: Request, out: Path | str, *, processes: int = 2, overwrite: bool = False
) -> Collected:
    """Collect a dataset and write it; see `collecting` for progress on the way.

    Example:
        >>> from pubc.collect import Request, collect, find
        >>> request = Request(find("ant:E+W"), steps_per_source=100_000)
        >>> collect(request, "ant-mixed.npz").trajectories  # doctest: +SKIP
        208
    """
    *_, last = collecting(request, out, processes=processes, overwrite=overwrite)
    assert last.written is not None
    return last.written


def collecting(
    request: Request, out: Path | str, *, processes: int = 2, overwrite: bool = False
) -> Iterator[Progress]:
    """Collect a dataset, with a report after every few trajectories.

    Args:
        request: What to collect.
        out: Where to write it; the suffix picks the format. The seed positives go beside
            it, as NAME-seed.SUFFIX.
        processes: Workers. The result does not depend on it.
        overwrite: Replace an earlier dataset at `out`.

    Yields:
        Progress; the last one has `written`.

    Raises:
        UsageError: `out` exists, or the leftovers of another request are in the way.
        DataError: A policy does not fit the environment.
        EnvironmentFailure: The disk is full, or a worker was killed. Finished trajectories
            are kept, and the same call goes on.
    """
    out = Path(out)
    format_for_new(out)
    if processes < 1:
        raise UsageError(f"--processes must be at least 1. Got {processes}.")
    place = WorkFolder(work_folder(out), "collection", _PARTS, proves_itself)
    work, found = place.path, _prepare(request, out, place, overwrite)
    under_way: list[SourceProgress] = []
    written = None
    with lock(work):
        try:
            for progress in _play(request, work, processes, under_way):
                yield progress
            written = _write(request, out, work, under_way, found)
        finally:
            # A refusal before the first trajectory leaves nothing worth keeping.
            if written is not None or not any(work.glob("*.safetensors")):
                place.remove()
    yield Progress(progress.steps, progress.resumed, 1.0, written)


def work_folder(out: Path) -> Path:
    """Where the parts of a dataset lie until it is complete."""
    return out.absolute().with_name(f".{out.name}.parts")


def _prepare(request: Request, out: Path, work: WorkFolder, overwrite: bool) -> Standing:
    """Check the targets and open the work folder; what stands there that may be replaced."""
    plan, known = request.plan(), work.about()
    resuming = known is not None and known.get("plan") == plan
    if known is not None and not resuming and not overwrite:
        raise UsageError(
            f"{work.path} holds the parts of another collection. Repeat that command to finish "
            "it, choose another name, or pass --force to discard them."
        )
    found = {path.name: _standing(path) for path in request.targets(out)} if overwrite else {}
    if known is not None and resuming and not overwrite:
        # It may replace what it was allowed to when it began, and what it wrote itself.
        allowed = known["found"] if isinstance(known.get("found"), dict) else {}
        own = [path for path in request.targets(out) if _is_answer(path, request)]
        found = {**allowed, **{path.name: _standing(path) for path in own}}
    _claim(request, out, found)
    if known is not None and not resuming:
        with lock(work.path):
            work.remove()
    work.begin({"plan": plan, "found": found})
    return found


def _standing(path: Path) -> str | None:
    """What tells a result that stands somewhere from any other."""
    manifest = path / MANIFEST if path.is_dir() else sidecar(path)
    if manifest.is_file():
        return hash_file(manifest)
    return "without a manifest" if os.path.lexists(path) else None


def _is_answer(path: Path, request: Request) -> bool:
    """Whether what stands at a target is the answer to a request."""
    with contextlib.suppress(PubcError, OSError):
        return read_manifest(path).get(_COLLECTION) == request.digest()
    return False


def _claim(request: Request, out: Path, found: Standing) -> None:
    """See that the targets may be written, over what was found there if it still stands."""
    for target in request.targets(out):
        force = target.name in found and found[target.name] == _standing(target)
        if request.seed_inside and target != out:
            claim(target, "dataset", force=force, file=True)  # a list of ids
        else:
            claim_dataset(target, force=force)


def _play(
    request: Request, work: Path, processes: int, under_way: list[SourceProgress]
) -> Iterator[Progress]:
    """Play what is missing, filling `under_way`; the last report is always made."""
    with WorkerPool(_setup(request), processes, work) as pool:
        sizes = pool.sizes()
        under_way += _begin(request, work, sizes, processes)
        _check_space(under_way, sizes, work)
        resumed = sum(each.steps for each in under_way)
        by_source = {each.source: each for each in under_way}
        yield Progress(resumed, resumed, _share(under_way))
        for answer in pool.work(
            lambda: _next_task(under_way),
            lambda: itertools.chain.from_iterable(each.limits() for each in under_way),
        ):
            by_source[answer.source].record(answer)
            yield Progress(sum(each.steps for each in under_way), resumed, _share(under_way))


def _next_task(under_way: list[SourceProgress]) -> Task | None:
    for each in under_way:
        if (task := each.next_task()) is not None:
            return task
    return None


def _setup(request: Request) -> dict[str, Any]:
    recipe = request.recipe
    players = {s.name: s for s in recipe.sources if s.policy is not None}
    if request.seed_steps and not request.seed_inside:
        players[SEED_SOURCE] = recipe.expert
    return {
        "environment": recipe.environment,
        "random_seed": request.random_seed,
        "trusted": recipe.trusted,
        "sources": {
            name: {
                "policy": source.policy,
                "action_noise": source.action_noise,
                # Seed positives are the expert's own steps.
                "lapses": [] if name == SEED_SOURCE else [asdict(one) for one in source.lapses],
            }
            for name, source in players.items()
        },
    }


def _begin(request: Request, work: Path, sizes: Sizes, processes: int) -> list[SourceProgress]:
    recipe = request.recipe
    quotas = {s.name: request.quota(s.share) for s in recipe.sources if s.name != NOISE}
    if request.seed_steps and not request.seed_inside:
        quotas[SEED_SOURCE] = Quota(request.seed_steps, None)
    under_way = [
        SourceProgress(source, number, quota, sizes.time_limit, work, processes)
        for number, (source, quota) in enumerate(quotas.items())
    ]
    if recipe.environment.startswith("trifinger"):
        # Half a minute each: a part of several would lose minutes to a kill.
        for each in under_way:
            each.per_part = 1
    for each in under_way:
        each.resume()
    return under_way


def _share(under_way: list[SourceProgress]) -> float:
    """Share of the work done; a trajectory that is not played yet counts as a long one."""
    done = total = 0.0
    for each in under_way:
        if each.quota.steps is not None:
            done, total = done + each.steps, total + each.quota.steps
        else:
            done += each.trajectories * each.time_limit
            total += (each.quota.trajectories or 0) * each.time_limit
    return done / total


def _check_space(under_way: list[SourceProgress], sizes: Sizes, work: Path) -> None:
    """Refuse to begin what cannot fit; only step quotas say beforehand how much it is."""
    steps = sum(each.quota.steps or 0 for each in under_way)
    needed = _COPIES * steps * 4 * (sizes.observation_size + sizes.action_size + 1)
    free = shutil.disk_usage(work).free
    if needed > free:
        raise EnvironmentFailure(
            f"Collecting {steps:,} steps takes about {needed / 2**20:,.0f} MiB beside {work}, "
            f"and {free / 2**20:,.0f} MiB are free. Nothing was played."
        )


def _write(
    request: Request, out: Path, work: Path, under_way: list[SourceProgress], found: Standing
) -> Collected:
    mixture = [each for each in under_way if each.source != SEED_SOURCE]
    metadata = request.metadata()
    trajectories, marked = assemble(request, mixture, work, metadata)
    beside = request.seed_path(out)
    # Hours have passed: what came to be there meanwhile is somebody's.
    _claim(request, out, found)
    for each in under_way:
        if each.source == SEED_SOURCE and beside is not None:
            seeds = seed_positives(each, request.recipe.expert.name, metadata)
            _save(request, beside, seeds)
    if request.seed_inside and beside is not None:
        about = {_COLLECTION: request.digest()}
        with sealed_file(beside, kind="dataset", overwrite=True, about=about) as place:
            write_json(place, {"dataset": out.name, "ids": marked})
    # The mixture comes last: where it stands, everything stands.
    _save(request, out, trajectories)
    return Collected(out, beside, len(trajectories), trajectories.steps)


def _save(request: Request, path: Path, trajectories: TrajectorySet) -> None:
    about = {"trajectories": len(trajectories), "steps": trajectories.steps}
    told = {**about, _COLLECTION: request.digest(), "metadata": dict(trajectories.metadata)}
    save_sealed(path, trajectories, overwrite=True, about=told)
