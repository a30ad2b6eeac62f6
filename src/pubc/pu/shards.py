"""Going over one huge dataset with many workers: shards of trajectories, files in between.

A worker opens the dataset by its path (a store is memory-mapped, so it touches its shard
alone), reads networks by their files, and leaves what it found in a file of its own: no
array travels between processes. A shard is a pure function of the dataset and the networks,
and shards depend on the dataset alone; so neither the engine, nor the number of workers,
nor a death on the way changes a bit, and what was finished before a kill is not done again.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pubc import formats
from pubc.engine import WORKER_DIED, Engine, as_error
from pubc.errors import DataError, EnvironmentFailure
from pubc.formats.opening.open_dataset import dataset_key
from pubc.nets import load_tensors, save_tensors
from pubc.pu.judge import Bench, StoredJudge
from pubc.trajectory import TrajectorySet

__all__ = ["Shards", "rate"]

Floats = NDArray[np.float64]
Arrays = dict[str, NDArray[Any]]
Work = Callable[[TrajectorySet], Mapping[str, NDArray[Any]]]

SHARDS = 64
"""A dataset of middle size is cut into about so many."""
LEAST, MOST = 1 << 14, 1 << 21
"""Steps of a shard: fewer are not worth a worker's while, more are much to lose."""


@dataclass(frozen=True, slots=True)
class _Source:
    """Where workers find the dataset, and by what they know that it is the same."""

    path: Path
    reading: formats.ReadOptions
    key: str
    trajectories: int
    steps: int


@dataclass(frozen=True, slots=True)
class _Shard:
    """Trajectories from `first` on and before `last`, the file for what is found, and whose."""

    first: int
    last: int
    path: Path
    question: str


@dataclass(frozen=True, slots=True, eq=False)
class Shards:
    """A dataset spread over the workers of an engine."""

    engine: Engine
    """Who works."""
    data: Path
    """The dataset, where every worker can read it."""
    reading: formats.ReadOptions
    """How to read it."""
    folder: Path
    """Where workers leave what they found; on a cluster, a folder that all machines share."""
    tell: Callable[[str], None] = lambda word: None
    """Told what was just finished."""
    question: str = ""
    """Hash of what is asked of the run, written into each file: it is no other run's."""

    def map(self, work: Work, name: str, trajectories: TrajectorySet) -> Iterator[Arrays]:
        """Apply a function to every shard of the dataset; yield what it found, in order.

        Args:
            work: A function that can be imported, or a `functools.partial` of one.
            name: What it looks for; what was found under this name is taken as it is.
            trajectories: The whole dataset, as the engine's owner has read it.

        Raises:
            PubcError: What a worker raised.
            EnvironmentFailure: A shard failed with worker after worker.
        """
        folder = self.folder.resolve()
        cuts = shard_bounds(trajectories.lengths)
        shards = [
            _Shard(
                first,
                last,
                folder / f"{name}-{first:09d}-{last:09d}.safetensors",
                self.question,
            )
            for first, last in itertools.pairwise(cuts)
        ]
        path = self.data.resolve()
        key = dataset_key(path, self.reading)
        source = _Source(path, self.reading, key, len(trajectories), trajectories.steps)
        todo = [shard for shard in shards if not shard.path.exists()]
        done = len(shards) - len(todo)
        for outcome in self.engine.map(functools.partial(_work, work, source), todo):
            if outcome.error is not None:
                error = as_error(outcome.error)
                if outcome.error.kind == WORKER_DIED:
                    raise EnvironmentFailure(f"{error} What was finished is kept.")
                raise error
            done += 1
            self.tell(f"{name}: shard {done} of {len(shards)}")
        for shard in shards:
            yield _load(shard.path)


def rate(
    judge: StoredJudge, shelf: Path, number: int, trajectories: TrajectorySet, bench: Bench
) -> Floats:
    """Rate trajectories with the networks of a round, over shards where the bench has any.

    Returns:
        Confidence of each member in each trajectory, shape (members, trajectories).
    """
    if bench.shards is None:
        return judge.apply(shelf, number, trajectories, bench)
    work = functools.partial(_rate, judge, shelf.resolve(), number, bench.device)
    parts = bench.shards.map(work, f"round-{number:03d}-scores", trajectories)
    return np.concatenate([part["confidence"] for part in parts], axis=1)


def shard_bounds(lengths: NDArray[np.int64]) -> list[int]:
    """Positions at which trajectories are cut into shards; a function of the lengths alone."""
    total = int(lengths.sum())
    size = min(max(total // SHARDS, LEAST), MOST)
    ends = np.cumsum(lengths)
    cuts = np.searchsorted(ends, np.arange(size, total, size), side="left") + 1
    return [int(cut) for cut in np.unique(np.concatenate([[0], cuts, [len(lengths)]]))]


def _rate(
    judge: StoredJudge, shelf: Path, number: int, device: str, part: TrajectorySet
) -> Mapping[str, NDArray[Any]]:
    bench = Bench(workers=1, device=device)
    return {"confidence": judge.apply(shelf, number, part, bench)}


def _work(work: Work, source: _Source, shard: _Shard) -> None:
    """What a worker does; another one may have done it in the meantime."""
    if shard.path.exists():
        return
    part = _open(source)[shard.first : shard.last]
    found = {name: torch.from_numpy(array) for name, array in work(part).items()}
    about = {"kind": "shard", "question": shard.question}
    save_tensors(shard.path, found, {**about, "first": shard.first, "last": shard.last})


@functools.lru_cache(maxsize=1)
def _open(source: _Source) -> TrajectorySet:
    """The dataset, opened once per worker and version: few formats are mapped like a store."""
    trajectories = formats.read(source.path, source.reading)
    found = len(trajectories), trajectories.steps
    if found != (source.trajectories, source.steps):
        raise DataError(
            f"{source.path}: a worker found {found[0]:,} trajectories with {found[1]:,} steps "
            f"where the run began with {source.trajectories:,} and {source.steps:,}. The data "
            "must not change during a run, and must be the same for all machines.",
            code="changed",
        )
    return trajectories


def _load(path: Path) -> Arrays:
    tensors, _ = load_tensors(path)
    return {name: tensor.numpy() for name, tensor in tensors.items()}
