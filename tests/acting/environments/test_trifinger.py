"""TriFinger in simulation: seeded properly, of the promised sizes, scoring as published."""

from pathlib import Path

import numpy as np
import pytest

from pubc.acting import environments
from pubc.acting.rollout import play
from pubc.collect.policy_files import open_policy

pytest.importorskip("trifinger_rl_datasets")
POLICIES = Path(__file__).parents[4] / "shared" / "policies" / "trifinger"


class Still:
    def begin(self, rng):
        return lambda observation, reward: np.zeros(9, dtype=np.float32)


@pytest.mark.parametrize(
    ("name", "size", "limit"), [("trifinger-push", 97, 750), ("trifinger-lift", 139, 1500)]
)
def test_sizes_and_limits_are_those_of_the_datasets(name: str, size: int, limit: int):
    made = environments.make(name)
    assert (made.observation_size, made.action_size, made.time_limit) == (size, 9, limit)
    assert made.reset(0).shape == (size,)


def test_start_and_goal_depend_on_the_seed_alone():
    first, second = environments.make("trifinger-lift"), environments.make("trifinger-lift")
    first.reset(5)
    assert np.array_equal(first.reset(7), second.reset(7))
    assert not np.array_equal(first.reset(8), second.reset(7))


@pytest.mark.parametrize("name", ["trifinger-push", "trifinger-lift"])
def test_our_ticks_simulate_what_the_platforms_own_do_to_the_last_bit(name: str):
    ours, theirs = environments.make(name), environments.make(name)
    del theirs._environment._append_desired_action  # what the class has is behind it
    rng = np.random.default_rng(4)
    assert np.array_equal(ours.reset(9), theirs.reset(9))
    # Long enough for a picture: the camera takes one in five steps.
    for _ in range(12):
        action = rng.uniform(ours.low, ours.high).astype(np.float32)
        told, expected = ours.step(action), theirs.step(action)
        assert np.array_equal(told[0], expected[0])
        assert told[1:] == expected[1:]
    assert theirs._environment.platform._action_log["actions"]
    assert not ours._environment.platform._action_log["actions"]


def test_a_reset_gives_the_global_generator_back():
    made = environments.make("trifinger-push")
    np.random.seed(3)  # noqa: NPY002
    expected = np.random.random()  # noqa: NPY002
    np.random.seed(3)  # noqa: NPY002
    made.reset(0)
    assert np.random.random() == expected  # noqa: NPY002


def test_a_trajectory_is_the_same_in_a_used_environment():
    used = environments.make("trifinger-push")
    play(used, Still(), random_seed=0, source="still", index=0, most=lambda: 5)
    fresh = environments.make("trifinger-push")
    again, anew = (
        play(made, Still(), random_seed=0, source="still", index=1, most=lambda: 5)
        for made in (used, fresh)
    )
    assert np.array_equal(again.steps.observations, anew.steps.observations)


@pytest.mark.slow
@pytest.mark.skipif(not POLICIES.exists(), reason="needs the policies in ../shared")
def test_a_push_trajectory_of_the_expert_scores_as_published():
    expert = open_policy(str(POLICIES / "push_expert.npz"))
    one = play(environments.make("trifinger-push"), expert, random_seed=0, source="expert")
    assert len(one) == 750
    assert one.steps.timeouts[-1]
    # Published for this policy: 623 with a standard deviation of 211, at most 750.
    assert 623 - 211 < one.total_reward < 750
