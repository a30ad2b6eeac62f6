"""Counting right and wrong: the figures by which a filter is judged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pubc.errors import UsageError

__all__ = ["Confusion", "Spread", "confusion", "mean_and_spread", "roc_auc"]


@dataclass(frozen=True, slots=True)
class Confusion:
    """How many trajectories were kept and dropped, rightly and wrongly."""

    true_positives: int
    """The expert's, and kept."""
    false_positives: int
    """Not the expert's, but kept."""
    false_negatives: int
    """The expert's, but dropped."""
    true_negatives: int
    """Not the expert's, and dropped."""

    @property
    def total(self) -> int:
        """All trajectories."""
        wrong = self.false_positives + self.false_negatives
        return self.true_positives + self.true_negatives + wrong

    @property
    def accuracy(self) -> float:
        """Share of right decisions, (TP + TN) / all."""
        return _share(self.true_positives + self.true_negatives, self.total)

    @property
    def precision(self) -> float:
        """Share of the kept trajectories that are the expert's."""
        return _share(self.true_positives, self.true_positives + self.false_positives)

    @property
    def recall(self) -> float:
        """Share of the expert's trajectories that were kept."""
        return _share(self.true_positives, self.true_positives + self.false_negatives)


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean with how far single values lie from it."""

    mean: float
    """Average of the values."""
    deviation: float
    """Sample standard deviation; 0 for a single value."""
    low: float
    """Smallest value."""
    high: float
    """Largest value."""
    count: int
    """How many values."""


def confusion(kept: ArrayLike, truth: ArrayLike) -> Confusion:
    """Compare a selection with the truth, both one boolean per trajectory."""
    chosen = np.asarray(kept, dtype=np.bool_)
    right = np.asarray(truth, dtype=np.bool_)
    if chosen.shape != right.shape:
        raise UsageError(f"{chosen.shape} decisions cannot be compared with {right.shape} labels.")
    return Confusion(
        int(np.count_nonzero(chosen & right)),
        int(np.count_nonzero(chosen & ~right)),
        int(np.count_nonzero(~chosen & right)),
        int(np.count_nonzero(~chosen & ~right)),
    )


def roc_auc(score: ArrayLike, truth: ArrayLike) -> float:
    """Chance that a positive scores above a negative, ties counted half; NaN if one is absent."""
    values = np.asarray(score, dtype=np.float64)
    right = np.asarray(truth, dtype=np.bool_)
    positives, negatives = int(right.sum()), int((~right).sum())
    if not positives or not negatives:
        return float("nan")
    ranks = _mid_ranks(values)
    return float((ranks[right].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def mean_and_spread(values: ArrayLike) -> Spread:
    """Mean, sample deviation and range of at least one value."""
    all_values = np.asarray(values, dtype=np.float64).reshape(-1)
    if not all_values.size:
        raise UsageError("No values to average.")
    deviation = float(all_values.std(ddof=1)) if all_values.size > 1 else 0.0
    return Spread(
        float(all_values.mean()),
        deviation,
        float(all_values.min()),
        float(all_values.max()),
        int(all_values.size),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _mid_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the middle of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle = last - (counts - 1) / 2
    return np.asarray(middle[group], dtype=np.float64)
