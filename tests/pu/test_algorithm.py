"""Algorithm 1 with five numbers and no networks."""

from itertools import pairwise

import numpy as np
import pytest

from pubc.pu.algorithm import filter_rounds, majority
from pubc.pu.auto.opening import decisive
from pubc.pu.guarded_rounds import Loop, PatientLoop, guarded_rounds
from pubc.pu.judge import Cut, Verdict, mean_confidence
from pubc.pu.paper.threshold import fixed
from pubc.pu.rounds import Pile
from pubc.streams import Key
from tests.pu.piles import pile

HALF = fixed(0.5)


def answers(*rounds):
    """A judge that gives prepared answers, one matrix per round."""
    given = iter(rounds)

    def judge(task):
        matrix = np.asarray(next(given), dtype=float)
        return Verdict(matrix, np.ones((len(matrix), len(task.seed_positives))))

    return judge


def play(mixed, judge, *, seeds=(0,), threshold=HALF, kind=Loop, **loop):
    return list(
        guarded_rounds(
            Pile.of(mixed, mixed[list(seeds)]),
            judge=judge,
            threshold=threshold,
            key=Key(0),
            loop=kind(**loop),
        )
    )


def test_a_tie_is_not_a_majority():
    votes, selected = majority(np.array([[0.9, 0.9], [0.9, 0.1]]), 0.5)
    assert votes.tolist() == [2, 1]
    assert selected.tolist() == [True, False]


def test_a_confidence_at_the_threshold_is_a_vote():
    assert majority(np.array([[0.5]]), 0.5)[1].tolist() == [True]


def test_who_abstains_does_not_count():
    confidence = np.array([[0.9, np.nan, np.nan], [0.1, 0.9, np.nan], [0.9, np.nan, np.nan]])
    votes, selected = majority(confidence, 0.5)
    assert votes.tolist() == [2, 1, 0]
    assert selected.tolist() == [True, True, False]
    assert mean_confidence(confidence)[:2].tolist() == [pytest.approx(1.9 / 3), 0.9]
    assert np.isnan(mean_confidence(confidence)[2])


def test_rounds_train_on_what_the_round_before_selected():
    seen = []

    def grows_by_one(task):
        seen.append(len(task.positives))
        row = np.zeros((1, len(task.mixed)))
        row[0, : len(task.positives) + 1] = 1.0
        return Verdict(row, np.ones((1, 1)))

    rounds = play(pile([6], steps=4), grows_by_one, max_rounds=4)
    assert seen == [1, 2, 3, 4]
    assert [int(r.selected.sum()) for r in rounds] == [2, 3, 4, 5]
    assert all(a.number + 1 == b.number for a, b in pairwise(rounds))
    assert rounds[-1].status == "max_rounds"


def test_two_rounds_that_agree_have_converged():
    rounds = play(pile([4], steps=4), answers(*[[[1, 1, 0, 0]]] * 5))
    assert [r.status for r in rounds] == [None, "converged"]
    assert rounds[-1].changed == 0.0


def test_the_two_percent_are_of_all_trajectories():
    mixed = pile([100], steps=2)
    first, second, third = np.zeros((3, 1, 100))
    first[0, :10] = second[0, :13] = third[0, :15] = 1.0
    rounds = play(mixed, answers(first, second, third))
    assert [r.changed for r in rounds] == [0.09, 0.03, 0.02]
    assert rounds[-1].status == "converged"


def test_selecting_the_seeds_again_is_a_collapse_not_convergence():
    rounds = play(pile([5], steps=4), answers(*[[[1, 0, 1, 0, 0]]] * 3), seeds=(0, 2))
    assert rounds[-1].status == "collapsed_seeds"


def test_an_empty_selection_keeps_the_one_before():
    rounds = play(pile([4], steps=4), answers([[1, 1, 1, 0]], [[0, 0, 0, 0]]))
    assert rounds[-1].status == "collapsed_empty"
    assert rounds[-1].selected.tolist() == [True, True, True, False]


