"""Behaviour cloning: recipes, early stop, and words when it goes wrong."""

import dataclasses

import numpy as np
import pytest
import torch

from pubc.errors import DataError, UsageError
from pubc.policies.cloning import bc
from pubc.policies.cloning.bc import Clone, plan
from pubc.policies.train_options import TrainOptions
from tests.policies.sets import tiny

CPU = torch.device("cpu")


def clone(data, **options) -> Clone:
    return Clone(data, TrainOptions(**options), random_seed=0, device=CPU)


def train(run: Clone) -> list[dict[str, float]]:
    history = []
    for epoch in range(run.epochs):
        if run.settled:
            break
        history.append(run.advance(epoch))
    return history


def test_the_papers_recipe_is_the_papers():
    chosen = plan(tiny(), TrainOptions(recipe="paper"))
    assert (chosen.batch_size, chosen.learning_rate, chosen.epochs) == (100, 1e-3, 200)
    assert (chosen.falling, chosen.held_out) == (False, 0)


@pytest.mark.parametrize("head", ["deterministic", "gaussian"])
@pytest.mark.parametrize("recipe", ["auto", "paper"])
def test_a_clone_acts_like_its_data(head: str, recipe: str):
    data = tiny(trajectories=40)
    run = clone(data, head=head, recipe=recipe, epochs=60, batch_size=64)
    history = train(run)
    assert history[-1]["loss"] < history[0]["loss"]
    fresh = tiny(seed=9).columns
    error = run.policy().act(fresh.observations) - fresh.actions
    assert np.sqrt(np.mean(error**2)) < 0.12


@pytest.mark.parametrize("head", ["deterministic", "gaussian"])
def test_the_held_out_loss_is_that_of_the_policy_on_trajectories_it_never_saw(head: str):
    data = tiny()
    run = clone(data, head=head, epochs=1, batch_size=64)
    said = run.advance(0)["held_out_loss"]
    kept = {tuple(row) for row in run._feed.trajectories.flat().observations}
    held = [one for one in data if tuple(one.steps.observations[0]) not in kept]
    assert len(held) == 1
    policy, steps = run.policy(), held[0].steps
    if head == "deterministic":
        units = policy.units(steps.observations) - policy.actions.to_unit(steps.actions)
        assert said == pytest.approx(np.mean(units**2), rel=1e-4)
    else:
        dense = policy.log_likelihood(steps.observations, steps.actions)
        shift = 0.5 * np.log(2 * np.pi) + np.log(policy.actions.half).mean()
        assert said == pytest.approx(-dense.mean() / 2 - shift, rel=1e-4)


def test_training_stops_when_the_held_out_loss_has_settled(monkeypatch: pytest.MonkeyPatch):
    run = clone(tiny(), epochs=50, batch_size=64)
    losses = iter([3.0, 2.0, 1.0, *[5.0] * 60])
    best = {}

    def judged() -> float:
        value = next(losses)
        best.setdefault(value, run._step.parameters.clone())
        return value

    monkeypatch.setattr(run, "_held_out_loss", judged)
    assert len(train(run)) == 3 + run.plan.patience
    assert torch.equal(run._best, best[1.0])


def test_a_loss_that_is_not_finite_stops_with_words():
    run = clone(tiny(), learning_rate=1e-3, epochs=2)
    run._step.parameters[0] = float("nan")
    with pytest.raises(DataError, match=r"loss became nan in epoch 1.*--learning-rate"):
        run.advance(0)


def test_a_set_larger_than_memory_trains_to_the_same_policy(monkeypatch: pytest.MonkeyPatch):
    policies = []
    for memory in (1 << 30, 0):
        monkeypatch.setattr(bc, "TrainingRows", _limited(memory))
        run = clone(tiny(), epochs=3, batch_size=64)
        train(run)
        policies.append(run.policy().tensors())
    assert all(np.array_equal(policies[0][name], policies[1][name]) for name in policies[0])


def _limited(memory: int):
    from pubc.policies.training_rows import TrainingRows

    return lambda *given, **named: TrainingRows(*given, **{**named, "memory": memory})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": -1}, "must be above zero"),
        ({"learning_rate": -1.0}, "must be above zero"),
        ({"hidden": (0,)}, "must be above zero"),
        ({"epochs": 0}, "at least one epoch"),
        ({"held_out": 1.0}, "from 0 to less than 1"),
    ],
)
def test_impossible_options_are_refused(options: dict, words: str):
    with pytest.raises(UsageError, match=words):
        plan(tiny(), TrainOptions(**options))


@pytest.mark.parametrize("length", [1, 2, 7])
def test_the_smallest_sets_train(length: int):
    run = clone(tiny(trajectories=1, length=length), epochs=2)
    assert np.isfinite(train(run)[-1]["loss"])
    assert dataclasses.asdict(run.plan)["held_out"] == 0
