"""One trajectory at a time: what is recorded, and that nothing but its key decides it."""

import numpy as np
import pytest

from pubc.acting.rollout import play
from pubc.errors import DataError
from pubc.streams import stream


class Counting:
    """Observes the number of steps, rewards the action, ends after `ends_at` steps."""

    name = "counting"
    observation_size, action_size, time_limit = 1, 2, 10
    low, high = np.full(2, -1.0), np.full(2, 1.0)

    def __init__(self, ends_at=99):
        self.ends_at = ends_at

    def reset(self, random_seed):
        self.first = random_seed % 1000
        self.count = 0
        return np.array([self.first], dtype=np.float64)

    def step(self, action):
        self.count += 1
        timeout = self.count >= self.time_limit
        return np.array([self.count]), float(action[0]), self.count >= self.ends_at, timeout


class Fixed:
    def __init__(self, action):
        self.action = np.asarray(action, dtype=np.float32)
        self.rewards = []

    def begin(self, rng):
        def act(observation, reward):
            self.rewards.append(reward)
            return self.action

        return act


class Sampling:
    def begin(self, rng):
        return lambda observation, reward: rng.uniform(-1, 1, 2)


def once(environment, policy, **key):
    return play(environment, policy, random_seed=key.pop("random_seed", 0), source="x", **key)


def test_a_trajectory_holds_what_was_seen_done_and_received():
    one = once(Counting(ends_at=3), Fixed([0.5, 0.25]))
    assert one.steps.observations[1:].tolist() == [[1], [2]]
    assert one.final_observation.tolist() == [3]
    assert one.steps.actions.tolist() == [[0.5, 0.25]] * 3
    assert one.steps.rewards.tolist() == [0.5] * 3
    assert one.steps.observations.dtype == one.steps.actions.dtype == np.float32
    assert one.steps.terminals.tolist() == [False, False, True]
    assert not one.steps.timeouts.any()


def test_the_time_limit_is_a_timeout_not_a_terminal():
    one = once(Counting(), Fixed([0, 0]))
    assert len(one) == 10
    assert one.steps.timeouts.tolist() == [False] * 9 + [True]
    assert not one.steps.terminals.any()


def test_a_cut_is_a_timeout_and_ends_with_the_next_observation():
    one = once(Counting(), Fixed([0, 0]), most=lambda: 4)
    assert (len(one), one.final_observation.tolist()) == (4, [4])
    assert one.steps.timeouts[-1]


def test_a_cut_may_come_while_the_trajectory_is_played():
    left = iter([9, 9, 1])
    one = once(Counting(), Fixed([0, 0]), most=lambda: next(left))
    assert (len(one), one.final_observation.tolist()) == (3, [3])
    assert one.steps.timeouts.tolist() == [False, False, True]


def test_actions_are_clipped_to_the_limits():
    assert once(Counting(), Fixed([9, -9])).steps.actions[0].tolist() == [1, -1]


def test_the_actor_hears_the_reward_of_its_last_action():
    policy = Fixed([0.5, 0])
    once(Counting(ends_at=3), policy)
    assert policy.rewards == [0.0, 0.5, 0.5]


@pytest.mark.parametrize("changed", [{"random_seed": 1}, {"index": 1}])
def test_the_key_decides_everything(changed):
    same = [once(Counting(), Sampling()) for _ in range(2)]
    assert np.array_equal(same[0].steps.actions, same[1].steps.actions)
    other = once(Counting(), Sampling(), **changed)
    assert not np.array_equal(same[0].steps.actions, other.steps.actions)
    assert same[0].steps.observations[0] != other.steps.observations[0]


def test_streams_differ_by_every_part_of_their_path():
    paths = [(0, "a", 1), (0, "a", 2), (0, "b", 1), (1, "a", 1), (0, "a", "1"), (0, "a1")]
    assert len({stream(*path).random() for path in paths}) == len(paths)


@pytest.mark.parametrize("size", [1, 3])
def test_an_action_of_the_wrong_size_is_named(size):
    with pytest.raises(DataError, match=rf"shape \({size},\), but counting takes 2"):
        once(Counting(), Fixed([0] * size))


def test_an_action_that_is_not_finite_is_refused():
    with pytest.raises(DataError, match="not finite"):
        once(Counting(), Fixed([np.nan, 0]))
