"""Stacked cloning against cloning alone: same weights, same order, same held-out trajectories."""

import numpy as np
import pytest
import torch

from pubc.policies import stacked_trainer, trainer
from pubc.policies.cloning.in_turn import InTurn
from pubc.policies.stacked.stacked_bc import StackedBC
from pubc.policies.stacked.stacked_rows import Member
from pubc.policies.train_options import TrainOptions
from pubc.threads import threads
from pubc.trajectory import TrajectorySet
from tests.policies.sets import tiny

SEEDS = (0, 2, 5)


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for one another are slow beside other tests."""
    with threads(1):
        yield


def uneven() -> TrajectorySet:
    """Trajectories of different lengths, so that members hold out different numbers of steps."""
    even = tiny(trajectories=30, length=20)
    lengths = np.array([3, 20] * 15)
    return TrajectorySet(even.columns, even.starts, lengths, even.ids)


def stack(mixed: TrajectorySet, options: TrainOptions) -> StackedBC:
    members = [Member(mixed, seed) for seed in SEEDS]
    return StackedBC(members, options, device=torch.device("cpu"))


def differences(mixed: TrajectorySet, options: TrainOptions) -> float:
    many = stack(mixed, options)
    for epoch in range(many.epochs):
        many.advance(epoch)
    worst = 0.0
    for seed, ours in zip(SEEDS, many.policies(), strict=True):
        alone = trainer("bc", mixed, options, random_seed=seed, device="cpu")
        for epoch in range(alone.epochs):
            alone.advance(epoch)
        theirs = alone.policy().tensors()
        found = [np.abs(ours.tensors()[key] - array).max() for key, array in theirs.items()]
        worst = max(worst, *map(float, found))
    return worst


@pytest.mark.parametrize(
    "options",
    [
        TrainOptions(recipe="paper", epochs=3, hidden=(32, 16)),
        TrainOptions(epochs=4, hidden=(32,), batch_size=32),
        TrainOptions(epochs=3, hidden=(32,), head="gaussian"),
    ],
)
def test_a_stack_is_the_trainings_alone_up_to_rounding(options):
    assert differences(tiny(), options) < 2e-5


@pytest.mark.parametrize("name", ["bc", "50%bc"])
def test_without_a_gpu_a_stack_is_the_trainings_alone_to_the_last_bit(name):
    options = TrainOptions(epochs=3, hidden=(16,), batch_size=32)
    many = stacked_trainer(name, uneven(), options, random_seeds=SEEDS, device="cpu")
    assert isinstance(many.stack, InTurn)
    told = [many.advance(epoch) for epoch in range(many.epochs)]
    for seed, ours in zip(SEEDS, many.policies(), strict=True):
        alone = trainer(name, uneven(), options, random_seed=seed, device="cpu")
        for line in told:
            for key, value in alone.advance(told.index(line)).items():
                assert line[f"{key}@{seed}"] == value
        for key, array in alone.policy().tensors().items():
            assert np.array_equal(ours.tensors()[key], array), key


def test_members_that_hold_out_more_steps_make_fewer_updates():
    options = TrainOptions(epochs=6, hidden=(16,), batch_size=16, held_out=0.2)
    assert len({clock.per_epoch for clock in stack(uneven(), options)._clocks}) > 1
    assert differences(uneven(), options) < 2e-5
    flat = TrainOptions(recipe="paper", epochs=6, hidden=(16,), batch_size=16, held_out=0.2)
    assert differences(uneven(), flat) < 2e-5


@pytest.mark.parametrize("gpu", [True, False])
def test_a_restored_stack_goes_on_to_the_same_bytes(gpu):
    def fresh():
        options = TrainOptions(epochs=3, hidden=(16,), batch_size=32)
        if gpu:
            return stack(uneven(), options)
        return stacked_trainer("bc", uneven(), options, random_seeds=SEEDS, device="cpu")

    whole, first, second = fresh(), fresh(), fresh()
    for epoch in range(3):
        whole.advance(epoch)
    first.advance(0)
    second.restore(*first.state())
    second.advance(1)
    second.advance(2)
    assert whole.state()[1] == second.state()[1]
    for key, array in whole.state()[0].items():
        assert np.array_equal(array, second.state()[0][key]), key
