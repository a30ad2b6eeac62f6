"""Every learner of the paper passes the same check."""

from pathlib import Path

import numpy as np
import pytest

from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.policies import LEARNERS, OFFLINE, WEIGHTED, trainer
from pubc.policies.policy_folder import load, save
from pubc.policies.train_options import TrainOptions
from tests.policies.sets import acts, tiny

pytest.importorskip("d3rlpy")


def run_of(name: str, seed: int = 0):
    data = tiny()
    small = TrainOptions(updates=6, batch_size=8, hidden=(16, 16))
    seeds = data[:2] if name in WEIGHTED else None
    return trainer(name, data, small, random_seed=seed, positives=seeds)


def trained(run):
    return [run.advance(epoch) for epoch in range(run.epochs)]


@pytest.mark.parametrize("name", LEARNERS)
def test_a_learner_keeps_its_promises(name: str, tmp_path: Path):
    run = run_of(name)
    history = trained(run)
    assert all(np.isfinite(value) for line in history for value in line.values())
    policy = run.policy()
    did = acts(policy)

    assert did.shape == (4, 2)
    low, high = policy.actions.low, policy.actions.high
    assert ((did >= low) & (did <= high)).all()

    again = run_of(name)
    assert trained(again) == history
    assert np.array_equal(acts(again.policy()), did)

    save(tmp_path / "policy", policy, about={"learner": name})
    assert np.array_equal(acts(load(tmp_path / "policy")), did)

    fresh = run_of(name, seed=0)
    fresh.restore(*run.state())
    assert np.array_equal(acts(fresh.policy()), did)
    assert fresh.advance(run.epochs - 1) == run.advance(run.epochs - 1)


def test_another_seed_is_another_policy():
    runs = [run_of("bc", seed) for seed in (0, 1)]
    for run in runs:
        trained(run)
    assert not np.array_equal(acts(runs[0].policy()), acts(runs[1].policy()))


def test_percent_bc_learns_from_the_highest_returns_alone():
    data = tiny()
    best = np.argsort(-data.total_rewards())[:5]
    run = trainer("25%bc", data, TrainOptions(epochs=1))
    plain = trainer("bc", data[np.sort(best)], TrainOptions(epochs=1))
    assert run.fingerprint == plain.fingerprint


def test_an_unknown_learner_names_the_nearest():
    with pytest.raises(UnknownNameError, match=r"No learner named 'td3cb'\. Did you mean 'td3bc'"):
        trainer("td3cb", tiny(), TrainOptions())


def test_dwbc_without_positives_says_what_it_needs():
    with pytest.raises(UsageError, match="--positives"):
        trainer("dwbc", tiny(), TrainOptions())


@pytest.mark.parametrize("name", [*OFFLINE, "10%bc"])
def test_learners_of_rewards_refuse_data_without_them(name: str):
    with pytest.raises(DataError, match="rewards"):
        trainer(name, tiny(rewards=False), TrainOptions())


def test_d3rlpy_leaves_no_trace_in_torch():
    import torch

    state, precision = torch.get_rng_state(), torch.get_float32_matmul_precision()
    run_of("td3bc").advance(0)
    assert torch.equal(state, torch.get_rng_state())
    assert torch.get_float32_matmul_precision() == precision


def test_table_seven_is_what_d3rlpy_is_given():
    from pubc.policies.offline_rl.reinforce import OfflineRun  # noqa: F401  (the module must import)

    run = trainer("iql", tiny(), TrainOptions(recipe="paper"))
    assert run.about() == {
        "updates": 1_000_000,
        "actor_learning_rate": 3e-4,
        "critic_learning_rate": 3e-4,
        "batch_size": 256,
        "expectile": 0.7,
        "weight_temp": 3.0,
    }
    assert run._algorithm.config.expectile == 0.7
    plas = trainer("plas", tiny(), TrainOptions(recipe="paper")).about()
    assert (plas["warmup_steps"], plas["beta"]) == (500_000, 0.5)
