"""Cuts as pure functions of numbers."""

import numpy as np
import pytest

from pubc.pu.judge import Verdict
from pubc.pu.paper.threshold import find_valley, fixed


def humps(low: float, high: float, count: int = 300) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.append(rng.normal(low, 0.05, count), rng.normal(high, 0.05, count))


def test_the_paper_takes_the_rightmost_dip_that_is_not_at_the_end_of_the_range():
    values = humps(0.2, 0.9)
    cut = find_valley(values)
    assert cut.threshold is not None
    inner = cut.curve[1:-1]
    dips = cut.centres[1:-1][(cut.curve[:-2] > inner) & (inner <= cut.curve[2:])]
    end = values.min() + 0.96 * np.ptp(values)
    assert dips.max() > end
    assert cut.threshold == dips[dips < end].max()
    assert cut.counts.sum() == values.size


def test_a_few_trajectories_beyond_the_expert_make_no_valley_of_their_own():
    rng = np.random.default_rng(0)
    rest, expert = rng.normal(0.03, 0.005, 100), rng.normal(0.15, 0.02, 100)
    values = np.concatenate([rest, expert, [0.4, 0.41, 0.42]])
    assert (values > find_valley(values, least=0.0).threshold).sum() == 3
    assert (values > find_valley(values).threshold).sum() == 103
    assert find_valley(values, least=0.99).status == "no_valley"


def test_a_stiff_polynomial_finds_the_valley_between_two_humps():
    assert 0.35 < find_valley(humps(0.2, 0.8), degree=4).threshold < 0.65


@pytest.mark.parametrize("value", [0.0, 0.7, 1.0, -3.0, 1e-300])
@pytest.mark.parametrize("count", [1, 2, 50, 500])
def test_equal_confidences_have_no_valley(value: float, count: int):
    cut = find_valley(np.full(count, value))
    assert cut.threshold is None
    assert cut.status == "no_valley"
    assert "equal" in cut.reason


@pytest.mark.parametrize("count", [2, 3, 10, 60])
def test_fewer_trajectories_than_bins_do_not_crash(count: int):
    cut = find_valley(np.linspace(0.1, 0.9, count))
    assert cut.threshold is None or 0.1 < cut.threshold < 0.9


def test_a_line_has_no_dip():
    cut = find_valley(np.sort(np.random.default_rng(0).random(2000)) ** 0.5, degree=1)
    assert cut.threshold is None
    assert "single hump" in cut.reason


def test_fixed_is_fixed():
    assert fixed(0.5)(Verdict(np.zeros((1, 3)), np.zeros((1, 1)))).threshold == 0.5
