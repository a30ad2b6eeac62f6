"""The steps of a pile that are looked at."""

import numpy as np
import torch

from pubc.pu.second_opinion.looks.rows import look
from pubc.trajectory import Columns, TrajectorySet

CPU = torch.device("cpu")


def a_set(observations, actions, lengths):
    rows = len(observations)
    ends = np.zeros(rows, bool)
    ends[np.cumsum(lengths) - 1] = True
    columns = Columns(
        np.asarray(observations, np.float32),
        np.asarray(actions, np.float32),
        None,
        np.zeros(rows, bool),
        ends,
    )
    return TrajectorySet.from_flat(columns, lengths)


def test_means_and_worst_windows_are_per_trajectory():
    rng = np.random.default_rng(0)
    rows = look(a_set(rng.normal(size=(50, 3)), rng.normal(size=(50, 2)), [20, 30]), 100, CPU)
    values = torch.arange(50.0)
    assert torch.allclose(rows.mean(values), torch.tensor([9.5, 34.5]))
    # Eleven windows of ten steps, and twenty-one: the lowest, and the second lowest.
    assert torch.allclose(rows.worst(values), torch.tensor([4.5, 25.5]))


def test_long_trajectories_lend_blocks_that_do_not_follow_each_other():
    rng = np.random.default_rng(0)
    rows = look(a_set(rng.normal(size=(1000, 2)), rng.normal(size=(1000, 1)), [1000]), 90, CPU)
    assert len(rows.states) == 90
    assert int(rows.breaks.sum()) == 3
    assert rows.speed[rows.breaks].eq(0).all()


def test_an_action_that_repeats_a_state_is_what_it_adds_to_it():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(400, 3))
    moves = 0.05 * rng.normal(size=(400, 2))
    rows = look(a_set(states, states[:, :2] + moves, [200, 200]), 300, CPU)
    assert rows.scale.copies.tolist() == [0, 1]
    told = np.corrcoef(rows.actions[:, 0], moves[:, 0])[0, 1]
    assert told > 0.98


def test_ids_of_discrete_actions_are_columns():
    rng = np.random.default_rng(0)
    actions = rng.integers(0, 4, size=(100, 1))
    rows = look(a_set(rng.normal(size=(100, 3)), actions, [50, 50]), 100, CPU)
    assert rows.actions.shape == (100, 4)
    assert torch.equal(rows.actions.argmax(1), torch.from_numpy(actions[:, 0]))
