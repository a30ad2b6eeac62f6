"""Marks of both kinds say what evidence is worth in a pile."""

import numpy as np
import torch

from pubc.pu.second_opinion.splits.taught_split import can_teach, teach

COUNT = 60
RNG = np.random.default_rng(0)
EXPERT = torch.arange(COUNT) < 20
ALMOST = (torch.arange(COUNT) >= 20) & (torch.arange(COUNT) < 40)
"""Others who differ from the expert in one number only, which counts for little elsewhere."""


def pile():
    short = torch.from_numpy(RNG.normal(size=(24, COUNT)) * 0.5)
    short[0] += 6.0 * (~EXPERT & ~ALMOST)
    short[7] += 8.0 * ALMOST
    codes = torch.from_numpy(RNG.normal(size=(COUNT, 8)))
    belief = torch.where(EXPERT | ALMOST, 0.9, 0.1)
    return short, codes, belief


def test_marks_teach_what_tells_the_almost_alike_apart():
    short, codes, belief = pile()
    bad = torch.zeros(COUNT, dtype=torch.bool)
    bad[[20, 22, 24, 26, 50, 55]] = True
    found = teach(short, codes, belief, torch.tensor([0, 3, 6, 9]), bad)
    before = ((belief > 0.5) == EXPERT).float().mean()
    assert before < 0.7
    assert ((found > 0.5) == EXPERT).float().mean() > 0.9


def test_what_was_marked_stays_as_it_was_marked():
    short, codes, belief = pile()
    bad = torch.zeros(COUNT, dtype=torch.bool)
    bad[[0, 1, 2, 41]] = True
    found = teach(short, codes, belief, torch.tensor([45, 5]), bad)
    assert found[bad].tolist() == [0.0] * 4
    assert found[[45, 5]].tolist() == [1.0, 1.0]


def test_a_few_marks_of_one_kind_teach_nothing():
    assert can_teach(2, 4)
    assert not can_teach(1, 9)
    assert not can_teach(9, 3)
