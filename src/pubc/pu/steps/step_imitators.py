"""Two imitators of every look, the expert's and everybody else's, each fitted without some.

An imitator is a ridge regression from features to actions. Beside what it expects it knows how
far its own errors reach and how well it knows a situation; where it knows nothing, it says
nothing: its likelihood becomes that of any action of the pile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pubc.pu.steps.step_features import Features

__all__ = ["Imitator", "Look", "any_action", "fit_imitator", "step_evidence", "total"]

_FREEDOM = 4.0
"""Degrees of freedom of the errors: heavy tails, so that one odd step is not the end."""
_FLOOR = 0.1
"""Smallest reach of an error, in spreads of the action over the pile."""
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
    reach: Tensor
    """Size of its errors on trajectories that it did not see, shape (action columns,)."""

    def log_likelihood(
        self, features: Tensor, actions: Tensor, fold: int, unknown: float
    ) -> tuple[Tensor, Tensor]:
        """Of each action column, and how well each situation is known, from 0 to 1."""
        error = actions - features @ self.weights[fold]
        known = 1 / (1 + unknown * (features @ self.distance[fold]).square().sum(1))
        told = _student(error / self.reach) - torch.log(self.reach)
        either = torch.logaddexp(
            torch.log(known)[:, None] + told,
            torch.log1p(-known + 1e-6)[:, None] + any_action(actions),
        )
        return either, known


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
    logs = actions.new_zeros(actions.shape[1])
    for number, rows in enumerate(folds):
        left = (gram - grams[number]).double()
        left.diagonal().add_(ridge)
        factor = torch.linalg.cholesky(left)
        solved.append(torch.cholesky_solve((aim - aims[number]).double(), factor).float())
        # The square of this has the distance x' left^-1 x as its mean.
        aside = torch.linalg.solve_triangular(factor.T, directions, upper=True)
        distances.append(aside.float())
        error = actions[rows] - features[rows] @ solved[-1]
        logs += (torch.log(error.abs() + 0.02) * weights[rows, None]).sum(0)
    # The mean log of an error lies half a nat below the log of its reach.
    reach = torch.exp(logs / weights.sum() + 0.5).clamp(min=_FLOOR)
    return Imitator(torch.stack(solved), torch.stack(distances), reach)


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
