"""What a classifier is trained to make small: pure functions of logits.

All take the logit of each pair and whether it is a positive, and average each class on its
own, as the paper's equations do. A batch without one of the classes counts it as zero.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

__all__ = [
    "LOSSES",
    "Loss",
    "bce",
    "non_negative_pu",
    "non_negative_pu_clamp",
    "unbiased_pu",
]

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
    """Non-negative PU as its authors' code has it: the sigmoid loss, and a step back.

    Where the negative risk of a batch is below zero, the step is taken up that risk alone
    instead of down the sum: clamping would leave the network where it overfits. The value is
    the risk with zero in its place, and only the gradient knows of the step.
    """
    as_negative = torch.sigmoid(logits)
    negative_risk = _mean(as_negative, ~positive) - delta * _mean(as_negative, positive)
    positive_risk = delta * _mean(torch.sigmoid(-logits), positive)
    overfits = negative_risk < 0
    step = torch.where(overfits, -negative_risk, positive_risk + negative_risk)
    value = positive_risk + torch.clamp(negative_risk, min=0.0)
    return value.detach() + (step - step.detach())


def non_negative_pu_clamp(logits: Tensor, positive: Tensor, *, delta: float = DELTA) -> Tensor:
    """Non-negative PU as the paper's appendix prints it: a negative risk counts as zero."""
    as_negative = softplus(logits)
    negative_risk = _mean(as_negative, ~positive) - delta * _mean(as_negative, positive)
    return delta * _mean(softplus(-logits), positive) + torch.clamp(negative_risk, min=0.0)


LOSSES: dict[str, Loss] = {
    "bce": bce,
    "unbiased_pu": unbiased_pu,
    "non_negative_pu": non_negative_pu,
    "non_negative_pu_clamp": non_negative_pu_clamp,
}
"""Every loss by the name that configurations use."""


def _mean(values: Tensor, where: Tensor) -> Tensor:
    chosen = where.to(values.dtype)
    return (values * chosen).sum() / chosen.sum().clamp(min=1.0)
