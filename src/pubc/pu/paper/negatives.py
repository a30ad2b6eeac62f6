"""The seven mismatched pairs that stand in for what the expert does not do.

A state and an action that were not recorded together make a negative. States and actions
come from the positives (+), from the mixed set, or from the uniform distribution between
the smallest and the largest value of each dimension (~). "Recorded" means anywhere in the
raw dataset, not only among the rows that were drawn: the set is streamed past the made-up
pairs, so that a set larger than memory can be compared too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError, UsageError
from pubc.pu.pile_statistics import Ranges
from pubc.trajectory import Columns, TrajectorySet

__all__ = ["EQUAL_SHARES", "KINDS", "Pairs", "make_negatives", "share_out", "take_pairs"]

Floats = NDArray[np.float32]
Hashes = NDArray[np.uint64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

KINDS: tuple[tuple[str, str], ...] = (
    ("+", "mix"),
    ("+", "~"),
    ("mix", "+"),
    ("mix", "~"),
    ("~", "+"),
    ("~", "mix"),
    ("~", "~"),
)
"""Where the state and where the action of each kind come from, n1 to n7."""
EQUAL_SHARES = (1.0,) * len(KINDS)
"""The paper's choice: as many of each kind."""
TRIES = 32
"""Draws before a pair that keeps being a recorded one is replaced by another of its kind."""
CHUNK = 2048
"""Rows taken from a mapped file at a time: each may touch a page or sixteen."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """States and actions, row by row recorded together."""

    observations: Floats
    """Shape (rows, observation dimensions)."""
    actions: Floats
    """Shape (rows, action dimensions)."""

    def __len__(self) -> int:
        return len(self.observations)

    def rows(self, which: Integers) -> Pairs:
        """Some of them."""
        return Pairs(self.observations[which], self.actions[which])


def take_pairs(trajectories: TrajectorySet, positions: Integers) -> Pairs:
    """The steps at the given positions, in file order, a few pages of a mapped file at a time."""
    ordered = np.sort(positions)
    observations = np.empty((len(ordered), trajectories.observation_size), np.float32)
    actions = np.empty((len(ordered), trajectories.action_size), np.float32)
    for start in range(0, len(ordered), CHUNK):
        part = slice(start, start + CHUNK)
        taken = trajectories.take_steps(ordered[part])
        observations[part], actions[part] = taken.observations, taken.actions
        trajectories.release()
    return Pairs(observations, actions)


def share_out(count: int, shares: Sequence[float]) -> list[int]:
    """Split a count by shares; what rounding leaves over goes to the largest remainders."""
    weights = np.asarray(shares, dtype=np.float64)
    if weights.shape != (len(KINDS),) or (weights < 0).any() or not weights.sum() > 0:
        raise UsageError(
            f"The shares n1 to n7 are {len(KINDS)} numbers of at least 0, not all 0. "
            f"Got {list(shares)}."
        )
    exact = count * weights / weights.sum()
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(-(exact - counts), kind="stable")
    counts[order[: count - int(counts.sum())]] += 1
    return [int(c) for c in counts]


def make_negatives(
    positives: Pairs,
    mixed: Pairs,
    count: int,
    *,
    ranges: tuple[Ranges, Ranges],
    rng: np.random.Generator,
    shares: Sequence[float] = EQUAL_SHARES,
    recorded: Callable[[], Iterable[Columns]] = tuple,
) -> Pairs:
    """Make pairs that were not recorded together.

    Args:
        positives: Recorded pairs of the current positives.
        mixed: Recorded pairs of the mixed set.
        count: Negatives to make.
        ranges: Of the observations and of the actions, for the uniform draws.
        rng: Source of all draws.
        shares: Weights of the seven kinds.
        recorded: Streams every pair of the raw dataset, beside the two pools.

    Returns:
        The negatives, kind after kind in the order of `KINDS`.

    Raises:
        DataError: A kind keeps drawing recorded pairs, for instance because all actions
            are equal.
    """
    maker = _Maker(positives, mixed, ranges, rng)
    kinds = np.repeat(np.arange(len(KINDS)), share_out(count, shares))
    made = Pairs(
        np.empty((count, positives.observations.shape[1]), np.float32),
        np.empty((count, positives.actions.shape[1]), np.float32),
    )
    wrong = np.arange(count)
    for _ in range(TRIES):
        maker.fill(made, kinds, wrong)
        wrong = wrong[maker.recorded(made.rows(wrong), recorded)]
        if not len(wrong):
            return made
    for kind in np.unique(kinds[wrong]):
        _replace_by_others(made, kind, np.flatnonzero(kinds == kind), wrong, rng)
    return made


def _replace_by_others(
    made: Pairs, kind: int, rows: Integers, wrong: Integers, rng: np.random.Generator
) -> None:
    """Put other pairs of the kind in the place of those that no draw made right."""
    right, bad = np.setdiff1d(rows, wrong), np.intersect1d(rows, wrong)
    if not len(right):
        state, action = KINDS[kind]
        raise DataError(
            f"All {len(rows):,} negatives of the kind (s{state}, a{action}) are recorded pairs "
            f"after {TRIES} draws, so states and actions cannot be mismatched. Usually all "
            "actions, or all states, are equal.",
            code="no_negatives",
            field="actions",
            count=len(rows),
        )
    again = right[rng.integers(0, len(right), size=len(bad))]
    made.observations[bad], made.actions[bad] = made.observations[again], made.actions[again]


class _Maker:
    """Draws pairs of a kind, and knows which pairs are recorded ones."""

    def __init__(
        self,
        positives: Pairs,
        mixed: Pairs,
        ranges: tuple[Ranges, Ranges],
        rng: np.random.Generator,
    ) -> None:
        self.pools = {"+": positives, "mix": mixed}
        self.ranges = ranges
        self.rng = rng
        # Pairs are compared by 64-bit hashes of state and action; a false match only costs
        # a redraw.
        self.weights = _odd_weights(positives)

    def fill(self, made: Pairs, kinds: Integers, rows: Integers) -> None:
        """Draw the given rows, each of its kind."""
        for kind, (state, action) in enumerate(KINDS):
            mine = rows[kinds[rows] == kind]
            if len(mine):
                made.observations[mine] = self._draw(state, 0, len(mine))
                made.actions[mine] = self._draw(action, 1, len(mine))

    def recorded(self, pairs: Pairs, dataset: Callable[[], Iterable[Columns]]) -> Mask:
        """Which pairs are in one of the pools, or anywhere in the dataset."""
        hashes = self._hash(pairs)
        known = np.unique(hashes)
        seen = np.zeros(len(known), dtype=np.bool_)
        for block in self._everything(dataset):
            found = self._hash(block)
            place = np.minimum(np.searchsorted(known, found), len(known) - 1)
            seen[place[known[place] == found]] = True
        return np.asarray(seen[np.searchsorted(known, hashes)])

    def _everything(self, dataset: Callable[[], Iterable[Columns]]) -> Iterator[Pairs]:
        yield from self.pools.values()
        for block in dataset():
            yield Pairs(
                np.asarray(block.observations, dtype=np.float32),
                np.asarray(block.actions, dtype=np.float32),
            )

    def _draw(self, where: str, which: int, count: int) -> Floats:
        if where == "~":
            span = self.ranges[which]
            drawn = self.rng.random((count, len(span.low)), dtype=np.float32)
            drawn *= (span.high - span.low).astype(np.float32)
            drawn += span.low.astype(np.float32)
            # Rounding can carry a draw past the end by one unit in the last place.
            return np.minimum(drawn, span.high.astype(np.float32))
        pool = self.pools[where]
        rows = pool.observations if which == 0 else pool.actions
        return rows[self.rng.integers(0, len(pool), size=count)]

    def _hash(self, pairs: Pairs) -> Hashes:
        left, right = self.weights
        return _hash_rows(pairs.observations, left) + _hash_rows(pairs.actions, right)


def _odd_weights(pairs: Pairs) -> tuple[Hashes, Hashes]:
    # Fixed: the hash is no part of the randomness of a run.
    fixed = np.random.Generator(np.random.Philox(key=20230921))
    sizes = pairs.observations.shape[1], pairs.actions.shape[1]
    left, right = (
        np.asarray(fixed.integers(0, 2**63, size=size, dtype=np.uint64) * 2 + 1) for size in sizes
    )
    return left, right


def _hash_rows(rows: NDArray[Any], weights: Hashes) -> Hashes:
    """A weighted 64-bit sum over the bits of each row; -0.0 and 0.0 hash alike."""
    bits = np.ascontiguousarray(rows + np.float32(0.0)).view(np.uint32)
    return np.asarray(np.einsum("ij,j->i", bits, weights, dtype=np.uint64))
