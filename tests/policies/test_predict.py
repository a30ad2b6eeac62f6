"""Our policies where other people's code expects theirs."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from pubc.errors import UsageError
from pubc.policies.policy_folder import save
from pubc.policies.trifinger_policy import POLICY_VARIABLE, TriFingerPolicy, policy_class
from tests.policies.sets import random_policy

ROWS = np.random.default_rng(5).normal(size=(3, 5)).astype(np.float32)


def test_predict_takes_one_observation_or_many():
    policy = random_policy()
    many, state = policy.predict(ROWS)
    assert many.shape == (3, 2)
    one, _ = policy.predict(ROWS[1])
    assert one.shape == (2,)
    assert np.allclose(one, many[1])
    again, _ = policy.predict(ROWS, state=state, episode_start=np.zeros(3, bool))
    assert np.array_equal(again, many)


def test_an_actor_lives_until_its_trajectory_ends():
    policy = random_policy()
    _, first = policy.predict(ROWS)
    _, second = policy.predict(ROWS, state=first, episode_start=np.array([False, True, False]))
    assert [a is b for a, b in zip(first, second, strict=True)] == [True, False, True]


def test_a_sample_differs_from_the_most_likely_action():
    policy = random_policy(gaussian=True)
    sure, _ = policy.predict(ROWS)
    drawn, _ = policy.predict(ROWS, deterministic=False)
    assert not np.allclose(sure, drawn)


def test_stable_baselines3_evaluates_our_policy():
    pytest.importorskip("stable_baselines3")
    import gymnasium
    from stable_baselines3.common.evaluation import evaluate_policy
    from stable_baselines3.common.monitor import Monitor

    world = Monitor(gymnasium.make("Pendulum-v1"))
    mean, spread = evaluate_policy(random_policy(3, 1), world, n_eval_episodes=2)
    assert -4000 < mean < 0
    assert spread >= 0


def test_trifinger_builds_a_policy_from_its_class_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    save(tmp_path / "p", random_policy(), about={})
    space = SimpleNamespace(low=np.full(2, -0.1, np.float32), high=np.full(2, 0.1, np.float32))
    made = policy_class(tmp_path / "p")(space, None, 750)
    made.reset()
    action = made.get_action(ROWS[0])
    assert action.shape == (2,)
    assert (np.abs(action) <= np.float32(0.1)).all()
    assert made.get_policy_config().flatten_obs

    monkeypatch.setenv(POLICY_VARIABLE, str(tmp_path / "p"))
    assert np.array_equal(TriFingerPolicy(space, None, 750).get_action(ROWS[0]), action)
    monkeypatch.delenv(POLICY_VARIABLE)
    with pytest.raises(UsageError, match=POLICY_VARIABLE):
        TriFingerPolicy(space, None, 750)
