"""Choosing trajectories: the seed positives, and all of 10 % BC and 50 % BC.

One function ranks by return, and serves both. The others name trajectories outright: by
id, by the policy that acted, or by their presence in another set. Everything here returns
positions, so that the choice can be shown and stored before anything is trained.
"""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.trajectory import Problem, TrajectorySet
from pubc.trajectory.numbered_ids import numbered, range_ends

__all__ = [
    "by_ids",
    "by_source",
    "check_seeds",
    "distinct",
    "listed_ids",
    "locate",
    "single_steps",
    "top_count",
    "top_returns",
]

Integers = NDArray[np.int64]

FEW_STEPS = 500
"""Seeds with fewer steps than this are warned about; the paper used 2,000."""


def top_count(trajectories: int, share: float, at_least: int = 1) -> int:
    """How many trajectories a share is: `max(at_least, ceil(share * trajectories))`.

    The product is exact: 0.07 of 100 is 7, although 0.07 * 100 is a little more in floats.

    Raises:
        UsageError: The share is not above 0 and at most 1.
    """
    if not 0 < share <= 1:
        raise UsageError(f"A share of trajectories lies above 0 and is at most 1. Got {share}.")
    exact = Fraction(repr(float(share))) * trajectories
    return min(trajectories, max(at_least, math.ceil(exact)))


def top_returns(
    mixed: TrajectorySet, share: float, *, at_least: int = 1, shortest: int = 1
) -> Integers:
    """Positions of the trajectories with the highest returns, in order of position.

    Args:
        mixed: Trajectories with rewards.
        share: Share of all trajectories to take.
        at_least: Take this many even where the share is less.
        shortest: Pass over trajectories with fewer steps than this.

    Raises:
        DataError: There are no rewards, or some return is not a number.
        UsageError: The share is impossible.
    """
    count = top_count(len(mixed), share, at_least)
    if mixed.columns.rewards is None:
        raise DataError(
            "The dataset has no rewards, so its highest returns are unknown. Name the seed "
            "trajectories instead: --seed-episodes, --seed-from or --seed-source.",
            code="no_rewards",
            field="rewards",
        )
    returns = mixed.total_rewards()
    unknown = ~np.isfinite(returns)
    if unknown.any():
        first = int(np.argmax(unknown))
        raise DataError(
            f"{int(unknown.sum()):,} trajectories have no finite return (first: trajectory "
            f"{mixed.ids[first]}), so they cannot be ranked. Name the seed trajectories "
            "instead: --seed-episodes, --seed-from or --seed-source.",
            code="nonfinite_rewards",
            field="rewards",
            index=first,
            count=int(unknown.sum()),
        )
    long_enough = np.flatnonzero(mixed.lengths >= shortest)
    order = long_enough[np.argsort(-returns[long_enough], kind="stable")]
    return np.sort(order[:count]).astype(np.int64)


def by_ids(mixed: TrajectorySet, ids: Sequence[str]) -> Integers:
    """Positions of the trajectories with the given ids, in the order given.

    Raises:
        UnknownNameError: No trajectory has that id.
        UsageError: An id is named twice.
    """
    position = {str(name): index for index, name in enumerate(mixed.ids)}
    found = []
    for name in map(str, ids):
        if name not in position:
            near = difflib.get_close_matches(name, position, n=3, cutoff=0.1)
            raise UnknownNameError("trajectory", name, near or list(position)[:3])
        found.append(position[name])
    if len(set(found)) != len(found):
        raise UsageError("A seed trajectory is named twice. Name each one once.")
    return np.asarray(found, dtype=np.int64)


def listed_ids(mixed: TrajectorySet, text: str) -> list[str]:
    """The ids in a list such as `3,17,40-45`: commas between, ranges by their ends.

    A range holds the ids with the same beginning and a number from one end to the other, both of
    which exist: `demo_4-demo_9`, or `demo_4-9`. A word that is an id is that id, whatever it holds.

    Args:
        mixed: The trajectories.
        text: The list.

    Raises:
        UsageError: A range runs backwards, its ends are not there, or they are too long.
    """
    known = {str(name) for name in mixed.ids}
    places = {place: name for name in known if (place := numbered(name))}
    found: list[str] = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        ends = None if word in known else range_ends(word)
        if ends is None:
            found.append(word)
            continue
        beginning, low, high = ends
        if high < low:
            raise UsageError(f"The range {word!r} runs backwards. Write the smaller number first.")
        theirs = {n: name for (start, n), name in places.items() if start == beginning}
        if theirs and not {low, high} <= set(theirs):
            first, last = min(theirs), max(theirs)
            gaps = "" if len(theirs) == last - first + 1 else ", with gaps"
            raise UsageError(
                f"The range {word!r} begins or ends with a trajectory that is not there. Ids go "
                f"from {theirs[first]} to {theirs[last]}{gaps}."
            )
        found += [theirs[n] for n in sorted(theirs) if low <= n <= high] or [word]
    return found


