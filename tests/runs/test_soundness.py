"""When a split is believed, and what is said where it is not."""

from dataclasses import replace

import numpy as np

from pubc.pu.second_opinion.controls import Controls
from pubc.pu.second_opinion.evidence import EVIDENCE
from pubc.pu.second_opinion.opinion import Opinion
from pubc.runs.soundness import weigh

COUNT = 40
SELECTED = np.arange(COUNT) < 20
NOBODY = np.zeros(COUNT, bool)
AGREES = Opinion(
    looked=np.arange(COUNT),
    kept=SELECTED,
    doubt=np.zeros(COUNT),
    agreement=1.0,
    repeated=1.0,
    support=9.0,
    rounds_support=9.0,
    seeds_found=1.0,
    lonely_seeds=np.zeros(0, np.int64),
    shortfall=np.zeros(COUNT, np.int64),
    controls=Controls(0.5, 0.5, 1.0),
    independent=True,
)


def weighed(opinion, status="converged", bad=NOBODY):
    return weigh(SELECTED, NOBODY, status, opinion, bad)


def test_agreement_leaves_a_converged_run_as_it_is():
    found = weighed(AGREES)
    assert found.status == "converged"
    assert np.array_equal(found.kept, SELECTED)
    assert not found.unsure.any()
    assert not found.doubts
    assert set(found.reasons[:20]) == {""}
    assert found.reasons[20] == EVIDENCE["imitation"]


def test_states_and_length_decide_nothing_the_start_does():
    seen = weighed(replace(AGREES, controls=Controls(0.5, 1.0, 1.0)))
    assert seen.status == "converged"
    started = weighed(replace(AGREES, controls=Controls(0.9, 0.5, 0.5)))
    assert started.status == "start_explains"
    assert "start in different places" in started.doubts[0]


def test_a_weak_second_opinion_makes_a_run_unsound_but_changes_no_label():
    other = np.roll(SELECTED, 5)
    found = weighed(replace(AGREES, kept=other, agreement=0.75, support=2.0))
    assert found.status == "evidence_disagrees"
    assert np.array_equal(found.kept, SELECTED)


def test_a_strong_second_opinion_outweighs_the_rounds():
    other = np.roll(SELECTED, 5)
    found = weighed(replace(AGREES, kept=other, agreement=0.75, support=6.0))
    assert found.status == "evidence_disagrees"
    assert np.array_equal(found.kept, other)


def test_a_run_that_did_not_converge_keeps_its_status():
    other = np.roll(SELECTED, 5)
    found = weighed(replace(AGREES, kept=other, agreement=0.75, support=2.0), "no_valley")
    assert found.status == "no_valley"
    assert found.unsure.sum() == 10
    assert not (found.kept & found.unsure).any()


def test_a_lonely_seed_is_named():
    found = weighed(replace(AGREES, lonely_seeds=np.array([7])))
    assert found.status == "seed_incoherent"
    assert "position 7 looks like another policy" in found.doubts[0]


def test_what_is_known_to_be_bad_is_neither_kept_nor_unsure():
    bad = NOBODY.copy()
    bad[3] = True
    found = weighed(AGREES, bad=bad)
    assert not found.kept[3]
    assert not found.unsure[3]


def test_an_opinion_that_began_with_the_rounds_must_be_stronger():
    assert weighed(replace(AGREES, independent=False, support=7.0)).status == "converged"
    found = weighed(replace(AGREES, independent=False, support=5.0))
    assert found.status == "evidence_disagrees"
    assert "at least three seeds" in found.doubts[0]
