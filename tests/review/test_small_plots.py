"""Curves on cards: the dimensions that vary, the right trajectory, the right height."""

import numpy as np

from pubc.review.small_plots import CHUNK, POINTS, plots_of
from pubc.trajectory import Columns, TrajectorySet


def pile(count=3, steps=100):
    ramp = np.tile(np.linspace(0, 1, steps), count)
    owner = np.repeat(np.arange(count), steps)
    states = np.stack([np.zeros_like(ramp), ramp, 5.0 * owner, 5.0 * owner + 1e-9 * ramp], axis=1)
    flags = np.zeros(len(ramp), bool)
    actions = np.stack([1 - ramp], axis=1)
    return TrajectorySet.from_flat(Columns(states, actions, None, flags, flags), [steps] * count)


def test_what_varies_most_is_drawn_and_nothing_twice():
    plots = plots_of(pile())
    assert plots.states == (2, 1, 0)
    assert plots.actions == (0,)
    assert plots.names() == ["state 2", "state 1", "state 0", "action 0"]
    assert [plots.names()[c] for c in plots.small] == ["state 2", "state 1", "action 0"]


def test_bytes_are_the_curves_of_their_trajectory():
    mixed = pile(CHUNK + 5)
    plots = plots_of(mixed)
    drawn = np.frombuffer(plots.chunk(1), np.uint8).reshape(5, 3, POINTS)
    assert (np.diff(drawn[2, 1].astype(int)) > 0).all()
    assert (np.diff(drawn[2, 2].astype(int)) < 0).all()
    assert len(np.unique(drawn[:, 0])) <= 5
    assert plots.chunk(2) == b""


def test_a_closer_look_names_its_steps():
    import base64

    close = plots_of(pile(2, 3000)).close(1)
    steps = np.frombuffer(base64.b64decode(close["steps"]["data"]), "<i4")
    values = np.frombuffer(base64.b64decode(close["curves"][1]["data"]), "<f4")
    assert steps[0] == 0
    assert steps[-1] == 2999
    assert np.allclose(values, steps / 2999, atol=1e-6)


def test_one_step_and_constant_data_can_be_drawn():
    flags = np.zeros(1, bool)
    one = TrajectorySet.from_flat(
        Columns(np.ones((1, 2)), np.zeros((1, 1)), None, flags, flags), [1]
    )
    plots = plots_of(one)
    assert len(plots.chunk(0)) == len(plots.small) * POINTS
    assert len(plots.close(0)["curves"]) == 3
