"""Put a mixture together: what counts of every source, noise, and an order that says nothing.

The columns are written to a hidden folder trajectory by trajectory and opened again as memory
maps, so a mixture larger than memory is assembled with one trajectory in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.lib import format as npy

from pubc.collect.finished_parts import read_trajectory
from pubc.collect.lapses import EXPERT_STEPS
from pubc.collect.mixture_recipes import NOISE
from pubc.collect.noise import Ranges, draw, ranges
from pubc.collect.request import Request
from pubc.collect.source_quota import Kept, Quota, SourceProgress
from pubc.errors import UsageError
from pubc.storage import atomic_file
from pubc.storage.disk import disk_words, temporary
from pubc.streams import stream
from pubc.trajectory import Array, Columns, Trajectory, TrajectorySet, concatenate

__all__ = ["assemble", "seed_positives"]

_COLUMNS = ("observations", "actions", "rewards", "terminals", "timeouts")


@dataclass(frozen=True, slots=True)
class _Item:
    """A trajectory of the mixture before it is read or drawn."""

    source: str
    index: int
    length: int
    terminal: bool
    kept: Kept | None
    """Where it lies; None for noise."""


def assemble(
    request: Request, under_way: list[SourceProgress], work: Path, metadata: Mapping[str, Any]
) -> tuple[TrajectorySet, list[str]]:
    """The mixture over memory-mapped columns, and the ids marked as seed positives."""
    items = [
        _Item(each.source, index, kept.length, kept.terminal, kept)
        for each in under_way
        for index, kept in enumerate(each.kept())
    ]
    within = None
    noisy = next((s for s in request.recipe.sources if s.name == NOISE), None)
    if noisy is not None:
        within = ranges(_read(item).steps for item in items)
        items += _noise(items, request.quota(noisy.share), request.random_seed)
    order = stream(request.random_seed, "order").permutation(len(items))
    shuffled = [items[position] for position in order]
    marked = _marked(request, shuffled)
    told = bool(request.recipe.expert.lapses)
    # A name that goes with the process: nobody has to prove what is in it.
    with disk_words(work):
        flat = temporary(work / "flat")
        flat.mkdir()
    finals = _write_columns(shuffled, within, request.random_seed, flat, told)
    extras = {EXPERT_STEPS: _map(flat, f"extras/{EXPERT_STEPS}")} if told else {}
    trajectories = TrajectorySet.from_flat(
        Columns(**{name: _map(flat, name) for name in _COLUMNS}, extras=extras),
        [item.length for item in shuffled],
        sources=np.asarray([item.source for item in shuffled], dtype=np.str_),
        final_observations=finals,
        has_final=np.ones(len(shuffled), dtype=np.bool_),
        metadata={**metadata, **({"seed_positives": marked} if marked else {})},
    )
    return trajectories, marked


def seed_positives(each: SourceProgress, source: str, metadata: Mapping[str, Any]) -> TrajectorySet:
    """The seed positives as a set of their own, in the order they were played."""
    sets = []
    for index, kept in enumerate(each.kept()):
        one = read_trajectory(kept.part, kept.position, most=kept.length, source=source)
        sets.append(
            TrajectorySet.from_flat(
                one.steps,
                [len(one)],
                ids=[f"seed-{index}"],
                sources=np.asarray([source], dtype=np.str_),
                final_observations=np.asarray(one.final_observation)[None],
                has_final=np.ones(1, dtype=np.bool_),
            )
        )
    joined = concatenate(sets)
    return TrajectorySet.from_flat(
        joined.columns,
        joined.lengths,
        ids=joined.ids,
        sources=joined.sources,
        final_observations=joined.final_observations,
        has_final=joined.has_final,
        metadata=metadata,
    )


def _noise(others: list[_Item], quota: Quota, random_seed: int) -> Iterator[_Item]:
    """Noise with the lengths and ends of the others, in a random order, as often as needed."""
    rng = stream(random_seed, NOISE, "lengths")
    index, left = 0, quota.steps
    while True:
        for position in rng.permutation(len(others)):
            like = others[position]
            if left == 0 or index == quota.trajectories:
                return
            length = like.length if left is None else min(like.length, left)
            left = None if left is None else left - length
            yield _Item(NOISE, index, length, like.terminal and length == like.length, None)
            index += 1


def _marked(request: Request, items: list[_Item]) -> list[str]:
    """The ids of some of the expert's trajectories, in order of position."""
    expert = request.recipe.expert.name
    own = [position for position, item in enumerate(items) if item.source == expert]
    if request.seed_inside > len(own):
        raise UsageError(
            f"--seed-inside {request.seed_inside} asks for more trajectories than the "
            f"{len(own)} of {expert!r} in the mixture."
        )
    rng = stream(request.random_seed, "seed inside")
    chosen = rng.permutation(len(own))[: request.seed_inside]
    return [str(own[place]) for place in sorted(chosen.tolist())]


def _read(item: _Item) -> Trajectory:
    assert item.kept is not None
    kept = item.kept
    return read_trajectory(kept.part, kept.position, most=kept.length, source=item.source)


def _write_columns(
    items: list[_Item], within: Ranges | None, random_seed: int, folder: Path, told: bool
) -> Array:
    """Write every column in order; the final observations are few and come back.

    Args:
        items: The mixture in its order.
        within: Ranges for noise.
        random_seed: Names the noise.
        folder: Where to write.
        told: Whether the mixture says of every step if it is the expert's own.
    """
    steps, finals = sum(item.length for item in items), []
    with contextlib.ExitStack() as stack:
        files: dict[str, BinaryIO] = {}
        for item in items:
            one = _trajectory(item, within, random_seed)
            columns = list(one.steps.named())
            if told and EXPERT_STEPS not in one.steps.extras:
                columns.append((f"extras/{EXPERT_STEPS}", np.zeros(len(one), dtype=np.bool_)))
            for name, values in columns:
                if name not in files:
                    place = stack.enter_context(atomic_file(_place(folder, name)))
                    files[name] = stack.enter_context(place.open("wb"))
                    _header(files[name], values, steps)
                files[name].write(np.ascontiguousarray(values).data)
            finals.append(np.array(one.final_observation))
    return np.stack(finals)


def _trajectory(item: _Item, within: Ranges | None, random_seed: int) -> Trajectory:
    if item.kept is not None:
        return _read(item)
    assert within is not None
    return draw(
        within,
        item.length,
        terminal=item.terminal,
        source=item.source,
        index=item.index,
        rng=stream(random_seed, NOISE, item.index),
    )


def _header(file: BinaryIO, like: Array, steps: int) -> None:
    npy.write_array_header_1_0(
        file,
        {
            "descr": npy.dtype_to_descr(like.dtype),
            "fortran_order": False,
            "shape": (steps, *like.shape[1:]),
        },
    )


def _place(folder: Path, name: str) -> Path:
    return folder / f"{name.replace('/', '-')}.npy"


def _map(folder: Path, name: str) -> Array:
    mapped: Array = np.load(_place(folder, name), mmap_mode="r", allow_pickle=False)
    return mapped
