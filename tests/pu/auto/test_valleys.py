"""Families of scores with and without a valley, a thousand draws each in all.

Goal R3 of docs/dev/check-full.md.
"""

import numpy as np
import pytest

from pubc.pu.auto.valleys import find_valleys, gap_below, otsu, typical

DRAWS = 60


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ONE_HUMP = {
    "uniform": lambda rng, n: rng.uniform(size=n),
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "mirrored exponential": lambda rng, n: -rng.exponential(size=n),
    "heavy tails": lambda rng, n: rng.standard_t(2, size=n),
    "gamma": lambda rng, n: rng.gamma(2, 1, n),
    "piled up at one": lambda rng, n: rng.beta(8, 1, n),
    "saturated": lambda rng, n: sigmoid(rng.normal(6, 2, n)),
    "clipped": lambda rng, n: np.clip(rng.normal(0.8, 0.2, n), 0, 1),
    "triangle": lambda rng, n: rng.triangular(0, 0.5, 1, n),
    "rounded": lambda rng, n: np.round(rng.normal(size=n), 1),
    "equal": lambda rng, n: np.full(n, 0.7),
    "equal but for rounding": lambda rng, n: 0.7 + 1e-15 * rng.normal(size=n),
}


def humps(rng, n, share, distance, width=1.0):
    upper = round(share * n)
    return np.append(rng.normal(size=n - upper), rng.normal(distance, width, upper)), upper / n


TWO_HUMPS = {
    "halves": lambda rng, n: humps(rng, n, 0.5, 8),
    "a fifth": lambda rng, n: humps(rng, n, 0.2, 9),
    "a tenth, narrow": lambda rng, n: humps(rng, n, 0.1, 9, 0.3),
    "four fifths": lambda rng, n: humps(rng, n, 0.8, 9),
    "wide": lambda rng, n: humps(rng, n, 0.3, 14, 2.0),
    "probabilities": lambda rng, n: (
        sigmoid(np.append(rng.normal(-4, 1, n // 2), rng.normal(6, 1, n - n // 2))),
        (n - n // 2) / n,
    ),
    "boxes": lambda rng, n: (
        np.append(rng.uniform(0, 1, n // 2), rng.uniform(2, 3, n - n // 2)),
        (n - n // 2) / n,
    ),
}


@pytest.mark.parametrize("count", [30, 200])
@pytest.mark.parametrize("family", ONE_HUMP)
def test_one_hump_has_no_valley(family: str, count: int):
    rng = np.random.default_rng(0)
    false = sum(bool(find_valleys(ONE_HUMP[family](rng, count))) for _ in range(DRAWS))
    # Binomial: at a true rate of 0.5 % more than 3 of 60 are seen once in 6,000 tables.
    assert false <= 3


@pytest.mark.parametrize("count", [100, 400])
@pytest.mark.parametrize("family", TWO_HUMPS)
def test_two_humps_are_cut_between(family: str, count: int):
    rng = np.random.default_rng(1)
    right = 0
    for _ in range(DRAWS):
        scores, share = TWO_HUMPS[family](rng, count)
        found = find_valleys(scores)
        right += len(found) == 1 and abs(float(np.mean(scores >= found[0].cut)) - share) <= 0.02
    assert right >= 0.98 * DRAWS


@pytest.mark.slow
@pytest.mark.parametrize("family", ONE_HUMP)
def test_a_thousand_draws_of_one_hump_have_no_valley(family: str):
    rng = np.random.default_rng(10)
    false = sum(bool(find_valleys(ONE_HUMP[family](rng, 200))) for _ in range(1000))
    # Clipping piles a sixth of the scores up on one value, which is a hump of its own in part
    # of the draws: 17 of 1,000 where the others have at most 2.
    assert false <= (25 if family == "clipped" else 10)


@pytest.mark.slow
@pytest.mark.parametrize("family", TWO_HUMPS)
def test_a_thousand_draws_of_two_humps_are_cut_between(family: str):
    rng = np.random.default_rng(11)
    right = 0
    for _ in range(1000):
        scores, share = TWO_HUMPS[family](rng, 200)
        found = find_valleys(scores)
        right += bool(found) and abs(float(np.mean(scores >= found[-1].cut)) - share) <= 0.02
    assert right >= 990


@pytest.mark.parametrize("count", range(9))
def test_a_handful_is_no_histogram(count: int):
    assert find_valleys(np.arange(float(count))) == []


def test_order_shift_and_scale_do_not_matter():
    rng = np.random.default_rng(2)
    scores, _ = humps(rng, 120, 0.4, 8)
    (one,) = find_valleys(scores)
    (other,) = find_valleys(rng.permutation(100 * scores + 7))
    assert other.cut == pytest.approx(100 * one.cut + 7)
    assert other.evidence == pytest.approx(one.evidence)


def test_values_that_are_not_numbers_are_left_out():
    scores, _ = humps(np.random.default_rng(3), 100, 0.5, 8)
    assert find_valleys(np.append(scores, [np.nan, np.inf])) == find_valleys(scores)


def test_three_humps_have_two_valleys():
    rng = np.random.default_rng(4)
    scores = np.concatenate([rng.normal(m, 1, 80) for m in (0, 12, 24)])
    assert [round(v.cut) for v in find_valleys(scores)] == [6, 18]


def test_a_hundred_thousand_scores_are_quick():
    scores, share = humps(np.random.default_rng(5), 100_000, 0.3, 8)
    (found,) = find_valleys(scores)
    assert np.mean(scores >= found.cut) == pytest.approx(share, abs=0.001)


def test_otsu_cuts_between_two_groups():
    assert 2 < otsu(np.array([0.0, 1.0, 2.0, 9.0, 10.0])) < 9


def test_the_gap_lies_below_the_seeds():
    scores = np.array([0, 1, 2, 3, 4, 5, 9, 10, 20.0])
    assert gap_below(scores, np.array([10.0]), 0.8) == 7.0
    assert gap_below(scores, np.array([10.0]), 0.8, floor=9.0) == 9.5
    assert gap_below(scores, np.array([1.0]), 0.8) is None


def test_seeds_far_above_the_rest_are_not_typical():
    scores = np.random.default_rng(0).normal(size=100)
    assert typical(scores, -1.0, np.array([0.5]))
    assert not typical(scores, -1.0, np.array([50.0]))
    assert not typical(scores, 99.0, np.array([0.0]))
