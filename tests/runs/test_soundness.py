"""When a split is believed, and what is said where it is not."""

from dataclasses import replace

import numpy as np
import pytest

from pubc.pu.second_opinion.controls import Traits
from pubc.pu.second_opinion.looks.evidence import EVIDENCE
from pubc.pu.second_opinion.opinion import Opinion
from pubc.pu.second_opinion.splits.held_out import HeldOut
from pubc.runs import soundness
from pubc.runs.soundness import asks_again, confirms, weigh

COUNT = 40
SELECTED = np.arange(COUNT) < 20
OTHER = np.roll(SELECTED, 5)
NOBODY = np.zeros(COUNT, bool)
SEEDS = np.arange(COUNT) < 3
RNG = np.random.default_rng(0)
ALIKE = Traits(
    first=RNG.normal(size=(COUNT, 2)),
    states=RNG.normal(size=(COUNT, 2)),
    lengths=np.full((COUNT, 1), 50.0),
    jumps=np.zeros(COUNT),
)
AHEAD = HeldOut(np.arange(3), np.tile(np.where(SEEDS, 5.0, 0.0), (3, 1)))
AGREES = Opinion(
    looked=np.arange(COUNT),
    kept=SELECTED,
    belief=np.where(SELECTED, 0.9, 0.1),
    doubt=np.zeros(COUNT),
    repeated=1.0,
    support=3.5,
    seeds_found=1.0,
    held_out=HeldOut(np.arange(3), RNG.normal(size=(3, COUNT))),
    lonely_seeds=np.zeros(0, np.int64),
    shortfall=np.zeros(COUNT, np.int64),
    traits=ALIKE,
    seeds=3,
    from_seeds=True,
    apart=2.0,
    divided=0.05,
    ways_agree=1.0,
)


def weighed(opinion, status="converged", bad=NOBODY, borderline=NOBODY):
    return weigh(SELECTED, borderline, status, opinion, SEEDS, bad)


def test_agreement_leaves_a_converged_run_as_it_is():
    found = weighed(AGREES)
    assert found.status == "converged"
    assert np.array_equal(found.kept, SELECTED)
    assert not found.unsure.any()
    assert not found.doubts
    assert found.chance_wrong == 0.0
    assert set(found.reasons[:20]) == {""}
    assert found.reasons[20] == EVIDENCE["acting_worst"]


def test_states_and_length_do_not_decide_where_rounds_converged_the_start_does():
    apart = np.where(SELECTED, 5.0, -5.0)[:, None] + RNG.normal(size=(COUNT, 2))
    longer = np.where(SELECTED, 50.0, 20.0)[:, None] + RNG.uniform(size=(COUNT, 1))
    seen = weighed(replace(AGREES, traits=replace(ALIKE, states=apart, lengths=longer)))
    assert seen.controls.states > 0.95
    assert seen.controls.length > 0.95
    assert seen.status == "converged"
    started = weighed(replace(AGREES, traits=replace(ALIKE, first=apart)))
    assert started.status == "start_explains"
    assert started.chance_wrong is None
    assert "start in different places" in started.doubts[0]


def test_weak_evidence_makes_a_run_unsound_but_changes_no_label():
    found = weighed(replace(AGREES, kept=OTHER, support=2.0))
    assert found.status == "evidence_disagrees"
    assert not found.by_evidence
    assert np.array_equal(found.kept, SELECTED)
    assert found.agreement == 0.75


def test_stronger_evidence_outweighs_the_rounds_and_is_not_believed_yet():
    found = weighed(replace(AGREES, kept=OTHER))
    assert found.status == "evidence_disagrees"
    assert found.by_evidence
    assert np.array_equal(found.kept, OTHER)


CLEAR = replace(AGREES, kept=OTHER, support=4.5, apart=6.5)
"""Evidence that is believed whatever the rounds say."""


