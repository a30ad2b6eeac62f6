"""Groups of alike trajectories: what to show to somebody who has not marked anything yet."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pubc.streams import Key

__all__ = ["Group", "alike", "main_directions", "squares"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

_DIMENSIONS = 8
"""Main directions of the features that distances are measured in."""
_STARTS = 8
"""Random starts; the tightest grouping is taken."""
_SWEEPS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Trajectories that are alike."""

    members: Integers
    """Their positions, the most typical first."""


def alike(features: Floats, groups: int, random_seed: int = 0) -> list[Group]:
    """Part trajectories into groups of alike ones by k-means, the largest group first.

    Args:
        features: Standardised numbers, shape (trajectories, features).
        groups: How many; fewer where there are not as many different trajectories.
        random_seed: Draws the starts.
    """
    points = main_directions(features)
    count = min(groups, len(np.unique(points, axis=0)))
    if not count:
        return []
    best, tightest = np.zeros(len(points), dtype=np.int64), np.inf
    for number in range(_STARTS):
        rng = Key(random_seed, ("groups", str(number))).rng()
        owner, loss = _k_means(points, count, rng)
        if loss < tightest:
            best, tightest = owner, loss
    found = []
    for number in range(count):
        members = np.flatnonzero(best == number)
        if len(members):
            distance = squares(points[members], points[members].mean(axis=0, keepdims=True))
            found.append(Group(members[np.argsort(distance[:, 0], kind="stable")]))
    return sorted(found, key=lambda group: (-len(group.members), int(group.members[0])))


def main_directions(features: Floats) -> Floats:
    """The features along their main directions, which leaves out what repeats or is noise."""
    if not len(features):
        return features
    centred = features - features.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    order = np.argsort(-values)[:_DIMENSIONS]
    return np.asarray(centred @ vectors[:, order])


def _k_means(points: Floats, count: int, rng: np.random.Generator) -> tuple[Integers, float]:
    centres = _spread_out(points, count, rng)
    owner = np.full(len(points), -1)
    for _ in range(_SWEEPS):
        distance = squares(points, centres)
        before, owner = owner, distance.argmin(axis=1)
        if np.array_equal(before, owner):
            break
        for number in range(count):
            mine = points[owner == number]
            # A centre that lost everybody goes where the worst served trajectory is.
            centres[number] = (
                mine.mean(axis=0) if len(mine) else points[distance.min(axis=1).argmax()]
            )
    return owner, float(squares(points, centres).min(axis=1).sum())


def _spread_out(points: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Starting centres far from each other, drawn by squared distance (k-means++)."""
    chosen = [points[rng.integers(len(points))]]
    for _ in range(count - 1):
        distance = squares(points, np.asarray(chosen)).min(axis=1)
        total = distance.sum()
        share = distance / total if total > 0 else np.full(len(points), 1 / len(points))
        chosen.append(points[rng.choice(len(points), p=share)])
    return np.asarray(chosen, dtype=np.float64)


def squares(points: Floats, centres: Floats) -> Floats:
    """Squared distance of every point to every centre, shape (points, centres)."""
    cross = points @ centres.T
    sums = (points**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)[None, :]
    return np.asarray(np.maximum(sums - 2 * cross, 0.0))
