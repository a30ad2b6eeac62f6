"""The opening by evidence, and the rounds that go on from it."""

from dataclasses import replace

import numpy as np

from pubc.pu.auto.opening import decisive
from pubc.pu.auto.residual import Residual
from pubc.pu.judge import Bench
from pubc.pu.recipes import Auto
from pubc.pu.rounds import Pile
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings
from pubc.streams import Key
from tests.pu.piles import pile

SMALL = Auto(
    residual=Residual(steps_per_trajectory=32, updates=60),
    opinion=OpinionSettings(updates=100, features=32),
)


def rounds_of(made):
    return list(SMALL.rounds(made, Key(0)))


def bench():
    return Bench(workers=1, device="cpu")


def test_rounds_start_from_the_split_by_evidence_and_confirm_it():
    mixed = pile([12, 12], steps=50)
    rounds = rounds_of(Pile.of(mixed, mixed[[0, 1, 2]], bench=bench()))
    truth = np.asarray(mixed.sources) == "0"
    assert [done.number for done in rounds] == list(range(1, len(rounds) + 1))
    assert rounds[0].attempt == 0
    assert "evidence" in rounds[0].cut.reason
    assert (rounds[0].selected == truth).mean() > 0.9
    last = decisive(rounds)
    assert last is rounds[-1]
    assert last.status == "converged"
    assert np.array_equal(last.selected, truth)


def test_finished_rounds_are_not_trained_again():
    mixed = pile([12, 12], steps=50)
    made = Pile.of(mixed, mixed[[0, 1, 2]], bench=bench())
    whole = rounds_of(made)
    again = rounds_of(replace(made, bench=bench(), done=whole))
    assert all(a.verdict is b.verdict for a, b in zip(whole[1:], again[1:], strict=True))
    assert np.array_equal(whole[0].selected, again[0].selected)


def test_a_pile_too_small_for_evidence_starts_from_the_seeds_ranking():
    mixed = pile([3, 3], steps=50)
    rounds = rounds_of(Pile.of(mixed, mixed[[0]], bench=bench()))
    assert "seeds' ranking" in rounds[0].cut.reason
    assert rounds[-1].status is not None


def test_what_cannot_be_split_says_so():
    mixed = pile([2], steps=50)
    (only,) = rounds_of(Pile.of(mixed, mixed[[0]], bench=bench()))
    assert only.status == "no_valley"
    assert only.selected.tolist() == [True, False]
