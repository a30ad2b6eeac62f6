"""The steps of the expert are found, also where no trajectory is clean."""

from dataclasses import replace

import numpy as np
import pytest

from pubc.metrics import roc_auc
from pubc.pu.steps.step_model import calibrated, learn_steps
from pubc.pu.steps.step_sample import Known
from pubc.pu.steps.step_settings import StepSettings
from pubc.streams import Key
from pubc.trajectory import TrajectorySet
from tests.pu.steps.lapsing import lapsing

SMALL = StepSettings(waves=24, width=24, updates=60, lone_updates=60)


def some(count: int, *positions: int) -> np.ndarray:
    mask = np.zeros(count, dtype=bool)
    mask[list(positions)] = True
    return mask


def judged(pile: TrajectorySet, known: Known, settings: StepSettings = SMALL) -> np.ndarray:
    model = learn_steps(pile, known, Key(0), settings)
    return np.concatenate([part.confidence for part in model.judge(pile)])


def test_faults_of_dropped_trajectories_are_found_from_clean_seeds():
    pile, own = lapsing(24, clean=6)
    seeds = some(24, 0, 1, 2, 3, 4)
    found = judged(pile, Known(seeds, seeds | some(24, 5), some(24)))
    faulty = np.repeat(np.arange(24) >= 6, pile.lengths)
    assert roc_auc(found[faulty], own[faulty]) > 0.97
    assert ((found >= 0.5) == own).mean() > 0.93


def test_the_good_parts_are_found_where_no_trajectory_is_clean():
    pile, own = lapsing(30)
    found = judged(pile, Known(some(30, 0, 1, 2, 3), np.ones(30, dtype=bool), some(30)))
    assert roc_auc(found, own) > 0.95


def test_seeds_from_elsewhere_do_as_well():
    pile, own = lapsing(20)
    seeds, _ = lapsing(4, clean=4, random_seed=5)
    found = judged(pile, Known(some(20), some(20), some(20), elsewhere=seeds))
    assert roc_auc(found, own) > 0.95


def test_where_seeds_are_alone_what_nobody_knows_is_no_proof_against_a_step():
    """The same steps, with a fifth of the pile kept or nothing of it."""
    pile, _ = lapsing(20)
    seeds, _ = lapsing(4, clean=4, random_seed=5)
    alone = learn_steps(pile, Known(some(20), some(20), some(20), elsewhere=seeds), Key(0), SMALL)
    kept = some(20, *range(10))
    helped = learn_steps(pile, Known(some(20), kept, some(20), elsewhere=seeds), Key(0), SMALL)
    assert alone.ventured
    assert not helped.ventured
    assert len(alone.looks) == SMALL.lone_looks
    assert len(helped.looks) == 2 * SMALL.looks  # bold and careful ones, over the same features
    assert len({look.features for look in helped.looks}) == SMALL.looks
    numbers = np.array([[-3.0, -2.0], [3.0, 2.0]])
    for known, lower in ((1.0, True), (0.04, False)):
        against, speaking_for = calibrated(numbers, np.full(2, np.sqrt(known)), SMALL.lone())
        assert (against < 0.4) == lower
        assert against < 0.5 < speaking_for


def test_learning_from_new_situations_ranks_what_is_not_kept_and_keeps_nothing_more():
    pile, own = lapsing(20)
    seeds, _ = lapsing(4, clean=4, random_seed=5)
    known = Known(some(20), some(20), some(20), elsewhere=seeds)
    careful = judged(pile, known, replace(SMALL, ventures=0))
    found = judged(pile, known)
    assert np.array_equal(found >= 0.5, careful >= 0.5)
    assert np.array_equal(found[found >= 0.5], careful[careful >= 0.5])
    below = found < 0.5
    assert not np.array_equal(found[below], careful[below])
    assert roc_auc(found, own) >= roc_auc(careful, own) - 0.005


def test_steps_can_be_the_seeds():
    pile, own = lapsing(20)
    marked = own & np.repeat(np.arange(20) < 6, pile.lengths)
    found = judged(pile, Known(some(20), some(20), some(20), seed_steps=marked))
    assert roc_auc(found[480:], own[480:]) > 0.95


def test_the_same_key_gives_the_same_confidences_and_another_key_others():
    pile, _ = lapsing(12, clean=4)
    known = Known(some(12, 0, 1), some(12, 0, 1, 2, 3), some(12))
    assert np.array_equal(judged(pile, known), judged(pile, known))
    other = learn_steps(pile, known, Key(1), SMALL)
    parts = [part.confidence for part in other.judge(pile)]
    assert not np.array_equal(np.concatenate(parts), judged(pile, known))


def test_a_pile_is_learned_from_in_part_and_judged_as_a_whole():
    pile, own = lapsing(40, clean=10)
    seeds = some(40, 0, 1, 2, 3, 4)
    small = StepSettings(
        waves=24, width=24, updates=60, lone_updates=60, rows=1200, trajectories=16
    )
    found = judged(pile, Known(seeds, seeds, some(40)), small)
    assert found.shape == (pile.steps,)
    assert found.dtype == np.float32
    assert ((found >= 0) & (found <= 1)).all()
    assert roc_auc(found, own) > 0.9


def test_judging_goes_on_across_the_blocks_of_a_long_trajectory(monkeypatch: pytest.MonkeyPatch):
    pile, _ = lapsing(6, clean=3)
    known = Known(some(6, 0, 1), some(6, 0, 1), some(6))
    model = learn_steps(pile, known, Key(0), SMALL)
    monkeypatch.setattr("pubc.pu.steps.step_model._CHUNK", 50)
    parts = list(model.judge(pile))
    assert [(part.trajectory, part.first) for part in parts[:4]] == [
        (0, 0),
        (0, 50),
        (1, 0),
        (1, 50),
    ]
    assert sum(len(part.confidence) for part in parts) == pile.steps


def test_what_is_known_to_be_bad_teaches_the_expert_nothing():
    # Every trajectory but the first two is the other policy's for 25 steps; called bad, their
    # steps never count as the expert's, yet they are judged like all others.
    pile, own = lapsing(10, clean=2)
    bad = np.arange(10) >= 6
    found = judged(pile, Known(some(10, 0, 1), some(10, 0, 1), bad))
    assert roc_auc(found, own) > 0.8
