"""The trainings of a table in stacks: those of one learner and one shape as one computation.

Members may differ in their random seeds and in their data. The policy of each goes into the
cache under the key that a training alone would have, so all that follows is as before; the
policy's config says of how many the stack was. A stack that was begun is found by the list of
its members beside its checkpoints, and goes on from there.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from pubc.errors import LockedError, UsageError
from pubc.experiments.cell import Cell
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stages.assignments import assignment_of, policy_key, selection_of
from pubc.experiments.stages.datasets import data_path
from pubc.experiments.stages.learn import DATA
from pubc.policies import stack_members, stack_shape
from pubc.policies.networks import NetworkPolicy
from pubc.policies.stacked.many_policies import Many, ManySession
from pubc.policies.stacked.stacked_rows import Member
from pubc.policies.train_options import TrainOptions
from pubc.policies.training_run import unfinished
from pubc.results import key_of
from pubc.storage import lock, read_json, write_json
from pubc.trajectory import TrajectorySet

__all__ = ["Candidate", "StackJob", "form_stacks", "plan_member", "train_stack"]

CHECKPOINT_SECONDS = 60.0
"""Between two checkpoints of a stack: what a kill costs."""
_SHORTEST = 0.5
"""A member makes at least this share of the updates of the longest of its stack: one that is
done waits for the others."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A training that may be a member of a stack."""

    key: str
    """Of its policy."""
    kind: str
    """Only trainings of one kind share a stack: same learner, options and sizes."""
    updates: int
    """How many it makes."""


@dataclass(frozen=True, slots=True)
class StackJob:
    """A stack to train: a piece of work for an engine."""

    keys: tuple[str, ...]
    """Of the policies."""
    cells: tuple[Cell, ...]
    """Who asks for each of them."""

    @property
    def name(self) -> str:
        """The same for the same members."""
        return key_of({"policies": list(self.keys)})

    def folder(self, cache: Cache) -> Path:
        """Where it lies while it is trained: NAME.json lists the members, NAME.training is it."""
        return cache.root / "stacks" / self.name


def plan_member(cache: Cache, cell: Cell) -> Candidate | None:
    """What a training needs of a stack; None for one that is made alone.

    Those are learners that cannot be stacked, weighted steps, and learning curves, whose points
    are played while the training lasts.

    Raises:
        DataError: There is nothing to learn from.
    """
    spec = cell.learner
    if spec is None or spec.algo == DATA or spec.curve_every is not None:
        return None
    path = data_path(cache, cell.dataset)
    given = assignment_of(cell, path, selection_of(cell, cache), cache)
    shape = stack_shape(spec.algo, given.lesson.trajectories, TrainOptions(**spec.options))
    if shape is None or given.lesson.weights is not None:
        return None
    sizes, updates = shape
    kind = key_of({"learner": spec.algo, "options": dict(spec.options), "sizes": list(sizes)})
    return Candidate(policy_key(given, cache), kind, updates)


def form_stacks(
    found: Sequence[tuple[Cell, Candidate]], limit: int, cache: Cache
) -> list[StackJob]:
    """What is to be trained: stacks that were begun as they are, and new ones of the rest.

    Args:
        found: Every training that may be a member, those that are made too.
        limit: Most members of a new stack.
        cache: Where policies lie, and stacks that were begun.
    """
    known = {one.key: (cell, one) for cell, one in found}
    jobs = [
        StackJob(keys, tuple(known[key][0] for key in keys))
        for keys in _begun(cache)
        if all(key in known for key in keys)
    ]
    taken = {key for job in jobs for key in job.keys}
    kinds: dict[str, list[Candidate]] = {}
    for key, (_, one) in known.items():
        if key not in taken and not cache.has("policies", key):
            kinds.setdefault(one.kind, []).append(one)
    for members in kinds.values():
        for part in _alike(members):
            count = math.ceil(len(part) / limit)
            for number in range(count):
                keys = tuple(one.key for one in part[number::count])
                jobs.append(StackJob(keys, tuple(known[key][0] for key in keys)))
    return jobs


