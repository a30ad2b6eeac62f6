"""Evidence is smoothed by its neighbours, within trajectories only."""

import itertools

import numpy as np

from pubc.pu.steps.two_state_chain import smooth, window_means

CHAIN = {"stay_expert": 0.9, "stay_other": 0.8, "prior": 0.6}


def by_hand(evidence: np.ndarray) -> np.ndarray:
    """Every path of the two states, summed up."""
    chance = np.zeros(len(evidence))
    whole = 0.0
    for path in itertools.product([True, False], repeat=len(evidence)):
        likely = 0.6 if path[0] else 0.4
        for before, after in itertools.pairwise(path):
            stay = 0.9 if before else 0.8
            likely *= stay if before == after else 1 - stay
        likely *= np.exp(sum(e for e, own in zip(evidence, path, strict=True) if own))
        chance += likely * np.array(path)
        whole += likely
    return chance / whole


def test_it_is_the_sum_over_all_paths():
    evidence = np.array([0.3, -1.2, 2.0, 0.1, -0.4])
    assert np.allclose(smooth(evidence, np.array([5]), **CHAIN), by_hand(evidence))


def test_trajectories_of_different_lengths_do_not_touch_each_other():
    evidence = np.array([0.3, -1.2, 2.0, -3.0, 0.7])
    both = smooth(evidence, np.array([3, 2]), **CHAIN)
    assert np.allclose(both, [*by_hand(evidence[:3]), *by_hand(evidence[3:])])


def test_evidence_beyond_all_measure_stays_finite():
    assert np.allclose(smooth(np.array([1e9, -1e9]), np.array([2]), **CHAIN), [1, 0], atol=1e-3)


def test_windows_end_where_trajectories_do():
    values = np.array([1.0, 2.0, 3.0, 10.0])
    assert np.allclose(window_means(values, np.array([3, 1]), 3), [1.5, 2.0, 2.5, 10.0])
