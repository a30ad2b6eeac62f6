"""Batches for offline reinforcement learning: what followed is what really followed."""

import dataclasses

import numpy as np
import pytest

from pubc.errors import DataError
from pubc.policies.offline_rl.transitions import Sequences, Transitions
from pubc.policies.training_rows import facts_of
from pubc.trajectory import Columns, TrajectorySet

LENGTHS = [4, 3, 5]


def counted(*, final: bool = False, terminal: bool = False) -> TrajectorySet:
    """Observation = row number, action = -row number, reward = 1."""
    rows = sum(LENGTHS)
    numbers = np.arange(rows, dtype=np.float32)[:, None]
    ends = np.zeros(rows, dtype=np.bool_)
    ends[np.cumsum(LENGTHS) - 1] = True
    none = np.zeros_like(ends)
    columns = Columns(
        numbers,
        -numbers,
        np.ones(rows, np.float32),
        ends if terminal else none,
        none if terminal else ends,
    )
    data = TrajectorySet.from_flat(columns, LENGTHS)
    if not final:
        return data
    return dataclasses.replace(
        data,
        final_observations=np.array([[100.0], [200.0], [300.0]], np.float32),
        has_final=np.array([True, True, False]),
    )


def pairs(data: TrajectorySet) -> set[tuple[int, int, bool]]:
    facts = facts_of(data)
    batch = Transitions(data, facts).draw(500, np.random.default_rng(0))
    mean, scale = facts.normaliser.mean, facts.normaliser.scale
    clipped = np.abs(batch["next_observations"]) == 10
    here = np.rint(batch["observations"] * scale + mean).astype(int).ravel()
    after = np.rint(batch["next_observations"] * scale + mean).astype(int).ravel()
    after[clipped.ravel()] = 999
    assert np.allclose(batch["rewards"], 1)
    return set(zip(here.tolist(), after.tolist(), (batch["terminals"] > 0).ravel().tolist()))  # noqa: B905


def test_the_last_step_of_a_cut_trajectory_is_left_out():
    assert pairs(counted()) == {
        (0, 1, False), (1, 2, False), (2, 3, False),
        (4, 5, False), (5, 6, False),
        (7, 8, False), (8, 9, False), (9, 10, False), (10, 11, False),
    }  # fmt: skip


def test_a_final_observation_follows_the_last_step():
    found = pairs(counted(final=True))
    assert {one for one in found if one[0] in (3, 6)} == {(3, 999, False), (6, 999, False)}
    assert not any(here == 11 for here, _, _ in found)


def test_a_terminal_step_counts_without_a_successor():
    found = pairs(counted(terminal=True))
    assert {here for here, _, terminal in found if terminal} == {3, 6, 11}
    assert len(found) == 12


def test_a_set_without_any_successor_is_refused():
    data = counted()
    single = TrajectorySet.from_flat(
        dataclasses.replace(data.columns, timeouts=np.ones(12, np.bool_)), [1] * 12
    )
    with pytest.raises(DataError, match="known successor"):
        Transitions(single, facts_of(single))


def test_windows_stay_inside_their_trajectory_and_know_the_return_to_come():
    data = counted()
    facts = facts_of(data)
    windows = Sequences(data, facts, 3)
    assert windows.target == 5
    batch = windows.draw(200, np.random.default_rng(0))
    rows = batch["observations"] * facts.normaliser.scale + facts.normaliser.mean
    rows = np.rint(rows[..., 0]).astype(int)
    mask = batch["masks"].astype(bool)
    ends = np.cumsum(LENGTHS)
    for row, seen, togo, time in zip(
        rows, mask, batch["returns_to_go"][..., 0], batch["timesteps"], strict=True
    ):
        real = row[seen]
        owner = np.searchsorted(ends, real, side="right")
        assert len(set(owner)) == 1
        assert (np.diff(real) == 1).all()
        assert np.allclose(togo[seen] * windows.scale, ends[owner] - real)
        start = ends[owner] - np.array(LENGTHS)[owner]
        assert (time[seen] == real - start + 1).all()
        assert (togo[~seen] == 0).all()
