"""Cuts as pure functions of numbers."""

from dataclasses import replace

import numpy as np
import pytest

from pubc.pu.judge import Verdict
from pubc.pu.paper.threshold import find_valley, fixed
from pubc.pu.recipes import get_recipe


def humps(low: float, high: float, count: int = 300) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.append(rng.normal(low, 0.05, count), rng.normal(high, 0.05, count))


def dips_of(cut) -> np.ndarray:
    inner = cut.curve[1:-1]
    return cut.centres[1:-1][(cut.curve[:-2] > inner) & (inner <= cut.curve[2:])]


def test_the_paper_takes_the_rightmost_dip_wherever_it_lies():
    values = humps(0.2, 0.9)
    cut = find_valley(values)
    assert cut.threshold == dips_of(cut).max()
    assert cut.threshold > values.min() + 0.96 * np.ptp(values)
    assert cut.counts.sum() == values.size


def test_a_guard_leaves_out_dips_at_the_end_of_the_range():
    values = humps(0.2, 0.9)
    cut = find_valley(values, below=0.96)
    end = values.min() + 0.96 * np.ptp(values)
    assert cut.threshold == dips_of(cut)[dips_of(cut) < end].max()


def test_a_guard_leaves_out_dips_with_a_few_trajectories_above():
    rng = np.random.default_rng(0)
    rest, expert = rng.normal(0.03, 0.005, 100), rng.normal(0.15, 0.02, 100)
    values = np.concatenate([rest, expert, [0.4, 0.41, 0.42]])
    assert (values > find_valley(values, below=0.96).threshold).sum() == 3
    assert (values > find_valley(values, below=0.96, least=0.05).threshold).sum() == 103
    assert find_valley(values, least=0.99).status == "no_valley"


def test_the_recipes_differ_in_the_guards_alone():
    letter, guarded = get_recipe("paper"), get_recipe("paper-guarded")
    values = humps(0.2, 0.9)
    verdict = Verdict(values[None], np.full((1, 1), 0.9))
    assert letter.threshold(verdict).threshold == find_valley(values).threshold
    wanted = find_valley(values, below=0.96, least=0.05).threshold
    assert guarded.threshold(verdict).threshold == wanted
    assert letter.ensemble == replace(guarded.ensemble, subset=None)
    assert letter.loop == guarded.loop


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