@pytest.mark.parametrize(
    "changes",
    [
        {"support": 3.5},
        {"repeated": 0.9},
        {"divided": 0.08},
        {"seeds": 5, "seeds_found": 0.6},
        {"seeds": 2, "apart": 5.5},
        {"taught": True, "apart": 5.5},
    ],
    ids=["near", "unsteady", "divided", "seeds lost", "near two seeds", "near, taught"],
)
def test_only_clear_and_steady_evidence_is_believed_alone(changes):
    found = weighed(CLEAR, "no_valley")
    assert found.status == "evidence_decides"
    assert found.chance_wrong == 0.0
    assert np.array_equal(found.kept, OTHER)
    # The same against rounds that settled, and from one seed.
    assert weighed(CLEAR).status == "evidence_decides"
    assert weighed(replace(CLEAR, seeds=1), "no_valley").status == "evidence_decides"
    doubted = weighed(replace(CLEAR, **changes), "no_valley")
    assert doubted.status == "no_valley"
    assert doubted.chance_wrong is None


def test_evidence_alone_is_not_believed_where_length_tells_two_outcomes_apart():
    longer = np.where(OTHER, 50.0, 20.0)[:, None] + RNG.uniform(size=(COUNT, 1))
    told = replace(CLEAR, traits=replace(ALIKE, lengths=longer))
    assert weighed(CLEAR, "no_valley").status == "evidence_decides"
    found = weighed(told, "no_valley")
    assert found.by_evidence
    assert found.status == "no_valley"
    assert found.chance_wrong is None
    assert any("differ in length" in said for said in found.doubts)


def test_evidence_is_believed_only_where_all_ways_to_cut_agree():
    odd = replace(CLEAR, ways_agree=0.8)
    found = weighed(odd, "no_valley")
    assert found.status == "no_valley"
    assert any("Other ways to cut" in doubt for doubt in found.doubts)
    # One seed leaves one way, and where marks taught, they said which.
    assert weighed(replace(odd, seeds=1), "no_valley").status == "evidence_decides"
    assert weighed(replace(odd, taught=True), "no_valley").status == "evidence_decides"
    # Rounds that converged need it too, with seeds enough to say.
    assert weighed(replace(AGREES, ways_agree=0.8)).status == "evidence_disagrees"
    assert weighed(replace(AGREES, ways_agree=0.8, seeds=2)).status == "converged"


def test_nothing_is_believed_where_two_actors_explain_what_is_kept():
    two = weighed(replace(CLEAR, another=3.0), "no_valley")
    assert two.status == "no_valley"
    assert any("two actors" in doubt for doubt in two.doubts)
    assert weighed(replace(CLEAR, another=2.9), "no_valley").status == "evidence_decides"
    agreed = weighed(replace(AGREES, another=3.0))
    assert agreed.status == "evidence_disagrees"
    assert any("two actors" in doubt for doubt in agreed.doubts)
    assert not any("cannot confirm" in doubt for doubt in agreed.doubts)


def test_rounds_whose_valley_is_weak_are_outweighed_by_strong_evidence_alone():
    weak = replace(AGREES, kept=OTHER, support=2.9)
    assert np.array_equal(weighed(weak, "weak_valley").kept, SELECTED)
    assert np.array_equal(weighed(replace(weak, support=3.5), "weak_valley").kept, OTHER)
    assert np.array_equal(weighed(weak, "no_valley").kept, OTHER)


def test_too_few_trajectories_are_clear_by_chance(monkeypatch):
    monkeypatch.setattr(soundness, "ALONE_IN", COUNT + 1)
    assert weighed(CLEAR, "no_valley").status == "no_valley"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"apart": 1.0}, "cannot confirm the split"),
        ({"divided": 0.08}, "divided: 0.08 from yes or no"),
    ],
)
def test_agreement_that_is_worth_nothing_confirms_nothing(changes, said):
    found = weighed(replace(AGREES, **changes))
    assert found.status == "evidence_disagrees"
    assert np.array_equal(found.kept, SELECTED)
    assert [said in doubt for doubt in found.doubts] == [True]


def test_evidence_that_decides_and_is_not_believed_says_that_it_is_divided():
    found = weighed(replace(CLEAR, divided=0.08), "no_valley")
    assert any("divided: 0.08 from yes or no" in doubt for doubt in found.doubts)
    assert not any("divided" in doubt for doubt in weighed(CLEAR, "no_valley").doubts)


