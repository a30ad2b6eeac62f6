"""A built-in task with discrete actions: fetch a key on a grid and bring it to the door.

A step is one of five actions: stay, right, left, up, down. Policies differ in which way they
go first and in what they forget, never in how far a step goes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pubc.experiments.trust.pile import Asked, ask
from pubc.experiments.trust.question import Flags, Question
from pubc.experiments.trust.recording import to_set
from pubc.streams import stream
from pubc.trajectory import TrajectorySet
from pubc.trajectory.arrays import Integers

__all__ = ["ERRANDS", "GridMixture", "record_errands"]

_SIZE = 12
_STEPS = 40
_MOVES = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
_SLIP = 0.05
"""Share of steps in which anybody does something at random."""

ERRANDS = ("expert", "other way", "zigzag", "hesitates", "wanders", "forgets", "detour")
"""Who can be asked: along the first axis first; along the second; along the longer one; stays in a
third of the steps; goes anywhere in a third of them; leaves the key; sees a corner first."""


@dataclass(frozen=True, slots=True)
class GridMixture:
    """A pile of errands; calling it with family and name makes the question."""

    counts: tuple[tuple[str, int], ...]
    """Who is in the pile, and how often."""
    asked: Asked
    """What is asked."""

    task = "grid errand"

    def __call__(self, family: str, name: str) -> Question:
        """Record everybody and ask."""
        parts = [
            record_errands(who, count, stream(0, family, name, who)) for who, count in self.counts
        ]
        return ask((family, name), parts, self.asked, stream(0, family, name, "order"))


def record_errands(who: str, count: int, rng: np.random.Generator) -> TrajectorySet:
    """So many errands of one policy, all at once."""
    here, key, door = rng.integers(0, _SIZE, (3, count, 2))
    # Everybody has some way to go.
    key = np.where(np.abs(key - here).sum(1, keepdims=True) < 8, (here + _SIZE // 2) % _SIZE, key)
    has_key = np.zeros(count, dtype=np.bool_)
    corner = (_SIZE - 1) * rng.integers(0, 2, (count, 2))
    start = rng.integers(2, 8, count)
    own = np.ones((count, _STEPS), dtype=np.bool_)
    seen, done = [], []
    for step in range(_STEPS):
        seen.append(np.concatenate([here, key, door, has_key[:, None]], axis=1) / _SIZE)
        target = np.where(has_key[:, None], door, key)
        plain = _choose("expert", here, target, step, rng)
        if who == "forgets":
            action = _choose("expert", here, door, step, rng)
            own[:, step] = False
        elif who == "detour":
            away = (step >= start) & (step < start + 10)
            own[:, step] = ~away
            action = np.where(away, _choose("expert", here, corner, step, rng), plain)
        else:
            action = _choose(who, here, target, step, rng)
            own[:, step] = who == "expert"
        slip = rng.random(count) < _SLIP
        action = np.where(slip, rng.integers(0, len(_MOVES), count), action)
        done.append(action[:, None])
        here = np.clip(here + _MOVES[action], 0, _SIZE - 1)
        has_key |= (here == key).all(axis=1)
    return to_set(np.stack(seen, 1), np.stack(done, 1), own, who)


def _choose(
    who: str, here: Integers, target: Integers, step: int, rng: np.random.Generator
) -> Integers:
    """The action of each, shape (trajectories,)."""
    way = target - here
    second: Flags = way[:, 0] == 0
    if who == "other way":
        second = way[:, 1] != 0
    elif who == "zigzag":
        second = np.abs(way[:, 1]) > np.abs(way[:, 0])
    axis = second.astype(np.int64)
    along = np.take_along_axis(way, axis[:, None], axis=1)[:, 0]
    action = np.where(along == 0, 0, 1 + 2 * axis + (along < 0))
    odd = rng.random(len(way)) < 1 / 3
    if who == "hesitates":
        action = np.where(odd, 0, action)
    elif who == "wanders":
        action = np.where(odd, rng.integers(1, len(_MOVES), len(way)), action)
    return np.asarray(action, dtype=np.int64)
