"""What the second opinion says of piles whose truth is known."""

import numpy as np

from pubc.pu.second_opinion.evidence import EVIDENCE
from pubc.pu.second_opinion.opinion import OpinionSettings, second_opinion
from pubc.streams import Key
from tests.pu.piles import pile

QUICK = OpinionSettings(updates=150, features=48)


def asked(mixed, seeds, selected=None, **more):
    known = np.zeros(len(mixed), bool)
    known[list(seeds)] = True
    truth = np.asarray(mixed.sources) == "0"
    chosen = truth if selected is None else selected
    return second_opinion(mixed, known, chosen, Key(0), settings=QUICK, **more), truth


def test_two_policies_are_told_apart_and_both_looks_agree():
    opinion, truth = asked(pile([20, 20]), range(3))
    assert (opinion.kept == truth).mean() >= 0.97
    assert opinion.agreement >= 0.97
    assert opinion.repeated >= 0.97
    assert opinion.support > 4


def test_the_same_key_gives_the_same_opinion():
    first, _ = asked(pile([12, 12]), range(3))
    again, _ = asked(pile([12, 12]), range(3))
    assert np.array_equal(first.kept, again.kept)
    assert np.array_equal(first.doubt, again.doubt)
    assert first.support == again.support


def test_a_wrong_split_is_not_agreed_with():
    mixed = pile([20, 20])
    wrong = np.zeros(40, bool)
    wrong[:10] = wrong[20:30] = True
    opinion, _ = asked(mixed, range(3), wrong)
    assert opinion.agreement < 0.8
    assert opinion.rounds_support < opinion.support


def test_known_bad_trajectories_are_never_kept():
    bad = np.zeros(40, bool)
    bad[3:6] = True
    opinion, _ = asked(pile([20, 20]), range(3), known_bad=bad)
    assert not opinion.kept[bad].any()


def test_a_seed_of_another_policy_is_named():
    opinion, _ = asked(pile([24, 24]), [0, 1, 2, 3, 30])
    assert opinion.lonely_seeds.tolist() == [30]
    assert opinion.kept[:24].mean() > 0.9
    assert not opinion.kept[31:].any()


def test_a_large_pile_is_looked_at_in_part_with_its_seeds():
    mixed = pile([40, 40], steps=20)
    known = np.zeros(80, bool)
    known[[0, 7]] = True
    few = OpinionSettings(updates=50, features=16, trajectories=30, rounds=2)
    truth = np.asarray(mixed.sources) == "0"
    opinion = second_opinion(mixed, known, truth, Key(0), settings=few)
    assert len(opinion.looked) == 30
    assert {0, 7} <= set(opinion.looked.tolist())
    assert opinion.shortfall.max() < len(EVIDENCE)