def _begun(cache: Cache) -> Iterator[tuple[str, ...]]:
    """The members of every stack that was begun and is not done."""
    for listed in sorted((cache.root / "stacks").glob("*.json")):
        told = read_json(listed).get("policies")
        keys = tuple(map(str, told)) if isinstance(told, list) else ()
        if not keys or StackJob(keys, ()).name != listed.stem:
            continue  # the name of a list of ours is its hash
        if all(cache.has("policies", key) for key in keys):
            _clear(listed.with_suffix(""))
        else:
            yield keys


def _alike(members: Sequence[Candidate]) -> Iterator[list[Candidate]]:
    """Members in groups that take about as long."""
    left = sorted(members, key=lambda one: -one.updates)
    while left:
        part = [one for one in left if one.updates >= _SHORTEST * left[0].updates]
        yield part
        left = left[len(part) :]


def train_stack(cache: Cache, job: StackJob) -> str:
    """Train a stack, or go on with it, and put its policies into the cache; its name.

    Raises:
        LockedError: Another process trains it.
        DataError: The losses of all members ceased to be finite.
    """
    spec = job.cells[0].learner
    assert spec is not None
    options = TrainOptions(**spec.options)
    members = _members(cache, job.cells)
    run = Many(
        stack_members(spec.algo, members, options, device=cache.device),
        [str(number) for number in range(len(members))],
        go_on=True,
    )
    folder = job.folder(cache)
    folder.parent.mkdir(parents=True, exist_ok=True)
    write_json(folder.with_suffix(".json"), {"policies": list(job.keys)}, overwrite=True)
    about = {"learner": spec.algo, "stack": {"members": len(members)}}
    session = _CachedStack(
        run, folder, about, resume=True, every=CHECKPOINT_SECONDS, keys=job.keys, cache=cache
    )
    for _ in session.epochs():
        pass
    _clear(folder)
    return job.name


def _members(cache: Cache, cells: Sequence[Cell]) -> list[Member]:
    """What each member learns from; equal selections of one file are one object."""
    shared: dict[tuple[Any, ...], TrajectorySet] = {}
    members = []
    for cell in cells:
        path, selection = data_path(cache, cell.dataset), selection_of(cell, cache)
        given = assignment_of(cell, path, selection, cache)
        # A part is cut from judged steps, which depend on the random seed.
        part = None if cell.part is None else (cell.part, cell.random_seed, repr(cell.filter))
        seen = (path, None if selection is None else selection.tobytes(), part)
        data = shared.setdefault(seen, given.lesson.trajectories)
        members.append(Member(data, cell.random_seed, given.positives))
    return members


def _clear(folder: Path) -> None:
    folder.with_suffix(".json").unlink(missing_ok=True)
    work = unfinished(folder)
    with contextlib.suppress(UsageError, LockedError):  # what is not ours, or in use, stays
        if work.about() is not None:
            with lock(work.path):
                work.remove()


@dataclass(frozen=True, slots=True)
class _CachedStack(ManySession):
    """A stack whose policies go into the cache."""

    keys: tuple[str, ...] = field(kw_only=True)
    """Of the policies, one of each member."""
    cache: Cache = field(kw_only=True)
    """Where they go."""

    def _write(self, history: list[dict[str, Any]]) -> None:
        run = self._run()
        for member, policy in enumerate(run.policies()):
            # One whose loss ceased to be finite is left to a training alone, to fail in words.
            if _is_sound(history[-1], run.names[member]):
                build = partial(self._build, member, policy, history)
                self.cache.make("policies", self.keys[member], build)

    def _build(
        self, member: int, policy: NetworkPolicy, history: list[dict[str, Any]], folder: Path
    ) -> None:
        self._save(folder / "policy", member, policy, history)

    def _check_place(self) -> None:
        """The cache takes a policy that is there for what it is."""


def _is_sound(line: Mapping[str, Any], name: str) -> bool:
    """Whether a member still has losses."""
    return any(metric.endswith(f"@{name}") for metric in line)
