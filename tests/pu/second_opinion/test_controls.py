"""What tells two sides apart besides how they act."""

from dataclasses import replace

import numpy as np
import torch

from pubc.pu.second_opinion.controls import check_controls, traits_of
from pubc.pu.second_opinion.looks.rows import look
from tests.pu.piles import pile


def controls(mixed, kept):
    return check_controls(traits_of(look(mixed, 60, torch.device("cpu")), mixed.lengths), kept)


def test_policies_that_start_alike_are_not_told_apart_by_their_start():
    found = controls(pile([30, 30]), np.arange(60) < 30)
    assert found.start < 0.7
    assert found.length == 0.5


def test_another_start_is_found():
    mixed = pile([30, 30])
    shifted = mixed.columns.observations.copy()
    shifted[30 * 60 :, 0] += 4
    moved = replace(mixed, columns=replace(mixed.columns, observations=shifted))
    found = controls(moved, np.arange(60) < 30)
    assert found.start > 0.95
    assert found.states > 0.95


def test_a_split_with_one_side_only_says_nothing():
    assert controls(pile([10, 10]), np.ones(20, bool)).start == 0.5
    assert controls(pile([10, 10]), np.zeros(20, bool)).start == 0.5


def test_where_noise_begins_says_nothing():
    mixed = pile([30, 30])
    seen = mixed.columns.observations.copy()
    smooth = np.cumsum(0.05 * seen[: 30 * 60].reshape(30, 60, -1), axis=1)
    seen[: 30 * 60] = smooth.reshape(30 * 60, -1)
    seen[30 * 60 :] = 1.0 + np.random.default_rng(0).standard_normal((30 * 60, seen.shape[1]))
    noisy = replace(mixed, columns=replace(mixed.columns, observations=seen))
    assert controls(noisy, np.arange(60) < 30).start == 0.5


def test_a_body_that_swings_at_every_step_is_not_noise():
    mixed = pile([30, 30])
    steps = np.arange(60)[None, :, None] * np.ones((60, 1, mixed.columns.observations.shape[1]))
    seen = np.where(steps % 2 == 0, 1.0, -1.0)
    # One dimension in three flows, as a body's place does whose joints swing.
    seen[:, :, ::3] = np.sin(steps[:, :, ::3] / 9)
    seen += 0.05 * np.random.default_rng(0).standard_normal(seen.shape)
    seen[30:, :, 0] += 4
    swings = replace(mixed.columns, observations=seen.reshape(60 * 60, -1).astype(np.float32))
    assert controls(replace(mixed, columns=swings), np.arange(60) < 30).start > 0.95
