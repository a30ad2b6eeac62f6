"""Seeds that are left out, and where they lie."""

import numpy as np
import torch

from pubc.pu.second_opinion.looks.evidence import open_view
from pubc.pu.second_opinion.looks.rows import look
from pubc.pu.second_opinion.splits.held_out import HeldOut, hold_out
from tests.pu.piles import pile


def held(counts, seeds, random_seed):
    mixed = pile(counts, random_seed=random_seed)
    rows = look(mixed, 60, torch.device("cpu"))
    rng = np.random.default_rng(random_seed)
    view = open_view(rows, features=32, size=4, updates=60, rng=rng)
    return hold_out([view], torch.tensor(seeds)), np.asarray(mixed.sources) == "0"


def test_seeds_of_the_policy_that_is_kept_lie_anywhere_in_it():
    ranks = []
    for random_seed in range(6):
        found, truth = held([20, 12], [0, 1, 2], random_seed)
        ranks.append(found.rank(truth))
    assert 0.25 < np.mean(ranks) < 0.75


def test_seeds_lie_ahead_of_what_is_more_than_their_policy():
    found, truth = held([5, 40], [0, 1, 2], 0)
    assert found.rank(np.ones_like(truth)) > 0.84
    assert found.too_much(np.ones_like(truth), 3.0)
    assert not found.too_much(np.ones_like(truth), 20.0)


def test_at_most_five_are_left_out_and_two_say_nothing():
    assert len(held([20, 5], list(range(9)), 0)[0].seeds) == 5
    few, truth = held([20, 5], [0, 1], 0)
    assert few.rank(truth) == 0.5


def test_seeds_beyond_what_is_judged_count_by_their_own_row():
    found = HeldOut(np.array([4]), np.array([[1.0, 2.0, 3.0, 9.0, 2.5]]))
    assert found.rank(np.array([True, True, True, True])) == 0.5
    assert found.rank(np.array([False, False, False, False])) == 0.5
