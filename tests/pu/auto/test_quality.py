"""The label-free estimate and the advice, from numbers alone."""

import numpy as np
import pytest

from pubc.pu.auto.quality import estimate
from pubc.pu.judge import Cut, Verdict
from pubc.pu.rounds import Round
from pubc.runs.advice import advise
from pubc.runs.statuses import STATUSES


def ended(confidence, cut, seeds, *, status="converged", held_out=True, votes=None) -> Round:
    rows = np.atleast_2d(np.asarray(confidence, dtype=float))
    selected = rows.mean(axis=0) >= cut
    verdict = Verdict(rows, np.atleast_2d(np.asarray(seeds, dtype=float)), held_out=held_out)
    count = (rows >= cut).sum(axis=0) if votes is None else votes
    return Round(3, verdict, Cut(cut, "A valley."), count, selected, 0.0, status)


def humps(overlap: float, count: int = 200):
    rng = np.random.default_rng(0)
    low, high = rng.normal(-3, overlap, count), rng.normal(3, overlap, count)
    return np.append(low, high), np.arange(2 * count) >= count


def test_a_wide_gap_leaves_nothing_unsure():
    scores, _ = humps(0.3)
    found = estimate(ended(scores, 0.0, scores[-2:]))
    assert not found.borderline.any()
    assert found.gap is not None
    assert found.gap > 0.5
    assert found.seeds_kept == 1.0
    assert found.held_out_seeds == 2


@pytest.mark.parametrize("overlap", [1.5, 2.0])
def test_what_lies_on_the_wrong_side_is_borderline(overlap: float):
    scores, truth = humps(overlap, 2000)
    found = estimate(ended(scores, 0.0, [3.0]))
    errors = np.flatnonzero((scores >= 0) != truth)
    assert np.mean(found.borderline[errors]) > 0.9


def test_probabilities_are_compared_as_logits():
    scores, _ = humps(0.5)
    logits = estimate(ended(scores, 0.0, [3.0]))
    chances = 1 / (1 + np.exp(-scores))
    same = estimate(ended(chances, 0.5, [1 / (1 + np.exp(-3.0))]))
    assert same.gap == pytest.approx(logits.gap)


def test_seeds_that_were_trained_on_are_not_held_out():
    assert estimate(ended(np.arange(10.0), 5.0, [7.5], held_out=False)).held_out_seeds == 0


def test_divided_votes_are_borderline():
    rows = np.array([[9.0, 9, -9, -9], [9.0, 8, -8, 1], [9.0, 9, -9, -8]])
    found = estimate(ended(rows, 0.0, [[9.0]] * 3))
    assert found.borderline[3]
    assert not found.borderline[0]


def test_no_cut_means_no_estimate():
    verdict = Verdict(np.ones((1, 3)), np.ones((1, 1)))
    cut = Cut(None, "One hump.", "no_valley")
    nobody = np.zeros(3, dtype=bool)
    last = Round(1, verdict, cut, np.zeros(3, int), nobody, 0.0, "no_valley")
    found = estimate(last)
    assert found.seeds_kept is None
    assert found.borderline.all()
    (first, second) = advise("no_valley", last, [last], found, 2)
    assert first.startswith("Status no_valley")
    assert "one policy only" in second


def test_a_good_run_needs_no_advice():
    scores, _ = humps(0.3)
    last = ended(scores, 0.0, scores[-2:])
    assert advise("converged", last, [last], estimate(last), 2) == ()


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("collapsed_seeds", "Only the seeds look like the seeds"),
        ("cycle(2)", "keeps changing"),
        ("max_rounds", "keeps changing"),
        ("seed_incoherent", "Check where the seeds come from"),
        ("weak_valley", "one policy only"),
    ],
)
def test_every_status_comes_with_what_to_try(status: str, said: str):
    scores, _ = humps(0.3)
    last = ended(scores, 0.0, scores[-2:], status=status)
    words = advise(status, last, [last], estimate(last), 2)
    assert words[0].startswith(f"Status {status}")
    assert any(said in sentence for sentence in words)


def test_a_seed_that_was_named_needs_no_other_word():
    scores, _ = humps(0.3)
    last = ended(scores, 0.0, scores[-2:], status="seed_incoherent")
    words = advise("seed_incoherent", last, [last], estimate(last), 2, named=1)
    assert not any("Check where the seeds come from" in sentence for sentence in words)


@pytest.mark.parametrize("status", [*STATUSES, "cycle(2)"])
def test_w1_advice_of_auto_names_no_setting_of_another_recipe(status: str):
    scores, _ = humps(0.3)
    last = ended(scores, 0.0, [-3.0, -2.9, 3.0], status=status)
    words = " ".join(advise(status, last, [last], estimate(last), 3)).lower()
    for word in ("classifier", "polynomial", "histogram", "--set"):
        assert word not in words


def test_a_cut_that_rejects_seeds_is_called_out():
    scores, _ = humps(0.3)
    last = ended(scores, 0.0, [-3.0, -2.9, 3.0])
    words = advise("no_valley", last, [last], estimate(last), 3)
    assert "rejects 67% of the seeds" in " ".join(words)
