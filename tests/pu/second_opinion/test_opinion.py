"""What evidence says of piles whose truth is known."""

import functools
import threading
from dataclasses import replace

import numpy as np
import pytest
import torch

from pubc.pu.judge import Bench
from pubc.pu.rounds import Pile
from pubc.pu.second_opinion.looks.evidence import EVIDENCE
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings
from pubc.pu.second_opinion.opinion import form_opinion
from pubc.pu.second_opinion.splits import best_split as best_module
from pubc.pu.second_opinion.splits.pile_split import split_pile
from pubc.streams import Key
from tests.pu.piles import pile

QUICK = OpinionSettings(updates=60, features=32)


def asked(mixed, seeds, known_bad=None, settings=QUICK):
    made = Pile.of(mixed, mixed[list(seeds)], bench=Bench(workers=1, device="cpu"))
    if known_bad is not None:
        made = replace(made, known_bad=known_bad)
    return form_opinion(made, Key(0), settings)


@functools.cache
def of_two_policies():
    """What is thought of twenty and twenty; several tests look at it."""
    return asked(pile([20, 20]), range(3))


def test_two_policies_are_told_apart_and_both_looks_agree():
    opinion = of_two_policies()
    assert (opinion.kept == (np.asarray(pile([20, 20]).sources) == "0")).mean() >= 0.97
    assert np.array_equal(opinion.kept, opinion.belief > 0.5)
    assert opinion.repeated >= 0.97
    assert opinion.support > 4


def test_the_same_key_gives_the_same_opinion():
    first, again = of_two_policies(), asked(pile([20, 20]), range(3))
    assert np.array_equal(first.belief, again.belief)
    assert np.array_equal(first.doubt, again.doubt)
    assert first.support == again.support


def test_linear_algebra_is_loaded_before_threads_need_it(monkeypatch):
    """On a GPU torch loads it at the first call, and fails where two threads make that call."""
    callers, real = [], torch.linalg.inv

    def watched(matrix):
        callers.append(threading.current_thread())
        return real(matrix)

    monkeypatch.setattr(torch.linalg, "inv", watched)
    mixed = pile([6, 6])
    made = Pile.of(mixed, mixed[[0, 1, 2]], bench=Bench(workers=2, device="cpu"))
    form_opinion(made, Key(0), OpinionSettings(updates=5, features=16))
    assert callers[0] is threading.main_thread()
    assert any(caller is not threading.main_thread() for caller in callers)


def test_the_bench_remembers():
    mixed = pile([12, 12])
    made = Pile.of(mixed, mixed[[0, 1, 2]], bench=Bench(workers=1, device="cpu"))
    few = OpinionSettings(updates=5, features=16)
    first = form_opinion(made, Key(0), few)
    assert form_opinion(made, Key(0), few) is first


def test_too_small_a_pile_has_no_structure():
    assert asked(pile([3, 3]), [0]) is None


def test_known_bad_trajectories_are_never_kept():
    bad = np.zeros(40, bool)
    bad[3:6] = True
    assert not asked(pile([20, 20]), range(3), bad).kept[bad].any()


def test_seeds_from_outside_the_pile_serve_as_well():
    whole = pile([22, 20])
    mixed, outside = whole[2:], whole[[0, 1]]
    made = Pile.of(mixed, outside, bench=Bench(workers=1, device="cpu"))
    opinion = form_opinion(made, Key(0), QUICK)
    assert len(opinion.kept) == 40
    assert (opinion.kept == (np.asarray(mixed.sources) == "0")).mean() >= 0.95
    assert not len(opinion.lonely_seeds)


def test_a_seed_of_another_policy_is_named():
    opinion = asked(pile([24, 24]), [0, 1, 2, 3, 30], settings=OpinionSettings())
    assert opinion.lonely_seeds.tolist() == [30]
    assert opinion.kept[:24].mean() > 0.9
    assert not opinion.kept[24:].any()


def test_a_large_pile_is_looked_at_in_part_with_its_seeds():
    few = OpinionSettings(updates=50, features=16, trajectories=30, rounds=2)
    opinion = asked(pile([40, 40], steps=20), [0, 7], settings=few)
    assert len(opinion.looked) == 30
    assert {0, 7} <= set(opinion.looked.tolist())
    assert opinion.shortfall.max() < len(EVIDENCE)


