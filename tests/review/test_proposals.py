"""What to look at next: never what is known already, and always for a reason that holds."""

import numpy as np
import pytest

from pubc.cli.filtering.demo_command import mixture
from pubc.review.features import describe
from pubc.review.proposals import Evidence, propose

NOBODY = np.zeros(0, dtype=np.int64)


@pytest.fixture(scope="module")
def features():
    return describe(mixture())


@pytest.fixture
def evidence():
    confidence = np.linspace(-1, 1, 60)
    return Evidence(confidence, confidence > 0, np.abs(confidence) < 0.06, 0.0, True)


def test_from_zero_marks_every_group_has_its_say(features):
    found = propose(features, NOBODY, NOBODY)
    assert len(found) == len({p.at for p in found}) == 8
    assert {p.reason for p in found} == {"group"}
    assert set(mixture().sources[[p.at for p in found]]) == {"expert", "other_expert", "weak"}


def test_known_ones_are_not_proposed_again(features, evidence):
    good, bad = np.arange(0, 20), np.arange(20, 40)
    for told in (None, evidence):
        for count in (8, 60):
            found = propose(features, good, bad, told, count)
            assert {p.at for p in found} <= set(range(40, 60))
    assert propose(features, np.arange(60), NOBODY, evidence) == []


def test_a_group_with_good_ones_is_asked_for_more(features):
    sources = mixture().sources
    good = np.flatnonzero(sources == "expert")[:2]
    bad = np.flatnonzero(sources != "expert")[:12]
    found = propose(features, good, bad)
    assert (sources[[p.at for p in found]] == "expert").sum() >= 4
    assert "like_good" in {p.reason for p in found}


def test_after_a_sound_run_the_doubtful_come_first(features, evidence):
    found = propose(features, np.array([59, 58, 57]), np.array([0]), evidence)
    doubtful = [p.at for p in found if p.reason == "doubtful"]
    assert set(doubtful[:2]) == {29, 30}
    assert found[0].reason == "doubtful"
    assert "dropped" in next(p.words for p in found if p.at == 29)


def test_a_start_that_no_good_one_covers_is_named(features, evidence):
    start = np.zeros((60, 2))
    start[:, 0] = np.random.default_rng(0).normal(size=60)
    start[50] = [0, 40]
    there = type(features)(features.style, start)
    found = propose(there, np.array([59, 58, 57]), NOBODY, evidence)
    assert 50 in [p.at for p in found if p.reason == "uncovered"]


def test_two_kinds_of_evidence_that_disagree_are_named(features):
    sources = mixture().sources
    expert = np.flatnonzero(sources == "expert")
    confidence = np.where(sources == "expert", 1.0, -1.0) + np.linspace(0, 0.1, 60)
    confidence[expert[5]] = -2.0
    evidence = Evidence(confidence, confidence > 0, np.zeros(60, bool), 0.0, True)
    bad = np.flatnonzero(sources != "expert")[:6]
    found = propose(features, expert[:3], bad, evidence)
    named = {p.at: p.words for p in found if p.reason == "disagreed"}
    assert named[int(expert[5])] == "dropped, but it moves like the good ones"


def test_a_sentence_about_disagreement_fits_the_verdict(features):
    """Whatever the confidences are: ranks far apart do not say what was kept."""
    sources = mixture().sources
    expert, bad = np.flatnonzero(sources == "expert"), np.flatnonzero(sources != "expert")[:6]
    confidence = np.random.default_rng(0).normal(size=60)
    for cut in (-1.0, 1.0):
        evidence = Evidence(confidence, confidence > cut, np.zeros(60, bool), cut, True)
        found = propose(features, expert[:3], bad, evidence, 60)
        said = [(evidence.keep[p.at], p.words) for p in found if p.reason == "disagreed"]
        assert {kept for kept, _ in said} == {True, False}
        for kept, words in said:
            assert words.startswith("kept, but" if kept else "dropped, but")
            assert f"it moves {'like' if kept else 'unlike'} the good ones" not in words


def test_while_a_run_is_not_sound_some_are_drawn_by_chance(features, evidence):
    from dataclasses import replace

    unsound = replace(evidence, sound=False)
    found = propose(features, np.array([59, 58, 57]), NOBODY, unsound)
    assert [p.reason for p in found[:4]] == ["doubtful", "drawn", "doubtful", "drawn"]
    assert evidence.keep[found[1].at]
    assert propose(features, np.array([59, 58, 57]), NOBODY, unsound) == found


def test_nothing_is_proposed_of_nothing():
    empty = describe(mixture()[np.zeros(0, dtype=np.int64)])
    assert propose(empty, NOBODY, NOBODY) == []
