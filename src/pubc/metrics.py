"""Every score: how right a filter decides, and how well a policy does.

Filters are judged by accuracy, precision, recall and the area under the ROC curve, policies by
their mean return with a bootstrap interval and by the paper's normalised score.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pubc.errors import UsageError
from pubc.streams import stream

__all__ = [
    "REFERENCES",
    "Confusion",
    "Spread",
    "as_reference",
    "check_reference",
    "confusion",
    "interval",
    "is_number",
    "mean_and_spread",
    "normalised_score",
    "roc_auc",
]

REFERENCES: dict[str, tuple[float, float, str]] = {
    "halfcheetah": (-280.178953, 12135.0, "D4RL"),
    "hopper": (-20.272305, 3234.3, "D4RL"),
    "walker2d": (1.629008, 4592.3, "D4RL"),
    "ant": (-325.6, 3879.7, "D4RL"),
    "humanoid": (112.0, 6213.0, "fitted to the paper"),
    "trifinger-push": (0.0, 750.0, "TriFinger"),
    "trifinger-lift": (0.0, 1500.0, "TriFinger"),
}
"""Returns that count as scores 0 and 1, and who says so.

D4RL's are those of github.com/Farama-Foundation/D4RL, d4rl/infos.py (REF_MIN_SCORE and
REF_MAX_SCORE of the v0 sets; the later sets have the same); the minima were compared with that
file, the maxima with copies of it in other projects. D4RL has no humanoid, and the paper does not
print its own: its expert's 5,725 scores 0.92 (Tables 2 and 4) and its weak policy's
1,576 scores 0.24 (twice 0.58 less 0.92), which lie on this line.
"""

_NEAREST = 1e-9
"""Between two reference returns at least; less would make scores beyond all numbers."""
_RESAMPLES = 10_000
"""Of the bootstrap: its ends then move by less than a hundredth of their width."""


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


def interval(values: ArrayLike, *, level: float = 0.95) -> tuple[float, float]:
    """Bootstrap confidence interval of the mean; a single value has no width."""
    sample = np.asarray(values, dtype=np.float64)
    rng = stream(0, "bootstrap", len(sample))
    drawn = rng.integers(len(sample), size=(_RESAMPLES, len(sample)))
    low, high = np.quantile(sample[drawn].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def as_reference(said: Any) -> tuple[float, float] | None:
    """Two reference returns that a score can be made of; None where that is not what was said.

    Example:
        >>> as_reference([0, 1500])
        (0.0, 1500.0)
        >>> as_reference([0, float("inf")])
    """
    if not isinstance(said, list | tuple) or len(said) != 2 or not all(map(is_number, said)):
        return None
    low, high = float(said[0]), float(said[1])
    return (low, high) if _NEAREST <= high - low < math.inf else None


def is_number(value: Any) -> bool:
    """Whether a value of JSON is a number that a float can hold."""
    real = isinstance(value, int | float) and not isinstance(value, bool)
    return real and abs(value) <= sys.float_info.max


def check_reference(reference: tuple[float, float]) -> None:
    """Refuse reference returns that no score can be made of, before anything is played for it.

    Raises:
        UsageError: They do not rise, or lie too near or too far from one another.
    """
    low, high = reference
    if as_reference([float(low), float(high)]) is None:
        raise UsageError(
            "The reference returns must rise from 0 to 1, by a finite number of at least "
            f"{_NEAREST:g}. Got {low} and {high}."
        )


def normalised_score(total_reward: float, reference: tuple[float, float]) -> float:
    """The paper's normalised score: 0 at the lower reference return, 1 at the upper.

    Example:
        >>> normalised_score(750.0, (0.0, 1500.0))
        0.5

    Raises:
        UsageError: The references do not rise.
    """
    check_reference(reference)
    low, high = reference
    return (total_reward - low) / (high - low)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


def _mid_ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the middle of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    middle = last - (counts - 1) / 2
    return np.asarray(middle[group], dtype=np.float64)