def test_what_somebody_found_is_confirmed_or_not():
    mixed = pile([20, 20])
    truth = np.asarray(mixed.sources) == "0"
    made = Pile.of(mixed, mixed[[0]], bench=Bench(workers=1, device="cpu"))
    right = form_opinion(made, Key(0), QUICK, truth)
    assert not right.from_seeds
    assert (right.kept == truth).mean() >= 0.95
    half = form_opinion(made, Key(0), QUICK, np.arange(40) % 2 == 0)
    assert half.support < right.support


def test_two_policies_lie_apart_in_likeness_to_the_seeds_and_one_does_not():
    two, one = of_two_policies(), asked(pile([40]), range(3))
    assert two.apart > 2 > one.apart
    assert two.divided < one.divided
    assert 0 <= two.divided < 0.1


def test_few_are_believed_where_many_are_everybody(monkeypatch):
    """The split that takes the seeds for draws from the pile keeps all; another way mends it."""

    def lax(*words):
        split = split_pile(*words)
        everybody = torch.ones_like(split.belief)
        return replace(split, belief=everybody) if words[-1] == "many" else split

    monkeypatch.setattr(best_module, "split_pile", lax)
    mixed = pile([6, 40, 40])
    opinion = asked(mixed, range(3))
    assert (opinion.kept == (np.asarray(mixed.sources) == "0")).mean() >= 0.97
    assert opinion.ways_agree < 0.5


def test_ways_to_cut_agree_about_two_policies():
    assert of_two_policies().ways_agree >= 0.97


def test_one_seed_is_cut_in_one_way(monkeypatch):
    ways = []

    def counted(*words):
        ways.append(words[-1])
        return split_pile(*words)

    monkeypatch.setattr(best_module, "split_pile", counted)
    mixed = pile([20, 20])
    opinion = asked(mixed, [3])
    assert ways == ["many"]
    assert opinion.ways_agree == 0
    assert (opinion.kept == (np.asarray(mixed.sources) == "0")).mean() >= 0.95


def test_each_of_three_seeds_is_left_out_and_a_split_that_hangs_on_one_is_divided(monkeypatch):
    mixed, known = pile([12, 20]), []
    steady = asked(mixed, range(3))

    def hangs_on_one(*words):
        known.append(words[1].tolist())
        split = split_pile(*words)
        turned = 1 - split.belief
        return replace(split, belief=turned) if known[-1] == [0, 2] else split

    monkeypatch.setattr(best_module, "split_pile", hangs_on_one)
    opinion = asked(mixed, range(3))
    assert sorted(known) == [[0, 1], [0, 1, 2], [0, 1, 2], [0, 1, 2], [0, 2], [1, 2]]
    assert np.array_equal(opinion.kept, steady.kept)
    assert steady.divided < 0.1 < 0.2 < opinion.divided


def odd(observations=None, actions=None):
    """A pile of two policies with something odd about it."""
    mixed = pile([20, 20])
    columns = mixed.columns
    if observations is not None:
        columns = replace(columns, observations=observations(columns.observations))
    if actions is not None:
        columns = replace(columns, actions=actions(columns.actions))
    return replace(mixed, columns=columns)


@pytest.mark.parametrize(
    "changed",
    [
        {"observations": np.zeros_like},
        {"actions": np.ones_like},
        {"observations": np.zeros_like, "actions": np.ones_like},
        {"actions": lambda found: found * np.float32(1e20)},
        {"actions": lambda found: found * np.float32(1e-20)},
        {"observations": lambda found: np.where(np.arange(len(found))[:, None] == 5, 1e30, found)},
    ],
    ids=["still states", "one action", "nothing moves", "huge", "tiny", "a spike"],
)
def test_odd_piles_are_looked_at_like_others(changed):
    opinion = asked(odd(**changed), range(3))
    assert np.isfinite(opinion.belief).all()
    assert np.isfinite([opinion.support, opinion.apart, opinion.divided]).all()