def test_two_slips_in_a_small_pile_are_no_disagreement():
    slips = SELECTED.copy()
    slips[[4, 25]] = slips[[25, 4]]
    found = weighed(replace(AGREES, kept=slips), borderline=np.ones(COUNT, bool))
    assert found.status == "converged"
    assert found.unsure.tolist().count(True) == 2
    assert found.chance_wrong == pytest.approx(0.5 * 2 / COUNT)


def test_what_the_votes_are_divided_about_is_unsure():
    doubt = np.zeros(COUNT)
    doubt[7] = 0.5
    found = weighed(replace(AGREES, kept=OTHER, doubt=doubt), "no_valley")
    assert np.flatnonzero(found.unsure).tolist() == [7]
    assert not found.kept[7]


def test_kept_ones_that_are_all_less_like_the_seeds_are_too_many():
    found = weighed(replace(AGREES, held_out=AHEAD))
    assert found.status == "seed_incoherent"
    assert weighed(replace(AGREES, held_out=AHEAD, support=6.5)).status == "converged"
    assert "less like the seeds than they are to each other" in found.doubts[0]


def test_a_lonely_seed_is_named():
    found = weighed(replace(AGREES, lonely_seeds=np.array([7])))
    assert "position 7 looks like another policy" in found.doubts[0]
    assert found.lonely_seeds == (7,)
    # The expert may act in two ways, and only one of them was found.
    assert found.status == "seed_incoherent"
    assert weighed(replace(CLEAR, lonely_seeds=np.array([7]))).status == "seed_incoherent"


def test_a_seed_that_rounds_and_evidence_drop_is_named():
    seeds = SEEDS.copy()
    seeds[30] = True
    opinion = replace(AGREES, seeds=4, seeds_found=0.75)
    found = weigh(SELECTED, NOBODY, "converged", opinion, seeds, NOBODY)
    assert found.lonely_seeds == (30,)
    assert found.status == "seed_incoherent"


def test_one_seed_of_four_that_evidence_does_not_find_is_named_where_it_is_sure_of_the_others():
    seeds = SEEDS.copy()
    seeds[30] = True
    opinion = replace(AGREES, seeds=4, seeds_found=0.75)
    found = weigh(SELECTED, NOBODY, "no_valley", opinion, seeds, NOBODY)
    assert found.lonely_seeds == (30,)
    assert "position 30 looks like another policy" in found.doubts[-1]
    divided = replace(opinion, doubt=np.where(SEEDS, 0.25, 0.0))
    assert not weigh(SELECTED, NOBODY, "no_valley", divided, seeds, NOBODY).lonely_seeds
    seeds[31] = True
    assert not weigh(SELECTED, NOBODY, "no_valley", opinion, seeds, NOBODY).lonely_seeds
    seeds[:] = False
    seeds[[0, 1, 30]] = True
    assert not weigh(SELECTED, NOBODY, "no_valley", opinion, seeds, NOBODY).lonely_seeds


def test_what_is_known_to_be_bad_is_neither_kept_nor_unsure():
    bad = NOBODY.copy()
    bad[3] = True
    found = weighed(AGREES, bad=bad)
    assert not found.kept[3]
    assert not found.unsure[3]


def test_part_of_a_large_pile_confirms_but_never_overrules():
    part = replace(
        AGREES,
        looked=np.arange(30),
        kept=OTHER[:30],
        belief=np.where(OTHER, 0.9, 0.1)[:30],
        doubt=np.zeros(30),
        held_out=HeldOut(np.arange(3), AGREES.held_out.likeness[:, :30]),
        shortfall=np.zeros(30, np.int64),
        traits=Traits(ALIKE.first[:30], ALIKE.states[:30], ALIKE.lengths[:30], ALIKE.jumps[:30]),
        support=20.0,
    )
    found = weighed(part, "no_valley")
    assert np.array_equal(found.kept, SELECTED)
    assert found.status == "no_valley"