def by_source(mixed: TrajectorySet, source: str, count: int, rng: np.random.Generator) -> Integers:
    """Positions of some trajectories of one policy, drawn at random, in order of position.

    Raises:
        DataError: The set does not say which policy acted.
        UnknownNameError: No trajectory comes from that policy.
        UsageError: It has fewer trajectories than asked for.
    """
    if mixed.sources is None:
        raise DataError(
            "The dataset does not say which policy acted, so no source can be named. If it "
            "has a column that does, pass --source-key.",
            code="no_sources",
            field="sources",
        )
    theirs = np.flatnonzero(mixed.sources == source)
    if not len(theirs):
        raise UnknownNameError("source", source, np.unique(mixed.sources).tolist())
    if not 1 <= count <= len(theirs):
        raise UsageError(
            f"Asked for {count:,} seed trajectories of source {source!r}, which has "
            f"{len(theirs):,}. Ask for between 1 and that many."
        )
    return np.sort(rng.choice(theirs, size=count, replace=False)).astype(np.int64)


def locate(mixed: TrajectorySet, seeds: TrajectorySet) -> Integers:
    """Where each seed trajectory lies in the mixed set, -1 where it is not part of it.

    Seeds cut from the mixed set itself are found by their rows; seeds from elsewhere by
    their content, so a copy counts as the trajectory that it is a copy of.
    """
    if seeds.columns is mixed.columns:
        rows = {
            (int(s), int(n)): index
            for index, (s, n) in enumerate(zip(mixed.starts, mixed.lengths, strict=True))
        }
        keys = zip(seeds.starts, seeds.lengths, strict=True)
        return np.asarray([rows.get((int(s), int(n)), -1) for s, n in keys], dtype=np.int64)
    lengths = set(seeds.lengths.tolist())
    known: dict[bytes, int] = {}
    for index in np.flatnonzero(np.isin(mixed.lengths, list(lengths))):
        known.setdefault(_digest(mixed, int(index)), int(index))
    return np.asarray(
        [known.get(_digest(seeds, index), -1) for index in range(len(seeds))], dtype=np.int64
    )


def check_seeds(mixed: TrajectorySet, seeds: TrajectorySet) -> tuple[Problem, ...]:
    """Look at seed positives before anything is trained on them.

    Returns:
        What is worth a warning: too few steps, one trajectory only, copies, more than half
        of the mixed set.

    Raises:
        DataError: The seeds cannot belong to the mixed set at all.
    """
    if not len(seeds):
        raise UsageError("There are no seed trajectories. The filter needs at least one.")
    if not len(mixed):
        raise DataError("The mixed set has no trajectories to filter.", code="empty")
    _check_shapes(mixed, seeds)
    said = []
    if seeds.steps < FEW_STEPS:
        said.append(
            Problem(
                "few_seed_steps",
                "warned",
                f"The seed trajectories have {seeds.steps:,} steps together. Fewer than "
                f"{FEW_STEPS:,} often fail to show what the expert does; the paper used 2,000.",
                "lengths",
                seeds.steps,
            )
        )
    if len(seeds) == 1:
        said.append(
            Problem(
                "one_seed",
                "warned",
                "There is one seed trajectory, so none can be held out to check the result. "
                "A second one would make the estimate of quality much sharper.",
            )
        )
    copies = len(seeds) - len(distinct(seeds))
    if copies:
        said.append(
            Problem(
                "seed_duplicates",
                "warned",
                f"{copies:,} seed trajectories repeat another seed exactly; each counts once.",
                "observations",
                copies,
            )
        )
    if 2 * len(seeds) > len(mixed):
        said.append(
            Problem(
                "many_seeds",
                "warned",
                f"{len(seeds):,} seeds for {len(mixed):,} mixed trajectories: more than half "
                "of the set would be known already.",
                count=len(seeds),
            )
        )
    return tuple(said)


def _check_shapes(mixed: TrajectorySet, seeds: TrajectorySet) -> None:
    here = (mixed.observation_size, mixed.action_size)
    there = (seeds.observation_size, seeds.action_size)
    if here != there:
        raise DataError(
            f"The mixed set has {here[0]} observation and {here[1]} action dimensions, the "
            f"seed trajectories have {there[0]} and {there[1]}. They must come from the same "
            "robot and task; choose the same --observation-keys for both.",
            code="bad_shape",
            field="observations",
        )


def distinct(trajectories: TrajectorySet) -> Integers:
    """Positions of the trajectories that repeat none before them, in order."""
    first: dict[bytes, int] = {}
    for index in range(len(trajectories)):
        first.setdefault(_digest(trajectories, index), index)
    return np.asarray(list(first.values()), dtype=np.int64)


def single_steps(mixed: TrajectorySet) -> TrajectorySet:
    """Every step as a trajectory of its own: the paper's ablation without trajectories."""
    rows = mixed.rows()
    sources = None if mixed.sources is None else np.repeat(mixed.sources, mixed.lengths)
    return TrajectorySet(
        mixed.columns,
        rows,
        np.ones(len(rows), dtype=np.int64),
        np.arange(len(rows)).astype(np.str_),
        sources=sources,
    )


def _digest(trajectories: TrajectorySet, index: int) -> bytes:
    steps = trajectories[index].steps
    digest = hashlib.sha256()
    for column in (steps.observations, steps.actions):
        digest.update(np.ascontiguousarray(column, dtype=np.float64).data)
    return digest.digest()
