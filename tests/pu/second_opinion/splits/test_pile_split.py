"""Cuts and weights by themselves, on numbers that are made up."""

import numpy as np
import pytest
import torch

from pubc.pu.second_opinion.splits.pile_split import WAYS, _cut, _middles, _score


def groups(upper, lower, seed=0):
    rng = np.random.default_rng(seed)
    drawn = [rng.normal(0, 0.1, upper), rng.normal(-2, 0.4, lower)]
    return torch.from_numpy(np.concatenate(drawn))


@pytest.mark.parametrize("way", WAYS)
def test_two_clear_groups_are_cut_between_in_every_way(way):
    score = groups(20, 40)
    cut = _cut(score, torch.arange(6), torch.arange(4), way)
    assert ((score > cut) == (torch.arange(60) < 20)).all()


def test_seeds_that_reach_down_pull_the_cut_down():
    """Of three groups the middle one belongs to the seeds if some of them lie in it."""
    score = torch.cat([groups(20, 0), groups(20, 0, seed=1) - 0.8, groups(0, 40)])
    high, both = torch.arange(6), torch.tensor([0, 1, 2, 20, 21, 22])
    above = [int((score > _cut(score, seeds, seeds, "few")).sum()) for seeds in (high, both)]
    assert above[0] <= 20
    assert above[1] == 40


def test_a_few_at_the_top_are_found_by_the_way_for_few():
    score = torch.cat([groups(4, 0), groups(0, 120, seed=2) + 0.9])
    cut = _cut(score, torch.arange(3), torch.arange(3), "few")
    assert int((score > cut).sum()) <= 8
    assert bool((score[:4] > cut).all())


def test_positives_are_measured_by_the_median_of_the_others():
    rng = np.random.default_rng(3)
    numbers = torch.from_numpy(rng.normal(size=(3, 12)))
    for count in (2, 3, 4, 5, 8):
        positives = torch.from_numpy(rng.permutation(12)[:count])
        middle = _middles(numbers, positives)
        for place in positives.tolist():
            others = numbers[:, positives[positives != place]]
            assert torch.allclose(middle[:, place], torch.quantile(others, 0.5, dim=1))


def test_evidence_that_does_not_tell_the_positives_from_the_pile_counts_little():
    telling = torch.cat([torch.zeros(5), torch.ones(45)])
    empty = torch.from_numpy(np.random.default_rng(4).uniform(size=50)).float()
    short = torch.stack([telling, empty])
    score = _score(short, torch.arange(5))
    assert score[:5].min() > score[5:].max()
    # What tells nothing is ahead of half of the others: its weight is e**-3 of the other's.
    assert torch.allclose(score, -(0.95 * telling + 0.05 * empty), atol=0.08)
