"""The odds that who acted in a step is who acted in the positives, and not somebody unmet.

Every actor is taken for the imitator of everybody plus something of its own: unknown weights on
the features of the state, small and random. Some trajectories of an actor tell about its weights,
more where they have been and less elsewhere; somebody unmet may do anything that the weights
allow. The odds of a step compare the two: they are even where the positives never were, high where
they say what to expect and it happens, low where it does not. All of it is linear algebra.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pubc.pu.second_opinion.looks.rows import Rows

__all__ = ["SameActor", "learn_same_actor"]

_WEIGHT = 0.3
"""What a step counts: steps in a row repeat each other."""
_LEAST = 0.1
"""Actors differ from everybody at least by this share of what no actor explains."""
_AT_ONCE = 4096
"""Steps that are looked at together; memory stays small."""
_FREEDOM = 4.0
"""Degrees of freedom of the errors: one odd step is not the end."""


@dataclass(frozen=True, slots=True, eq=False)
class SameActor:
    """What is to be known before anybody is met."""

    rows: Rows
    """The steps."""
    features: Tensor
    """Of the state at every step."""
    own: Tensor
    """Actions less what everybody would do, shape (rows, action columns)."""
    noise: Tensor
    """Variance of what no actor explains, of each action column."""
    ratio: float
    """That variance over the variance of a weight."""
    unmet: Tensor
    """Log-likelihood of every action for somebody unmet, shape (rows, action columns)."""

    def log_odds(self, positives: Tensor) -> Tensor:
        """Of every step and action column; each of the positives is met through the others."""
        members = self.rows.members(positives)
        features = self.features[members]
        known = features.T @ features * _WEIGHT
        known.diagonal().add_(self.ratio)
        factor = torch.linalg.cholesky(known)
        aim = features.T @ self.own[members] * _WEIGHT
        error = self.own - self.features @ torch.cholesky_solve(aim, factor)
        parts = torch.split(self.features, _AT_ONCE)
        doubt = torch.cat([_whiten(part, factor).square().sum(0) for part in parts])
        if len(positives) > 1:
            for trajectory in positives.tolist():
                part = self.rows.of(trajectory)
                some = _whiten(self.features[part], factor)
                eye = torch.eye(some.shape[1], device=some.device)
                without = torch.linalg.inv(1.0001 * eye - some.T @ some * _WEIGHT)
                error[part] = without @ error[part]
                doubt[part] = ((without.diagonal() - 1) / _WEIGHT).clamp(min=0)
        return _log_likelihood(error, self.noise * (1 + doubt)[:, None]) - self.unmet


def learn_same_actor(rows: Rows, features: Tensor, everybody: Tensor, noise: Tensor) -> SameActor:
    """Learn how much actors differ in this pile.

    Args:
        rows: The pile.
        features: Of the state at every step.
        everybody: What an imitator of everybody would do there.
        noise: Variance of what no actor explains, of each action column.
    """
    own = rows.actions - everybody
    size = torch.linalg.vector_norm(features, dim=1).square()
    differ = (own.square().mean(0) - noise).clamp(min=_LEAST * noise) / size.mean()
    ratio = float((noise / differ).log().mean().exp())
    unmet = _log_likelihood(own, noise * (1 + size[:, None] / ratio))
    return SameActor(rows, features, own, noise, ratio, unmet)


def _whiten(features: Tensor, factor: Tensor) -> Tensor:
    """Features of steps as columns of which the inner products say what is known there."""
    white: Tensor = torch.linalg.solve_triangular(factor, features.T, upper=False)
    return white


def _log_likelihood(error: Tensor, variance: Tensor) -> Tensor:
    tails = -0.5 * (_FREEDOM + 1) * torch.log1p(error.square() / (_FREEDOM * variance))
    return tails - 0.5 * torch.log(variance)
