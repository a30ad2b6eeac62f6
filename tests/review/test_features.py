"""Alike trajectories end in one group, whatever their units and however many there are."""

import numpy as np

from pubc.cli.filtering.demo_command import mixture
from pubc.review.alike_groups import alike
from pubc.review.features import describe
from pubc.trajectory import Columns, TrajectorySet


def pile(gains, steps=40, scale=1.0):
    rng = np.random.default_rng(0)
    states = rng.normal(size=(len(gains) * steps, 3))
    actions = np.repeat(gains, steps)[:, None] * states[:, :2]
    flags = np.zeros(len(states), bool)
    constant = np.ones((len(states), 1))
    columns = Columns(np.hstack([states * scale, constant]), actions, None, flags, flags)
    return TrajectorySet.from_flat(columns, [steps] * len(gains))


def test_every_column_that_varies_has_spread_one():
    found = describe(pile([1.0] * 10 + [0.3] * 10))
    assert np.allclose(found.style.std(axis=0), 1.0, atol=0.05)
    assert found.style.shape[0] == found.start.shape[0] == 20


def test_units_do_not_matter():
    gains = [1.0] * 10 + [0.3] * 10
    plain, large = describe(pile(gains)), describe(pile(gains, scale=1e6))
    assert np.allclose(plain.style, large.style, atol=1e-3)


def test_the_way_of_acting_makes_the_groups():
    gains = [1.0, 0.5, 0.1] * 8
    groups = alike(describe(pile(gains, steps=200)).style, 3)
    assert [len(group.members) for group in groups] == [8, 8, 8]
    for group in groups:
        assert len({gains[at] for at in group.members}) == 1


def test_groups_of_the_demo_hold_one_policy_each():
    mixed = mixture()
    groups = alike(describe(mixed).style, 5)
    assert sorted(np.concatenate([group.members for group in groups])) == list(range(60))
    for group in groups:
        assert len(set(mixed.sources[group.members])) == 1


def test_the_same_data_gives_the_same_groups_and_copies_share_one():
    style = describe(pile([1.0] * 6 + [0.1] * 6)).style
    first, second = alike(style, 4), alike(style, 4)
    assert [g.members.tolist() for g in first] == [g.members.tolist() for g in second]
    assert len(alike(np.zeros((7, 3)), 4)) == 1
    assert alike(np.zeros((0, 3)), 4) == []
