"""Several starts with prepared answers and no networks."""

from dataclasses import replace

import numpy as np

from pubc.pu.auto.attempts import decisive, filter_attempts
from pubc.pu.auto.starts import Split
from pubc.pu.guarded_rounds import Loop
from pubc.pu.judge import Cut, Verdict
from pubc.pu.rounds import Pile
from pubc.streams import Key
from tests.pu.piles import pile

RIGHT = np.array([True, True, True, False, False, False])
WRONG = np.array([True, False, False, True, True, False])


class Scripted:
    """Finds the prepared starts, and confirms whichever it is asked about."""

    def __init__(self, apart=(WRONG,), told=(RIGHT,)):
        self.starts = {False: apart, True: told}
        self.asked = []

    def open(self, task, *, told):
        self.asked.append(("open", told, task.number))
        scores = np.linspace(1, 0, 6)[None]
        splits = [Split("guess", 0.5, mask, ~mask) for mask in self.starts[told]]
        return Verdict(scores, scores[:, :1], told=told), splits

    def __call__(self, task):
        told = task.standing.verdict.told
        self.asked.append(("round", told, task.number))
        scores = np.where(task.standing.selected, 1.0, -1.0)[None]
        return Verdict(scores, np.ones((1, 1)), told=told)


def rounds_of(judge, *, trust, done=(), **loop):
    """All rounds, where `trust` says which verdicts are cut without doubt."""

    def threshold(verdict):
        return Cut(0.0, "", None if trust(verdict) else "no_valley", 0.3)

    mixed = pile([6], steps=4)
    made = Pile.of(mixed, mixed[[0]], done=done)
    how = {"doubtful_rounds": 2, "rank_loss": 0.1, **loop}
    return list(
        filter_attempts(made, judge=judge, threshold=threshold, key=Key(0), loop=Loop(**how))
    )


def test_nobody_is_told_where_an_attempt_converges():
    judge = Scripted(apart=(RIGHT,))
    rounds = rounds_of(judge, trust=lambda verdict: True)
    assert rounds[-1].status == "converged"
    assert not any(told for _, told, _ in judge.asked)


def test_networks_are_told_the_side_where_nothing_converges():
    judge = Scripted(apart=(WRONG, ~WRONG | RIGHT))
    rounds = rounds_of(judge, trust=lambda verdict: verdict.told)
    assert [number for _, _, number in judge.asked] == list(range(1, len(judge.asked) + 1))
    assert [r.number for r in rounds] == list(range(1, len(rounds) + 1))
    told = [r for r in rounds if r.verdict.told]
    assert [r.attempt for r in told] == [0] + [3] * (len(told) - 1)
    last = decisive(rounds, np.zeros(6, dtype=bool), Loop())
    assert last.status == "converged"
    assert np.array_equal(last.selected, RIGHT)


def test_among_attempts_that_all_failed_the_told_one_counts():
    rounds = rounds_of(Scripted(), trust=lambda verdict: False)
    last = decisive(rounds, np.zeros(6, dtype=bool), Loop())
    assert (last.status, last.verdict.told) == ("no_valley", True)
    weak = [
        replace(r, status="weak_valley") if r.status and not r.verdict.told else r for r in rounds
    ]
    assert not decisive(weak, np.zeros(6, dtype=bool), Loop()).verdict.told


def test_without_starts_there_is_nothing_to_tell():
    judge = Scripted(apart=())
    (only,) = rounds_of(judge, trust=lambda verdict: True)
    assert only.status == "no_valley"
    assert len(judge.asked) == 1
    judge = Scripted(told=())
    rounds = rounds_of(judge, trust=lambda verdict: False)
    assert not any(r.verdict.told for r in rounds)


def test_an_interrupted_run_goes_on_among_told_rounds():
    whole = rounds_of(Scripted(), trust=lambda verdict: False)
    first = next(k for k, r in enumerate(whole) if r.verdict.told and r.attempt)
    judge = Scripted()
    again = rounds_of(judge, trust=lambda verdict: False, done=whole[: first + 1])
    assert [r.status for r in again] == [r.status for r in whole]
    assert [word for word, _, _ in judge.asked].count("round") == len(whole) - first - 1


def test_told_rounds_may_rank_the_seeds_lower_than_their_start():
    class Sinking(Scripted):
        def __call__(self, task):
            verdict = super().__call__(task)
            high = self.asked[-2][0] == "open"  # right after the start
            return replace(verdict, seed_confidence=np.full((1, 1), 3.0 if high else 1.0))

    rounds = rounds_of(Sinking(), trust=lambda verdict: False, doubtful_rounds=4)
    ends = {r.verdict.told: r.status for r in rounds if r.status}
    assert ends == {False: "rejected", True: "no_valley"}
