"""From a set to a policy and to what it earns, in Python."""

import numpy as np
import pytest

import pubc
from pubc.errors import UnknownNameError, UsageError
from tests.pu.piles import pile

MIXED = pile([6], steps=40, states=3, actions=1)


def test_a_clone_acts_like_the_trajectories():
    told = []
    policy = pubc.clone(MIXED, epochs=3, on_epoch=lambda epoch, metrics: told.append(epoch))
    action, _ = policy.predict(MIXED[0].steps.observations[0])
    assert action.shape == (1,)
    assert told == [1, 2, 3]
    again = pubc.clone(MIXED, epochs=3)
    rows = MIXED[0].steps.observations
    assert np.array_equal(policy.predict(rows)[0], again.predict(rows)[0])


def test_a_policy_folder_is_the_same_policy(tmp_path):
    policy = pubc.clone(MIXED, epochs=2, out=tmp_path / "policy")
    loaded = pubc.load_policy(tmp_path / "policy")
    rows = MIXED[1].steps.observations
    assert np.array_equal(policy.predict(rows)[0], loaded.predict(rows)[0])
    with pytest.raises(UsageError, match="exists already"):
        pubc.clone(MIXED, epochs=2, out=tmp_path / "policy")


def test_an_evaluation_has_returns_and_an_interval(tmp_path):
    pytest.importorskip("gymnasium")
    pubc.clone(MIXED, epochs=1, out=tmp_path / "policy")
    policy = pubc.load_policy(tmp_path / "policy")
    found = pubc.evaluate(policy, "Pendulum-v1", episodes=3)
    assert found.returns.shape == (3,)
    assert found.interval[0] <= found.mean <= found.interval[1]
    assert found.score is None
    named = pubc.evaluate(tmp_path / "policy", "Pendulum-v1", episodes=3, reference=(-2000.0, 0.0))
    assert np.array_equal(named.returns, found.returns)
    assert named.score == pytest.approx(1 + named.mean / 2000)
    assert "95 % interval" in repr(found)


def test_an_export_is_one_file(tmp_path):
    policy = pubc.clone(MIXED, epochs=1)
    written = pubc.export(policy, tmp_path / "policy.pt")
    assert written.path.stat().st_size > 0
    assert written.difference <= 1e-5


def test_what_cannot_be_learned_is_refused():
    with pytest.raises(UsageError, match=r"holds trajectories\. Got TrajectorySet"):
        pubc.clone(MIXED[[]])
    with pytest.raises(UnknownNameError, match="No option of training named 'epoch'"):
        pubc.clone(MIXED, epoch=3)
    with pytest.raises(UnknownNameError, match="No learner named"):
        pubc.clone(MIXED, algo="magic")
