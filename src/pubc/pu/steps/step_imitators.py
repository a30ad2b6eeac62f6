"""Two imitators of every look, the expert's and everybody else's, each fitted without some.

An imitator is a ridge regression from features to actions. Beside what it expects it knows how
far its own errors reach, and how they grow away from the situations that it knows: both are
measured on trajectories that it did not see. Where it knows nothing, it says nothing: its
likelihood becomes that of any action of the pile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pubc.pu.steps.step_features import Features

__all__ = ["Imitator", "Look", "any_action", "distance", "fit_imitator", "step_evidence", "total"]

_FREEDOM = 4.0
"""Degrees of freedom of the errors: heavy tails, so that one odd step is not the end."""
_REACH = (0.05, 1.0)
"""Smallest and largest reach of an error, in spreads of the action over the pile."""
_STEEPEST = 0.6
"""Largest power of the distance with which errors grow."""
_SKETCH = 48
"""Random directions by which the distance from known situations is measured."""
_LEAST, _MOST = -3.0, 2.0
"""Bounds of the evidence of one action dimension, in nats."""
_LEAST_STEP, _MOST_STEP = -5.0, 3.0
"""Bounds of the evidence of one step."""


@dataclass(frozen=True, slots=True, eq=False)
class Imitator:
    """One side of a look; the first axis is the fold that it was fitted without."""

    weights: Tensor
    """From features to actions, shape (folds, features, action columns)."""
    distance: Tensor
    """From features to a vector whose square is the distance from what is known."""
    usual: float
    """The distance of half of what it learned from, on trajectories that it did not see."""
    reach: Tensor
    """Size of its errors where the distance is nothing, shape (action columns,)."""
    slope: float
    """They grow with this power of one plus the distance, in usual distances."""

    def log_likelihood(
        self, features: Tensor, actions: Tensor, fold: int, unknown: float
    ) -> tuple[Tensor, Tensor]:
        """Of each action column, and how well each situation is known, from 0 to 1."""
        error = actions - features @ self.weights[fold]
        apart = distance(self, features, fold)
        known = 1 / (1 + unknown * apart)
        reach = (self.reach * (1 + apart[:, None]) ** self.slope).clamp(*_REACH)
        told = _student(error / reach) - torch.log(reach)
        either = torch.logaddexp(
            torch.log(known)[:, None] + told,
            torch.log1p(-known + 1e-6)[:, None] + any_action(actions),
        )
        return either, known


def distance(imitator: Imitator, features: Tensor, fold: int) -> Tensor:
    """How far each situation is from what an imitator knows, in usual distances."""
    return (features @ imitator.distance[fold]).square().sum(1) / imitator.usual


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """Features and the two imitators over them."""

    features: Features
    """From states to features."""
    expert: Imitator
    """Of the expert."""
    other: Imitator | None
    """Of everybody else; None before anything is known of them."""


def any_action(actions: Tensor) -> Tensor:
    """Log-likelihood of each action column where nothing is known."""
    return _student(actions)


def _student(values: Tensor) -> Tensor:
    return -0.5 * (_FREEDOM + 1) * torch.log1p(values.square() / _FREEDOM)


def fit_imitator(
    features: Tensor,
    actions: Tensor,
    weights: Tensor,
    folds: Sequence[Tensor],
    ridge: float,
    rng: np.random.Generator,
) -> Imitator:
    """Fit one side.

    Args:
        features: Of every step to learn from.
        actions: What was done there.
        weights: How much each step counts for this side.
        folds: The steps of each fold.
        ridge: How much it is held back.
        rng: Draws the directions that measure distances.
    """
    grams, aims = [], []
    for rows in folds:
        some = features[rows]
        weighed = some * weights[rows, None]
        grams.append(some.T @ weighed)
        aims.append(weighed.T @ actions[rows])
    gram, aim = torch.stack(grams).sum(0), torch.stack(aims).sum(0)
    drawn = rng.standard_normal((features.shape[1], _SKETCH)) / np.sqrt(_SKETCH)
    directions = torch.from_numpy(drawn)
    solved, distances = [], []
    errors, apart = torch.empty_like(actions), torch.empty(len(actions))
    for number, rows in enumerate(folds):
        left = (gram - grams[number]).double()
        left.diagonal().add_(ridge)
        factor = torch.linalg.cholesky(left)
        solved.append(torch.cholesky_solve((aim - aims[number]).double(), factor).float())
        # The square of this has the distance x' left^-1 x as its mean.
        aside = torch.linalg.solve_triangular(factor.T, directions, upper=True)
        distances.append(aside.float())
        errors[rows] = actions[rows] - features[rows] @ solved[-1]
        apart[rows] = (features[rows] @ distances[-1]).square().sum(1)
    usual = _weighted_median(apart, weights)
    reach, slope = _errors(errors, apart / usual, weights)
    return Imitator(torch.stack(solved), torch.stack(distances), usual, reach, slope)


def _weighted_median(values: Tensor, weights: Tensor) -> float:
    order = torch.argsort(values, stable=True)
    running = torch.cumsum(weights[order].double(), 0)
    middle = int(torch.searchsorted(running, running[-1] / 2))
    return max(float(values[order[min(middle, len(order) - 1)]]), 1e-9)


def _errors(errors: Tensor, apart: Tensor, weights: Tensor) -> tuple[Tensor, float]:
    """How far errors reach, and how that grows: a line through their logs."""
    share = weights / weights.sum()
    logs, far = torch.log(errors.abs() + 0.02), torch.log1p(apart)
    middle, height = share @ far, share @ logs
    away = share * (far - middle)
    slope = float((away @ (logs - height)).mean() / (away @ (far - middle) + 1e-9))
    slope = min(max(slope, 0.0), _STEEPEST)
    # The mean log of an error lies half a nat below the log of its reach.
    return torch.exp(height + 0.5 - slope * middle), slope


def step_evidence(
    look: Look, features: Tensor, actions: Tensor, fold: int, unknown: float
) -> tuple[Tensor, Tensor]:
    """Evidence of each action column that the expert acted, and how well situations are known.

    Args:
        look: The imitators.
        features: Of the steps.
        actions: What was done there.
        fold: Which fold's fit judges.
        unknown: How fast a situation counts as unknown.
    """
    own, known = look.expert.log_likelihood(features, actions, fold, unknown)
    rest = any_action(actions)
    if look.other is not None:
        other, _ = look.other.log_likelihood(features, actions, fold, unknown)
        rest = torch.logaddexp(other, rest) - float(np.log(2))
    return (own - rest).clamp(_LEAST, _MOST), known


def total(columns: Tensor) -> Tensor:
    """Evidence of a step from that of its action columns."""
    return columns.sum(1).clamp(_LEAST_STEP, _MOST_STEP)
