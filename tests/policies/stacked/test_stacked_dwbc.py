"""DWBC as its authors' code behaves: each rule by hand, and what all of it is for."""

import math

import numpy as np
import pytest
import torch
from torch.distributions import Normal, TanhTransform, TransformedDistribution

from pubc.policies import stacked_trainer, trainer
from pubc.policies.cloning.dwbc import ALPHA, ETA
from pubc.policies.stacked.stacked_dwbc import (
    StackedDwbc,
    discriminator_loss,
    policy_weights,
    tanh_normal_density,
)
from pubc.policies.stacked.stacked_rows import Member
from pubc.policies.train_options import TrainOptions
from pubc.threads import threads
from tests.policies.sets import tiny

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for one another are slow beside other tests."""
    with threads(1):
        yield


def stack(updates: int = 4, seeds=(0,), **options) -> StackedDwbc:
    chosen = TrainOptions(updates=updates, batch_size=16, hidden=(16,), **options)
    mixed = tiny()
    sure = mixed[:4]
    return StackedDwbc([Member(mixed, seed, sure) for seed in seeds], chosen, device=CPU)


def test_the_discriminators_risk_is_that_of_pu_learning():
    sure, other = torch.tensor([[0.3, 0.8]]), torch.tensor([[0.2, 0.6, 0.5]])
    wanted = -ETA * sure.log().mean() - (1 - other).log().mean() + ETA * (1 - sure).log().mean()
    assert float(discriminator_loss(sure, other)) == pytest.approx(float(wanted), rel=1e-5)


def test_mixed_pairs_below_a_half_weigh_nothing():
    expert, mixed = policy_weights(
        torch.tensor([[0.5, 0.9]]), torch.tensor([[0.1, 0.49, 0.5, 0.9]])
    )
    assert expert[0].tolist() == pytest.approx(
        [ALPHA - ETA / 0.25 - 1, ALPHA - ETA / 0.09 - 1], rel=1e-5
    )
    assert mixed[0].tolist() == pytest.approx([0.0, 0.0, 1.0, 9.0])


def test_actions_are_tanh_of_a_gaussian():
    rng = np.random.default_rng(0)
    mean = torch.from_numpy(rng.normal(size=(1, 5, 2)).astype(np.float32))
    width = torch.from_numpy(rng.normal(size=(1, 5, 2)).astype(np.float32))
    actions = torch.from_numpy(rng.uniform(-0.99, 0.99, (1, 5, 2)).astype(np.float32))
    known = TransformedDistribution(Normal(mean, width.exp()), TanhTransform())
    assert torch.allclose(
        tanh_normal_density(actions, mean, width), known.log_prob(actions), atol=1e-4
    )
    edge = tanh_normal_density(torch.ones(1, 1, 2), mean[:, :1], width[:, :1])
    assert torch.isfinite(edge).all()


def test_the_discriminator_learns_in_every_hundredth_update_alone():
    run = stack(updates=99)
    before = run._head.weights[0].detach().clone()
    policy = run._policy.weights[0].detach().clone()
    run.advance(0)
    assert torch.equal(before, run._head.weights[0])
    assert not torch.equal(policy, run._policy.weights[0])
    longer = stack(updates=100)
    longer.advance(0)
    assert not torch.equal(before, longer._head.weights[0])
    moved = (longer._head.weights[0] - before).abs().max()
    # One step of Adam moves a weight by at most the learning rate.
    assert float(moved.detach()) == pytest.approx(1e-4, rel=0.01)


def test_the_discriminator_is_cut_off_inside_its_loss_and_sees_scaled_densities():
    run = stack()
    with torch.no_grad():
        run._head.biases[-1].fill_(50.0)
    seen, acted = torch.zeros(1, 3, 5), torch.zeros(1, 3, 2)
    likely, impossible = torch.full((1, 3, 2), 10.0), torch.full((1, 3, 2), -20.0)
    trust = run._discriminate(seen, acted, likely)
    assert trust.tolist() == [[pytest.approx(0.9)] * 3]
    (gradient,) = torch.autograd.grad(trust.sum(), run._head.biases[-1])
    assert float(gradient) == 0.0
    with torch.no_grad():
        run._head.biases[-1].fill_(0.0)
        beyond = run._discriminate(seen, acted, likely + 99)
        assert torch.equal(beyond, run._discriminate(seen, acted, likely))
        below = run._discriminate(seen, acted, impossible)
        assert torch.equal(below, run._discriminate(seen, acted, impossible - 99))
        assert not torch.equal(beyond, below)


def test_the_policys_weights_decay_and_the_discriminators_do_not():
    run = stack()
    assert run._actor.adam.param_groups[0]["weight_decay"] == 0.005
    assert run._judge.adam.param_groups[0]["weight_decay"] == 0
    assert {group["lr"] for s in (run._actor, run._judge) for group in s.adam.param_groups} == {
        1e-4
    }


def test_a_stack_is_the_trainings_alone_up_to_rounding():
    mixed = tiny()
    options = TrainOptions(updates=120, batch_size=16, hidden=(16, 16))
    many = stacked_trainer(
        "dwbc", mixed, options, random_seeds=(0, 4), device="cpu", positives=mixed[:4]
    )
    many.advance(0)
    for seed, ours in zip((0, 4), many.policies(), strict=True):
        alone = trainer("dwbc", mixed, options, random_seed=seed, device="cpu", positives=mixed[:4])
        alone.advance(0)
        theirs = alone.policy().tensors()
        for key, array in theirs.items():
            assert np.abs(ours.tensors()[key] - array).max() < 2e-5, key


def test_a_restored_run_goes_on_to_the_same_bytes(monkeypatch):
    monkeypatch.setattr("pubc.policies.stacked.stacked_dwbc._PER_EPOCH", 110)
    whole, first, second = (stack(updates=220, seeds=(0, 1)) for _ in range(3))
    whole.advance(0)
    whole.advance(1)
    first.advance(0)
    second.restore(*first.state())
    second.advance(1)
    for key, array in whole.state()[0].items():
        assert np.array_equal(array, second.state()[0][key]), key


def test_the_policy_acts_with_the_tanh_of_its_mean():
    run = stack()
    (policy,) = run.policies()
    seen = np.random.default_rng(0).normal(size=(6, 5)).astype(np.float32)
    x = torch.from_numpy(policy.normaliser(seen))[None]
    mean = torch.tanh(run._policy(x)[0, :, :2]).detach().numpy()
    assert np.allclose(policy.units(seen), mean, atol=1e-5)
    assert math.isfinite(float(policy.act(seen).sum()))
