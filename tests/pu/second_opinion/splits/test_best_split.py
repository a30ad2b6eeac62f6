"""Which of three ways to cut is believed."""

import pytest
import torch

from pubc.pu.second_opinion.splits.best_split import Facts, choose
from pubc.pu.second_opinion.splits.pile_split import WAYS


def way(kept, *, seeds=5, apart=2.0, divided=0.1, too_much=False, of=100):
    labels = torch.zeros(of, dtype=torch.bool)
    labels[:kept] = True
    return Facts(labels, seeds, apart, divided, too_much)


def believed(many, few, even):
    return WAYS[choose([many, few, even])]


def test_what_keeps_more_than_the_seeds_stand_for_is_out_where_another_is_liker():
    many, even = way(60, apart=1.0, too_much=True), way(50, apart=1.2, too_much=True)
    assert believed(many, way(10, apart=1.25), even) == "few"
    # Seeds may lie ahead by chance: what lies further from the rest than any other is not out.
    assert believed(way(60, apart=3.0, too_much=True), way(10), way(50, apart=1.0)) == "many"


def test_where_every_way_keeps_too_much_none_is_out():
    many, few = way(60, apart=1.0, too_much=True), way(30, apart=1.1, too_much=True)
    assert believed(many, few, way(45, apart=0.9, too_much=True)) == "many"


@pytest.mark.parametrize(
    ("kept", "believed_one"),
    [((70, 40, 41), "even"), ((40, 14, 39), "many"), ((40, 42, 80), "few")],
)
def test_two_that_come_to_the_same_outvote_the_third(kept, believed_one):
    apart = {"many": 2.0, "few": 2.1, "even": 2.2 if believed_one == "even" else 1.9}
    apart["few"] = 9.0 if believed_one == "many" else apart["few"]
    ways = {name: way(size, apart=apart[name]) for name, size in zip(WAYS, kept, strict=True)}
    assert believed(*ways.values()) == believed_one


def test_two_that_lose_more_than_one_seed_outvote_nobody():
    assert believed(way(40), way(14, seeds=3, apart=3.0), way(15, seeds=3, apart=1.0)) == "many"


def test_all_three_alike_outvote_nobody():
    # Few lies further away by half, so it is believed, and not one of a pair.
    assert believed(way(40), way(39, apart=3.0), way(41)) == "few"


@pytest.mark.parametrize(("kept", "expected"), [(5, "few"), (4, "few"), (3, "many")])
def test_few_that_are_much_liker_may_lose_one_seed(kept, expected):
    assert believed(way(60), way(20, seeds=kept, apart=3.0), way(40, apart=1.0)) == expected


def test_few_keep_two_seeds_at_least():
    many, few = way(60, seeds=2), way(5, seeds=1, apart=9.0)
    assert believed(many, few, way(30, seeds=2, apart=1.0)) == "many"


def test_the_even_way_must_be_liker_and_surer_and_lose_no_seed():
    many, few = way(60), way(20, apart=2.1)
    assert believed(many, few, way(40, apart=2.5, divided=0.05)) == "even"
    assert believed(many, few, way(40, apart=2.5, divided=0.2)) == "many"
    assert believed(many, few, way(40, apart=1.5, divided=0.05)) == "many"
    assert believed(many, few, way(40, apart=2.5, divided=0.05, seeds=4)) == "many"
