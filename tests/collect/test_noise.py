"""N: uniform, within the ranges of the others, per dimension."""

import numpy as np

from pubc.collect.noise import Ranges, draw, ranges
from pubc.trajectory import Columns

WITHIN = Ranges(
    observations=np.array([[-1, 10, 3], [1, 20, 3]], dtype=np.float32),
    actions=np.array([[0], [4]], dtype=np.float32),
    rewards=np.array([[-5], [-4]], dtype=np.float32),
)


def noise(length=4000, **more):
    settings = {"terminal": False, "source": "N", "index": 0, "rng": np.random.default_rng(0)}
    return draw(WITHIN, length, **{**settings, **more})


def test_every_dimension_stays_in_its_range_and_fills_it():
    one = noise()
    for values, between in (
        (one.steps.observations, WITHIN.observations),
        (one.steps.actions, WITHIN.actions),
        (one.steps.rewards[:, None], WITHIN.rewards),
    ):
        low, high = between
        assert (values >= low).all()
        assert (values <= high).all()
        assert np.allclose(values.min(axis=0), low, atol=0.02)
        assert np.allclose(values.max(axis=0), high, atol=0.02)
        assert np.allclose(values.mean(axis=0), (low + high) / 2, atol=0.2)


def test_a_dimension_without_a_range_stays_constant():
    assert (noise().steps.observations[:, 2] == 3).all()


def test_noise_ends_as_it_is_told_and_has_a_final_observation():
    timed, ended = noise(5), noise(5, terminal=True)
    assert (len(timed), timed.steps.timeouts[-1], timed.steps.terminals.any()) == (5, True, False)
    assert (ended.steps.terminals[-1], ended.steps.timeouts.any()) == (True, False)
    assert timed.final_observation.shape == (3,)


def test_noise_is_float32_like_the_rest():
    one = noise(5)
    kinds = {one.steps.observations.dtype, one.steps.actions.dtype, one.steps.rewards.dtype}
    assert kinds == {np.dtype(np.float32)}


def test_ranges_are_those_of_all_blocks():
    def block(low, high):
        values = np.array([[low], [high]], dtype=np.float32)
        flags = np.zeros(2, dtype=np.bool_)
        return Columns(values, values * 2, values[:, 0] * 3, flags, flags)

    found = ranges([block(0, 1), block(-2, 0.5)])
    assert found.observations.tolist() == [[-2], [1]]
    assert found.actions.tolist() == [[-4], [2]]
    assert found.rewards.tolist() == [[-6], [3]]
