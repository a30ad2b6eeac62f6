"""The losses against the paper's equations, written out."""

import math

import pytest
import torch

from pubc.pu.paper.losses import (
    LOSSES,
    bce,
    non_negative_pu,
    non_negative_pu_clamp,
    unbiased_pu,
)

LOGITS = torch.tensor([2.0, -1.0, 0.5, -3.0])
POSITIVE = torch.tensor([True, True, False, False])


def parts():
    f = [1 / (1 + math.exp(-float(x))) for x in LOGITS]
    plus = (-math.log(f[0]) - math.log(f[1])) / 2
    plus_as_negative = (-math.log(1 - f[0]) - math.log(1 - f[1])) / 2
    minus = (-math.log(1 - f[2]) - math.log(1 - f[3])) / 2
    return plus, plus_as_negative, minus


def test_bce_is_equation_1():
    plus, _, minus = parts()
    assert float(bce(LOGITS, POSITIVE)) == pytest.approx(plus + minus, rel=1e-6)


def test_unbiased_pu_is_the_appendix():
    plus, plus_as_negative, minus = parts()
    wanted = 0.3 * plus + minus - 0.3 * plus_as_negative
    assert float(unbiased_pu(LOGITS, POSITIVE, delta=0.3)) == pytest.approx(wanted, rel=1e-6)


def test_clamped_non_negative_pu_cannot_fall_below_zero_risk():
    plus, plus_as_negative, minus = parts()
    wanted = 0.3 * plus + max(0.0, minus - 0.3 * plus_as_negative)
    found = float(non_negative_pu_clamp(LOGITS, POSITIVE, delta=0.3))
    assert found == pytest.approx(wanted, rel=1e-6)
    sure = torch.tensor([9.0, 9.0, -9.0, -9.0])
    assert float(unbiased_pu(sure, POSITIVE, delta=0.9)) < 0
    assert float(non_negative_pu_clamp(sure, POSITIVE, delta=0.9)) >= 0


def sigmoid_risks(logits: torch.Tensor, delta: float) -> tuple[torch.Tensor, torch.Tensor]:
    f = torch.sigmoid(logits)
    positive = delta * (1 - f[:2]).mean()
    return positive, f[2:].mean() - delta * f[:2].mean()


@pytest.mark.parametrize(("delta", "overfits"), [(0.3, False), (0.9, True)])
def test_non_negative_pu_steps_back_where_the_negative_risk_is_below_zero(delta, overfits):
    logits = LOGITS.clone().requires_grad_()
    value = non_negative_pu(logits, POSITIVE, delta=delta)
    value.backward()
    other = LOGITS.clone().requires_grad_()
    positive, negative = sigmoid_risks(other, delta)
    assert bool(negative.detach() < 0) == overfits
    step = -negative if overfits else positive + negative
    step.backward()
    assert torch.allclose(logits.grad, other.grad, atol=1e-7)
    wanted = positive if overfits else positive + negative
    assert float(value.detach()) == pytest.approx(float(wanted.detach()), rel=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_a_batch_of_one_class_is_finite(name: str):
    for mask in (torch.ones(4, dtype=torch.bool), torch.zeros(4, dtype=torch.bool)):
        assert torch.isfinite(LOSSES[name](LOGITS, mask))