def test_an_empty_first_round_leaves_the_seeds():
    (only,) = play(pile([4], steps=4), answers([[0, 0, 0, 0]]), seeds=(2,))
    assert only.status == "collapsed_empty"
    assert only.selected.tolist() == [False, False, True, False]


def test_selecting_everything_is_not_an_answer():
    (only,) = play(pile([4], steps=4), answers([[1, 1, 1, 1]]), seeds=(1,))
    assert only.status == "collapsed_all"
    assert only.selected.tolist() == [False, True, False, False]


@pytest.mark.parametrize("period", [2, 3])
def test_a_cycle_is_named_with_its_period(period: int):
    shapes = np.eye(10)[:, None, :]
    rounds = play(
        pile([10], steps=4), answers(*[shapes[1 + i % period] for i in range(9)]), max_rounds=9
    )
    assert rounds[-1].status == f"cycle({period})"
    assert rounds[-1].number == period + 1


def test_no_threshold_ends_the_loop_with_the_seeds():
    def none(verdict):
        return Cut(None, "one hump", "no_valley")

    (only,) = play(pile([4], steps=4), answers([[1, 0, 1, 0]]), threshold=none)
    assert only.status == "no_valley"
    assert only.selected.tolist() == [True, False, False, False]


def test_a_working_cut_carries_rounds_but_never_ends_them_well():
    def doubtful(verdict):
        return Cut(0.5, "a guess", "no_valley")

    rounds = play(
        pile([4], steps=4), answers(*[[[1, 0, 1, 0]]] * 5), threshold=doubtful, kind=PatientLoop
    )
    assert len(rounds) == PatientLoop.doubtful_rounds == 4
    assert rounds[-1].status == "no_valley"
    assert rounds[-1].selected.tolist() == [True, False, True, False]


def test_the_round_that_rounds_end_with_decides():
    rounds = play(pile([4], steps=4), answers([[1, 1, 0, 0]], [[1, 1, 0, 0]]))
    assert [done.status for done in rounds] == [None, "converged"]
    assert decisive(rounds).number == 2


def test_finished_rounds_are_taken_as_they_are():
    mixed = pile([4], steps=4)
    matrices = [[[1, 1, 0, 0]], [[1, 1, 1, 0]], [[1, 1, 1, 0]]]
    whole = play(mixed, answers(*matrices))
    rest = list(
        guarded_rounds(
            Pile.of(mixed, mixed[[0]], done=whole[:2]),
            judge=answers(*matrices[2:]),
            threshold=HALF,
            key=Key(0),
        )
    )
    assert [r.status for r in rest] == [r.status for r in whole]
    assert np.array_equal(rest[-1].selected, whole[-1].selected)


def test_the_judge_gets_its_own_randomness_every_round():
    keys = []

    def remembers(task):
        keys.append(task.key)
        return Verdict(np.array([[1.0, float(task.number % 2), 0.0]]), np.ones((1, 1)))

    play(pile([3], steps=4), remembers, max_rounds=3)
    drawn = {key.rng().random() for key in keys}
    assert len(drawn) == len(keys)


def test_algorithm_1_alone_stops_where_two_rounds_agree():
    mixed = pile([100], steps=2)
    grown = np.zeros((4, 1, 100))
    for number, many in enumerate((10, 13, 15, 15)):
        grown[number, 0, :many] = 1.0
    start = Pile.of(mixed, mixed[[0]])
    rounds = list(filter_rounds(start, judge=answers(*grown), threshold=HALF, key=Key(0)))
    assert [r.changed for r in rounds] == [0.09, 0.03, 0.02]
    assert [r.status for r in rounds] == [None, None, None]
    exact = filter_rounds(start, judge=answers(*grown), threshold=HALF, key=Key(0), tolerance=0)
    assert [r.kept for r in exact] == [10, 13, 15, 15]


def test_without_a_threshold_nobody_has_a_majority():
    votes, selected = majority(np.array([[0.9, np.nan], [0.9, 0.1]]), None)
    assert votes.tolist() == [0, 0]
    assert not selected.any()
