import math

import numpy as np
import pytest

from pubc.errors import UsageError
from pubc.metrics import (
    REFERENCES,
    as_reference,
    confusion,
    interval,
    mean_and_spread,
    normalised_score,
    roc_auc,
)


def test_confusion_counts_all_four_cases():
    counted = confusion([1, 1, 0, 0, 1], [1, 0, 1, 0, 1])
    assert (counted.true_positives, counted.false_positives) == (2, 1)
    assert (counted.false_negatives, counted.true_negatives) == (1, 1)
    assert counted.accuracy == 3 / 5
    assert counted.precision == 2 / 3
    assert counted.recall == 2 / 3


def test_a_share_of_nothing_is_not_a_number():
    assert math.isnan(confusion([0, 0], [0, 1]).precision)
    assert math.isnan(confusion([0, 0], [0, 0]).recall)
    with pytest.raises(UsageError, match="cannot be compared"):
        confusion([1], [1, 0])


def test_auc_is_the_chance_to_rank_right():
    rng = np.random.default_rng(0)
    score, truth = rng.integers(0, 5, 60), rng.random(60) < 0.4
    pairs = [(p > n) + 0.5 * (p == n) for p in score[truth] for n in score[~truth]]
    assert roc_auc(score, truth) == pytest.approx(np.mean(pairs))
    assert math.isnan(roc_auc([1, 2], [1, 1]))


def test_spread_is_the_sample_deviation():
    found = mean_and_spread([1.0, 3.0])
    assert (found.mean, found.low, found.high, found.count) == (2.0, 1.0, 3.0, 2)
    assert found.deviation == pytest.approx(math.sqrt(2))
    assert mean_and_spread([4.0]).deviation == 0.0
    with pytest.raises(UsageError, match="No values"):
        mean_and_spread([])


def test_the_score_is_the_papers():
    low, high, _ = REFERENCES["halfcheetah"]
    assert normalised_score(low, (low, high)) == 0
    assert normalised_score(high, (low, high)) == 1
    assert normalised_score(375.0, REFERENCES["trifinger-push"][:2]) == 0.5
    with pytest.raises(UsageError, match="must rise"):
        normalised_score(1.0, (2.0, 2.0))


@pytest.mark.parametrize(
    "said",
    [None, "ab", [1], [0, None], [0, "1"], [False, True], [0, math.inf], [math.nan, 1], [2, 1],
     [0, 5e-324], [0, 10**400], [-1e308, 1e308], {0: 1, 1: 2}],
)  # fmt: skip
def test_a_reference_is_two_numbers_that_a_score_can_be_made_of(said):
    assert as_reference([0, 1500]) == (0.0, 1500.0)
    assert as_reference(said) is None


def test_the_interval_holds_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(100):
        low, high = interval(rng.normal(size=40))
        held += low <= 0 <= high
    assert 0.88 <= held / 100 <= 0.99
    assert interval([3.0]) == (3.0, 3.0)
