"""What marks of both kinds teach: which evidence tells good from bad in this very pile.

Seeds say which evidence puts them ahead of the pile. Somebody who marks trajectories good and bad
says which evidence tells the two from each other: others who act almost like the expert may differ
from it in numbers that the seeds alone do not point to. A logistic regression on all numbers and on
the actors' codes learns it from the marks, and from the labels of the trajectories that the split
without marks is sure of, which count for little each.
"""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["FEWEST_BAD", "FEWEST_GOOD", "can_teach", "teach"]

FEWEST_GOOD = 2
"""Good marks from which on marks teach."""
FEWEST_BAD = 4
"""Bad ones: fewer do not say what the others are like."""

_MARK = 3.0
"""What a mark counts."""
_GUESS = 0.3
"""What a trajectory counts that the split is sure of."""
_RIDGE = 2.0
_CODES = 0.7
"""Weight of the codes beside the evidence."""
_TURNS = 3
"""The regression labels the pile anew so often."""
_STEPS = 12
"""Newton steps of a regression."""


def can_teach(good: int, bad: int) -> bool:
    """Whether so many marks teach anything."""
    return good >= FEWEST_GOOD and bad >= FEWEST_BAD


def teach(short: Tensor, codes: Tensor, belief: Tensor, good: Tensor, bad: Tensor) -> Tensor:
    """How much speaks for each trajectory by what marks teach, from 0 to 1.

    Args:
        short: How far each falls short of the positives, shape (evidence, trajectories).
        codes: The code of each, shape (trajectories, numbers).
        belief: How much speaks for each without marks, from 0 to 1.
        good: Positions of those that were marked good.
        bad: Which were marked bad.
    """
    inputs = torch.cat([_scaled(short.T), _CODES * _scaled(codes)], dim=1)
    inputs = torch.cat([inputs, torch.ones_like(inputs[:, :1])], dim=1)
    marked = bad.clone()
    marked[good] = True
    sure = belief.double()
    for _ in range(_TURNS):
        label = (sure > 0.5).double().masked_fill(bad, 0.0)
        label[good] = 1.0
        weight = (_GUESS * (2 * sure - 1).abs()).masked_fill(marked, _MARK)
        sure = torch.sigmoid(inputs @ _fit(inputs, label, weight))
    # What was marked is known.
    sure = sure.masked_fill(bad, 0.0)
    sure[good] = 1.0
    return sure.float()


def _scaled(values: Tensor) -> Tensor:
    values = values.double()
    return (values - values.mean(0)) / (values.std(0, correction=0) + 1e-6)


def _fit(inputs: Tensor, label: Tensor, weight: Tensor) -> Tensor:
    """Weights of a logistic regression; the last input is the constant, and free."""
    size = inputs.shape[1]
    ridge = torch.full((size,), _RIDGE, dtype=torch.float64, device=inputs.device)
    ridge[-1] = 1e-3
    found = torch.zeros_like(ridge)
    for _ in range(_STEPS):
        chance = torch.sigmoid((inputs @ found).clamp(-30, 30))
        slope = inputs.T @ (weight * (label - chance)) - ridge * found
        curve = inputs.T @ (inputs * (weight * chance * (1 - chance))[:, None])
        found = found + torch.linalg.solve(curve + torch.diag(ridge), slope)
    return found
