"""What a classifier is trained to make small: pure functions of logits.

All take the logit of each pair and whether it is a positive, and average each class on its
own, as the paper's equations do. A batch without one of the classes counts it as zero.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

__all__ = ["LOSSES", "Loss", "bce", "non_negative_pu", "unbiased_pu"]

Loss = Callable[[Tensor, Tensor], Tensor]
"""Maps logits and a boolean mask of positives, both of shape (batch,), to one number."""

DELTA = 0.004
"""Share of positives among the unlabelled pairs that both PU baselines assume."""


def bce(logits: Tensor, positive: Tensor) -> Tensor:
    """Equation 1: mean of -log F over positives plus mean of -log(1 - F) over negatives."""
    return _mean(softplus(-logits), positive) + _mean(softplus(logits), ~positive)


def unbiased_pu(logits: Tensor, positive: Tensor, *, delta: float = DELTA) -> Tensor:
    """Unbiased PU: the unlabelled risk minus what the positives among them add to it."""
    as_negative = softplus(logits)
    return (
        delta * _mean(softplus(-logits), positive)
        + _mean(as_negative, ~positive)
        - delta * _mean(as_negative, positive)
    )


def non_negative_pu(logits: Tensor, positive: Tensor, *, delta: float = DELTA) -> Tensor:
    """Non-negative PU: as unbiased PU, but the negative risk cannot fall below zero."""
    as_negative = softplus(logits)
    negative_risk = _mean(as_negative, ~positive) - delta * _mean(as_negative, positive)
    return delta * _mean(softplus(-logits), positive) + torch.clamp(negative_risk, min=0.0)


LOSSES: dict[str, Loss] = {
    "bce": bce,
    "unbiased_pu": unbiased_pu,
    "non_negative_pu": non_negative_pu,
}
"""Every loss by the name that configurations use."""


def _mean(values: Tensor, where: Tensor) -> Tensor:
    chosen = where.to(values.dtype)
    return (values * chosen).sum() / chosen.sum().clamp(min=1.0)
