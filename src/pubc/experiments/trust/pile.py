"""Put a question together: who is in the pile, in which order, and which ones are the seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pubc.experiments.trust.question import Flags, Question
from pubc.experiments.trust.tasks.recording import OWN
from pubc.trajectory import Columns, TrajectorySet, concatenate
from pubc.trajectory.arrays import Integers, Words

__all__ = ["Asked", "ask", "draw", "with_columns"]


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked about a pile."""

    seeds: int
    """How many trajectories the user calls the expert's, wrong ones among them."""
    experts: tuple[str, ...] = ("expert",)
    """Sources that are to be found."""
    answerable: bool = True
    """See `Question`."""
    wrong: int = 0
    """How many of the seeds are not the expert's, each of another source where possible."""
    repeated: int = 0
    """How often the first seed is named again."""
    bad: int = 0
    """How many others the user knows to be bad."""
    seeds_from: tuple[str, ...] = ()
    """Sources of the seeds, in turn; those to be found if empty."""


def draw(whole: TrajectorySet, source: str, count: int, rng: np.random.Generator) -> TrajectorySet:
    """So many trajectories of a source, at random."""
    assert whole.sources is not None
    own = np.flatnonzero(whole.sources == source)
    return whole[rng.permutation(own)[:count]]


def ask(
    place: tuple[str, str], parts: Sequence[TrajectorySet], asked: Asked, rng: np.random.Generator
) -> Question:
    """A question about some trajectories in an order that says nothing.

    Args:
        place: Family and name.
        parts: The trajectories, with sources; steps without fault are the extra `OWN`.
        asked: What is asked.
        rng: Source of the order and of the seeds.
    """
    joined = concatenate(parts)
    mixed = concatenate([joined[rng.permutation(len(joined))]])
    assert mixed.sources is not None
    sources = mixed.sources
    truth = np.isin(sources, asked.experts)
    pool = np.unique(sources[~truth]).tolist()
    seeds = _in_turn(sources, asked.seeds_from or asked.experts, asked.seeds - asked.wrong, rng)
    wrong = _in_turn(sources, rng.permutation(pool).tolist(), asked.wrong, rng)
    others = np.setdiff1d(np.flatnonzero(~truth), wrong)
    bad = rng.permutation(others)[: asked.bad].tolist()
    own = mixed.columns.extras.get(OWN)
    return Question(
        *place,
        mixed=_bare(mixed),
        seeds=(*rng.permutation([*seeds, *wrong]).tolist(), *[seeds[0]] * asked.repeated),
        bad=tuple(bad),
        truth=truth,
        answerable=asked.answerable,
        wrong_seeds=tuple(wrong),
        expert_steps=None if own is None else own & _by_step(truth, mixed) | _lapses(mixed, own),
    )


def with_columns(
    trajectories: TrajectorySet, observations: object = None, actions: object = None
) -> TrajectorySet:
    """The same trajectories with other observations or actions, given for the steps in order."""
    flat = trajectories.flat()
    columns = replace(
        flat,
        observations=flat.observations if observations is None else np.asarray(observations),
        actions=flat.actions if actions is None else np.asarray(actions),
    )
    return TrajectorySet.from_flat(
        columns, trajectories.lengths, ids=trajectories.ids, sources=trajectories.sources
    )


def _in_turn(
    sources: Words, names: Sequence[str], count: int, rng: np.random.Generator
) -> list[int]:
    """So many positions at random, one of each name in turn."""
    queues = [rng.permutation(np.flatnonzero(sources == name)).tolist() for name in names]
    turns = [queue[turn] for turn in range(len(sources)) for queue in queues if turn < len(queue)]
    return turns[:count]


def _by_step(flags: Flags, mixed: TrajectorySet) -> Flags:
    return np.asarray(np.repeat(flags, mixed.lengths))


def _lapses(mixed: TrajectorySet, own: Flags) -> Flags:
    """Steps without fault in trajectories of others that have some steps with one."""
    partly = np.add.reduceat(~own, mixed.offsets[:-1]) > 0
    return own & _by_step(np.asarray(partly), mixed)


def _bare(mixed: TrajectorySet) -> TrajectorySet:
    """The pile as a user has it: no column says whose a step is, and ids are positions."""
    flat = mixed.flat()
    columns = Columns(flat.observations, flat.actions, flat.rewards, flat.terminals, flat.timeouts)
    positions: Integers = np.arange(len(mixed))
    return TrajectorySet.from_flat(
        columns, mixed.lengths, ids=positions.astype(np.str_), sources=mixed.sources
    )