def test_from_few_seeds_the_rounds_are_heard_where_evidence_nearly_agrees():
    three = SELECTED.copy()
    three[20:23] = True
    nearly = replace(AGREES, kept=three, seeds=2)
    found = weighed(nearly)
    assert found.status == "converged"
    assert np.array_equal(found.kept, SELECTED)
    assert weighed(replace(nearly, seeds=3)).status != "converged"
    other = weighed(replace(nearly, kept=OTHER, support=1.0))
    assert other.by_evidence
    assert other.status == "evidence_disagrees"
    assert np.array_equal(other.kept, OTHER)


def test_evidence_that_begins_with_what_the_rounds_found_confirms_them_or_not():
    other = replace(AGREES, kept=OTHER, seeds=1)
    assert asks_again(other, SELECTED, "converged")
    assert not asks_again(other, SELECTED, "no_valley")
    assert not asks_again(replace(other, seeds=3), SELECTED, "converged")
    assert not asks_again(replace(AGREES, seeds=1), SELECTED, "converged")
    again = replace(AGREES, seeds=1, from_seeds=False, support=9.5, apart=0.0)
    assert confirms(again, SELECTED)
    assert weighed(again).status == "converged"
    assert not confirms(replace(again, support=8.5), SELECTED)
    assert confirms(replace(again, support=8.5, seeds=2), SELECTED)
    assert not confirms(replace(again, kept=OTHER), SELECTED)


def test_rounds_that_keep_more_than_the_seeds_stand_for_do_not_outweigh_evidence():
    weak = replace(AGREES, kept=np.arange(COUNT) < 6, support=2.0)
    assert np.array_equal(weighed(weak).kept, SELECTED)
    found = weighed(replace(weak, held_out=AHEAD))
    assert np.array_equal(found.kept, weak.kept)
    assert found.status == "evidence_disagrees"


def test_one_of_two_seeds_must_be_found():
    few = replace(AGREES, seeds=2)
    assert weighed(replace(few, seeds_found=0.5)).status == "converged"
    assert weighed(replace(few, seeds_found=0.0)).status == "seed_incoherent"


BAD = np.arange(COUNT) >= 35
TAUGHT = replace(AGREES, taught=True, divided=0.01)
"""Evidence that marks of both kinds have taught, about which the looks are of one mind."""


def after_marks(opinion, foretold, status="no_valley"):
    return weigh(SELECTED, NOBODY, status, opinion, SEEDS, BAD, foretold)


def test_marks_that_the_runs_had_foretold_confirm_a_split():
    found = after_marks(TAUGHT, [False] * 3 + [True] * 7 + [False])
    assert found.status == "marks_confirm"
    assert found.by_evidence
    assert found.chance_wrong == 0.0
    assert found.doubts == (
        "Of the last 8 trajectories that you marked after a run, it had 7 right.",
    )


@pytest.mark.parametrize(
    ("changes", "foretold"),
    [
        ({}, [True] * 7),
        ({}, [True] * 6 + [False] * 2),
        ({"taught": False}, [True] * 8),
        ({"repeated": 0.9}, [True] * 8),
        ({"divided": 0.02}, [True] * 8),
        ({"seeds": 2}, [True] * 8),
    ],
    ids=["too few", "two wrong", "nothing taught", "unsteady", "divided", "two good ones"],
)
def test_fewer_or_wrong_marks_confirm_nothing(changes, foretold):
    found = after_marks(replace(TAUGHT, **changes), foretold)
    assert found.status == "no_valley"
    assert found.chance_wrong is None
    assert f"it had {foretold[-8:].count(True)} right" in found.doubts[0]


def test_marks_that_were_not_foretold_speak_against_a_sound_run():
    assert after_marks(TAUGHT, [], "converged").status == "converged"
    found = after_marks(TAUGHT, [True] * 5 + [False] * 3, "converged")
    assert found.status == "marks_disagree"
    assert "it had 5 right. Mark more" in found.doubts[0]


def test_evidence_that_was_taught_decides_and_does_not_ask_again():
    found = after_marks(replace(TAUGHT, kept=OTHER, support=1.0), [], "converged")
    assert np.array_equal(found.kept, OTHER & ~BAD)
    assert not asks_again(replace(TAUGHT, kept=OTHER, seeds=1), SELECTED, "converged")
