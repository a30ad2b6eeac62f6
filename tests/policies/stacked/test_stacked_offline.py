"""Stacked offline learners against d3rlpy's single updates: same weights, batches and noise."""

import numpy as np
import pytest
import torch

from pubc.policies import stacked_trainer, trainer
from pubc.policies.offline_rl import reinforce
from pubc.policies.stacked import stacked_offline
from pubc.policies.train_options import TrainOptions
from pubc.threads import threads
from pubc.trajectory import Columns, TrajectorySet

pytest.importorskip("d3rlpy")

SEEDS = (0, 3, 11)
NAMES = ("iql", "crr", "td3bc", "plas")


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for one another are slow beside other tests."""
    with threads(1):
        yield


def both_ends(trajectories: int = 8, length: int = 25) -> TrajectorySet:
    """Every second trajectory ends as terminal, and those that do not have a final observation."""
    rng = np.random.default_rng(0)
    rows = trajectories * length
    seen = rng.normal(size=(rows, 5)).astype(np.float32)
    acted = np.tanh(seen[:, :2]).astype(np.float32)
    last = np.zeros(rows, dtype=np.bool_)
    last[length - 1 :: length] = True
    terminal = last & (np.arange(rows) // length % 2 == 0)
    columns = Columns(
        seen, acted, rng.normal(size=rows).astype(np.float32), terminal, last & ~terminal
    )
    return TrajectorySet.from_flat(
        columns,
        [length] * trajectories,
        final_observations=rng.normal(size=(trajectories, 5)).astype(np.float32),
        has_final=np.arange(trajectories) % 2 == 1,
    )


def train(run, epochs: int | None = None):
    return [run.advance(epoch) for epoch in range(epochs or run.epochs)]


@pytest.mark.parametrize("name", NAMES)
def test_a_stack_is_the_trainings_of_d3rlpy_up_to_rounding(name, monkeypatch):
    # Two epochs, and ways that differ within them: delayed policies, warm-up, copies.
    for module in (reinforce, stacked_offline):
        monkeypatch.setattr(module, "PER_EPOCH", 30)
    mixed, options = both_ends(), TrainOptions(updates=60, batch_size=16)
    many = stacked_trainer(name, mixed, options, random_seeds=SEEDS, device="cpu")
    told = train(many)
    for seed, ours in zip(SEEDS, many.policies(), strict=True):
        alone = trainer(name, mixed, options, random_seed=seed, device="cpu")
        losses = train(alone)
        theirs = alone.policy()
        for mine, their in zip(
            (*ours.layers, *ours.decoder), (*theirs.layers, *theirs.decoder), strict=True
        ):
            for a, b in zip(mine, their, strict=True):
                # Where a gradient is next to nothing, Adam makes a whole step of its rounding.
                assert np.abs(a - b).max() < 1e-3
                assert np.abs(a - b).mean() < 1e-5
        for line, wanted in zip(told, losses, strict=True):
            for key, value in wanted.items():
                assert line[f"{key}@{seed}"] == pytest.approx(value, rel=1e-3, abs=1e-4)
    assert many.about() == alone.about()


@pytest.mark.parametrize("name", NAMES)
def test_the_members_differ_and_have_moved(name):
    many = stacked_trainer(
        name, both_ends(), TrainOptions(updates=4, batch_size=8), random_seeds=SEEDS, device="cpu"
    )
    before = [policy.layers[0][0].copy() for policy in many.policies()]
    train(many)
    after = [policy.layers[0][0] for policy in many.policies()]
    assert all(np.abs(a - b).max() > 0 for a, b in zip(before, after, strict=True))
    assert np.abs(after[0] - after[1]).max() > 0.01


@pytest.mark.parametrize("name", NAMES)
def test_a_restored_stack_goes_on_to_the_same_bytes(name, monkeypatch):
    monkeypatch.setattr(stacked_offline, "PER_EPOCH", 5)

    def fresh():
        return stacked_trainer(
            name,
            both_ends(),
            TrainOptions(updates=10, batch_size=8),
            random_seeds=SEEDS,
            device="cpu",
        )

    whole, first, second = fresh(), fresh(), fresh()
    train(whole)
    first.advance(0)
    second.restore(*first.state())
    second.advance(1)
    arrays, found = whole.state()[0], second.state()[0]
    assert arrays.keys() == found.keys()
    for key, array in arrays.items():
        assert np.array_equal(array, found[key]), key


def test_a_set_that_does_not_fit_is_read_from_disk_with_the_same_batches(monkeypatch):
    from pubc.policies.stacked import stacked_rows

    def batches():
        many = stacked_trainer(
            "iql",
            both_ends(),
            TrainOptions(updates=3, batch_size=7),
            random_seeds=SEEDS,
            device="cpu",
        )
        return list(many.stack._batches(0, 0, 3))

    held = batches()
    monkeypatch.setattr(stacked_rows, "_HOST", 0)
    for one, other in zip(held, batches(), strict=True):
        for name, rows in one.items():
            assert rows.shape == other[name].shape
            assert torch.equal(rows, other[name]), name
