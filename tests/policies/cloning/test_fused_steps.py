"""The hand-written training step against automatic differentiation and torch's own Adam."""

import itertools

import numpy as np
import pytest
import torch

from pubc.policies.cloning.flat_weights import initial_parameters, split
from pubc.policies.cloning.fused_steps import FusedStep
from pubc.policies.cloning.thread_count import Pace
from pubc.policies.networks import layers_from_flat
from pubc.threads import threads

SEEN, ACTS = 7, 3


def step_for(head: str, batch: int = 96, chunk: int = 5, hidden: tuple[int, ...] = (32, 24)):
    rng = np.random.default_rng(1)
    sizes = (SEEN, *hidden, ACTS * (2 if head == "gaussian" else 1))
    flat = torch.from_numpy(initial_parameters(sizes, rng))
    step = FusedStep(sizes, batch, head, flat, chunk=chunk)
    step.inputs.copy_(torch.from_numpy(rng.normal(size=step.inputs.shape)))
    step.inputs[..., -1] = 1
    step.targets.copy_(torch.from_numpy(rng.uniform(-1, 1, size=step.targets.shape)))
    return step


def loss_by_hand(step, flat, number: int):
    x = step.inputs[number].reshape(-1, SEEN + 1)
    y = step.targets[number].reshape(-1, ACTS)
    below = x
    *hidden, last = split(flat, step.sizes)
    for layer in hidden:
        below = torch.cat([torch.relu(below @ layer), x[:, -1:]], dim=1)
    out = torch.tanh(below @ last)
    if step.head == "deterministic":
        return ((out - y) ** 2).mean()
    log_std = -1.5 + 3.5 * out[:, ACTS:]
    return (log_std + 0.5 * ((out[:, :ACTS] - y) / log_std.exp()) ** 2).mean()


@pytest.mark.parametrize("hidden", [(32, 24), (16,), (8, 8, 8), ()])
@pytest.mark.parametrize("head", ["deterministic", "gaussian"])
@pytest.mark.parametrize("batch", [96, 1100])
def test_the_gradient_is_that_of_autograd(head: str, hidden: tuple[int, ...], batch: int):
    step = step_for(head, batch, hidden=hidden)
    ours = step.gradient(0)
    flat = step.parameters.clone().requires_grad_()
    loss = loss_by_hand(step, flat, 0)
    loss.backward()
    assert torch.allclose(ours, flat.grad, rtol=1e-4, atol=1e-6)
    assert step.take_loss() / step.batch == pytest.approx(loss.item(), rel=1e-5)
    assert step.take_loss() == 0


@pytest.mark.parametrize("head", ["deterministic", "gaussian"])
def test_updates_are_those_of_torchs_adam(head: str):
    step = step_for(head)
    flat = step.parameters.clone().requires_grad_()
    optimiser = torch.optim.Adam([flat], lr=3e-3)
    for number in range(5):
        optimiser.zero_grad()
        loss_by_hand(step, flat, number).backward()
        optimiser.step()
    step.run(5, 3e-3)
    assert torch.allclose(step.parameters, flat.detach(), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("batch", [96, 1024, 1025])
def test_the_number_of_threads_changes_no_bit(batch: int):
    results = []
    for count in (1, 2):
        step = step_for("deterministic", batch, hidden=(256, 256))
        step._pace._choices, step._pace._best = [count], count
        with threads(count):
            step.run(5, 1e-3)
            step.run(5, 1e-3)
        results.append(step.parameters)
    assert torch.equal(*results)


@pytest.mark.parametrize("sizes", [(7, 3), (7, 5, 3), (7, 5, 4, 1)])
def test_both_ways_to_cut_the_flat_vector_give_the_same_layers(sizes: tuple[int, ...]):
    flat = initial_parameters(sizes, np.random.default_rng(0))
    cut, layers = split(torch.from_numpy(flat), sizes), layers_from_flat(flat, sizes)
    assert [tuple(part.shape) for part in cut] == [
        (inputs + 1, outputs) for inputs, outputs in itertools.pairwise(sizes)
    ]
    for part, (weight, bias) in zip(cut, layers, strict=True):
        assert np.array_equal(part[:-1], weight)
        assert np.array_equal(part[-1], bias)


def test_threads_are_put_back():
    before = torch.get_num_threads()
    with threads(1):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_the_pace_takes_the_faster_number_of_threads():
    for times, best in (((1.0, 9.0), 1), ((9.0, 1.0), 2)):
        pace = Pace(2, lambda count: True)
        pace._choices = [1, 2]
        assert pace.next(100) == (100, 1)
        pace.took(pace._FIRST, 100)
        tried = []
        for seconds in times:
            tried.append(pace.next(100))
            pace.took(seconds, 4)
        assert tried == [(4, 1), (4, 2)]
        assert pace.next(100) == (100, best)
        pace.took(pace._SHARE * 4 * sum(pace._seconds.values()) - 1, 100)
        assert pace.next(100) == (100, best)
        pace.took(2.0, 1)
        assert pace.next(100) == (4, 1)


def test_threads_that_would_change_a_bit_are_never_used():
    asked = []
    pace = Pace(2, lambda count: asked.append(count))
    pace._choices = [1, 2]
    pace.took(pace._FIRST, 100)
    assert [pace.next(100) for _ in range(3)] == [(100, 1)] * 3
    assert asked == [2]


def test_the_trial_update_leaves_no_trace_and_sees_a_difference(monkeypatch: pytest.MonkeyPatch):
    step = step_for("deterministic")
    before = [tensor.clone() for tensor in step._mutable()]
    step._agrees(2)
    assert all(torch.equal(a, b) for a, b in zip(before, step._mutable(), strict=True))

    update, calls = step._update, []

    def other(*batch: torch.Tensor) -> None:
        update(*batch)
        calls.append(step.parameters[3].add_(1e-6 * len(calls)))

    monkeypatch.setattr(step, "_update", other)
    assert not step._agrees(2)


def test_faded_moments_are_dropped_before_they_slow_the_processor():
    step = step_for("deterministic")
    step.first[:3] = torch.tensor([1e-39, -1e-33, 1e-20])
    step.run(5, 1e-3)
    assert not ((step.first != 0) & (step.first.abs() < 1e-30)).any()
