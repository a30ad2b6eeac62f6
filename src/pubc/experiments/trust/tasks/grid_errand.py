"""A built-in task with discrete actions: fetch a key on a grid and bring it to the door.

A step is one of five actions: stay, right, left, up, down. Policies differ in which way they
go first and in what they forget, never in how far a step goes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pubc.experiments.trust.pile import Asked, ask
from pubc.experiments.trust.question import Flags, Question
from pubc.experiments.trust.tasks.recording import to_set
from pubc.streams import stream
from pubc.trajectory import TrajectorySet
from pubc.trajectory.arrays import Integers

__all__ = ["ERRANDS", "GridMixture", "record_errands"]

_SIZE = 10
_STEPS = 30
_MOVES = np.array([[0, 0], [1, 0], [-1, 0], [0, 1], [0, -1]])
_SLIP = 0.05
"""Share of steps in which anybody does something at random."""

ERRANDS = ("expert", "other way", "zigzag", "hesitates", "wanders", "forgets", "detour")
"""Who can be asked: along the first axis first; along the second; along the longer one; stays in a
third of the steps; goes anywhere in a third of them; leaves the key; sees a far corner first."""


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
    here = rng.integers(0, _SIZE, (count, 2))
    # Both ways are three steps at least along either axis, so that nobody goes alike by chance.
    key = (here + rng.integers(3, _SIZE - 2, (count, 2))) % _SIZE
    door = (key + rng.integers(3, _SIZE - 2, (count, 2))) % _SIZE
    has_key = np.zeros(count, dtype=np.bool_)
    corner = np.where(key < _SIZE // 2, _SIZE - 1, 0)
    start = rng.integers(0, 4, count)
    own = np.ones((count, _STEPS), dtype=np.bool_)
    seen, done = [], []
    for step in range(_STEPS):
        target = np.where(has_key[:, None], door, key)
        parts = (here, target - here, door - here, _SIZE * has_key[:, None])
        seen.append(np.concatenate(parts, axis=1) / _SIZE)
        plain = _choose("expert", here, target, rng)
        if who == "forgets":
            action = _choose("expert", here, door, rng)
            own[:, step] = False
        elif who == "detour":
            away = (step >= start) & (step < start + 10)
            own[:, step] = ~away
            action = np.where(away, _choose("expert", here, corner, rng), plain)
        else:
            action = _choose(who, here, target, rng)
            own[:, step] = who == "expert"
        slip = rng.random(count) < _SLIP
        action = np.where(slip, rng.integers(0, len(_MOVES), count), action)
        done.append(action[:, None])
        here = np.clip(here + _MOVES[action], 0, _SIZE - 1)
        has_key |= (here == key).all(axis=1)
    return to_set(np.stack(seen, 1), np.stack(done, 1), own, who)


def _choose(who: str, here: Integers, target: Integers, rng: np.random.Generator) -> Integers:
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
