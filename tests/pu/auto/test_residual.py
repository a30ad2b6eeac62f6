"""The judge of recipe auto: views, imitators, and out-of-fold ratings."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pubc.errors import DataError
from pubc.pu.auto.imitators import train_imitators
from pubc.pu.auto.ratings import load_unit
from pubc.pu.auto.residual import Residual
from pubc.pu.auto.telling_steps import View, pick
from pubc.pu.judge import Bench, Cut, Standing, Task, Verdict
from pubc.select import locate
from pubc.trajectory import concatenate
from tests.pu.piles import first_task, pile

MIXED = pile([6, 6], steps=100, states=3)
SMALL = Residual(steps_per_trajectory=32, updates=60)


def task(mixed=MIXED, seeds=None, **bench) -> Task:
    return first_task(mixed, mixed[[0, 1]] if seeds is None else seeds, **bench)


def view(mixed=MIXED, seeds=None, steps: int = 32) -> View:
    chosen = mixed[[0, 1]] if seeds is None else seeds
    return View(mixed, chosen, locate(mixed, chosen), steps, Bench())


def test_steps_are_picked_in_proportion_to_their_weight():
    weights = np.array([0, 0, 0, 1, 1, 2], np.float32)
    counts = np.bincount(pick(weights, 400), minlength=6)
    assert counts[:3].sum() <= 4
    assert counts[3:].tolist() == pytest.approx([100, 100, 200], abs=3)


def test_a_robot_at_rest_is_not_looked_at():
    mixed = pile([4], steps=100, states=3)
    observations = np.array(mixed.columns.observations)
    observations[50:100] = observations[50]
    still = type(mixed).from_flat(
        type(mixed.columns)(
            observations,
            mixed.columns.actions,
            None,
            mixed.columns.terminals,
            mixed.columns.timeouts,
        ),
        mixed.lengths,
    )
    chosen = view(still, still[[1, 2]]).chosen[0]
    assert np.mean(chosen < 57) > 0.9


def test_seeds_from_elsewhere_are_numbered_behind_the_pile():
    stranger = pile([1], steps=70, states=3, random_seed=9)
    both = concatenate([stranger, MIXED[[2]]])
    seen = view(MIXED, both)
    assert seen.seeds.tolist() == [12, 2]
    assert seen.count == 13
    expected = seen.scale.states(stranger.flat().observations[seen.chosen[12]])
    assert np.array_equal(seen.states[12], expected)


def test_still_dimensions_are_left_out():
    observations = np.array(MIXED.columns.observations)
    observations[:, 1] = 4.0
    columns = MIXED.columns
    mixed = type(MIXED).from_flat(
        type(columns)(observations, columns.actions, None, columns.terminals, columns.timeouts),
        MIXED.lengths,
    )
    assert view(mixed, mixed[[0]]).scale.state_kept.tolist() == [0, 2]


def test_an_imitator_predicts_what_it_was_shown_and_nothing_else():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(512, 3)).astype(np.float32)
    mine, theirs = (states @ rng.normal(size=(3, 2)) for _ in range(2))
    pools = [(states, mine.astype(np.float32)), (states, theirs.astype(np.float32))]
    made, loss = train_imitators(pools, 200, rng, device=torch.device("cpu"), stop=lambda: False)
    assert loss[-1] < 0.3 * loss[0]
    under = made.residuals(*pools[0]).mean(axis=1)
    assert under[0] < under[1] - 1


def test_members_do_not_depend_on_their_neighbours_data():
    rng = np.random.default_rng(0)
    pools = [
        (rng.normal(size=(64, 3)).astype(np.float32), rng.normal(size=(64, 2)).astype(np.float32))
        for _ in range(3)
    ]
    device = torch.device("cpu")
    runs = [
        train_imitators(
            [*pools[:2], last],
            20,
            np.random.default_rng(1),
            device=device,
            stop=lambda: False,
        )[0]
        for last in (pools[2], pools[0])
    ]
    first, second = (run.residuals(*pools[0])[:2] for run in runs)
    assert np.allclose(first, second, atol=1e-5)


def test_the_expert_ranks_first_and_seeds_are_judged_by_others():
    verdict = SMALL.rate_by_seeds(task())
    scores = verdict.confidence[0]
    assert scores[:6].min() > scores[6:].max()
    assert verdict.held_out
    assert np.array_equal(verdict.seed_confidence[0], scores[:2])
    # A seed judged by an imitator of itself would stand out from the expert's others.
    assert abs(scores[:2].mean() - scores[2:6].mean()) < 3 * scores[2:6].std() + 0.3


def test_one_seed_is_judged_part_by_part():
    scores = SMALL.rate_by_seeds(task(seeds=MIXED[[0]])).confidence[0]
    assert scores[:6].min() > scores[6:].max()


def test_threads_and_workers_do_not_change_a_bit():
    found = []
    before = torch.get_num_threads()
    try:
        for threads, workers in ((1, 1), (2, 2), (1, 3)):
            torch.set_num_threads(threads)
            found.append(SMALL.rate_by_seeds(task(workers=workers)).confidence)
    finally:
        torch.set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_shelved_imitators_judge_alike(tmp_path):
    fresh, shelved, again = (
        SMALL.rate_by_seeds(work) for work in (task(), task(shelf=tmp_path), task(shelf=tmp_path))
    )
    assert list(tmp_path.iterdir())
    for other in (shelved, again):
        assert np.array_equal(fresh.confidence, other.confidence)
        assert fresh.training == other.training


def test_a_damaged_file_is_refused(tmp_path):
    SMALL.rate_by_seeds(task(shelf=tmp_path))
    path = sorted(tmp_path.iterdir())[0]
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError, match="weights"):
        load_unit(path, torch.device("cpu"))


def test_stored_imitators_rate_new_trajectories(tmp_path):
    SMALL.rate_by_seeds(task(shelf=tmp_path))
    fresh = pile([4, 4], steps=100, states=3, random_seed=5)
    rated = SMALL.apply(tmp_path, 1, fresh, Bench())[0]
    assert rated[:4].min() > rated[4:].max()
    alone = [SMALL.apply(tmp_path, 1, fresh[k : k + 1], Bench())[0] for k in range(8)]
    assert np.array_equal(np.concatenate(alone), rated), "depends on its neighbours"
    steps = np.concatenate(list(SMALL.steps(tmp_path, 1, fresh, Bench())))
    assert steps.shape == (800,)
    means = steps.reshape(8, 100).mean(axis=1)
    assert means[:4].min() > means[4:].max()


def side_round(judge, work, positive, rest):
    verdict = Verdict(np.zeros((1, 12)), np.zeros((1, 2)), split=(positive, rest))
    standing = Standing(verdict, Cut(0.0, "", None), positive, 1.0, start=True)
    return judge(replace(work, number=2, standing=standing))


def test_an_imitator_of_a_side_judges_nobody_it_has_seen(tmp_path):
    ours = np.arange(12) < 6
    verdict = side_round(SMALL, task(shelf=tmp_path), ours, ~ours)
    scores = verdict.confidence[0]
    assert scores[:6].min() > 0 > scores[6:].max()
    # Three imitators of each side, each without a third of it.
    assert [t.network for t in verdict.training] == ["round-002-sides-0", "round-002-sides-1"]
    fresh = pile([4, 4], steps=100, states=3, random_seed=5)
    rated = SMALL.apply(tmp_path, 2, fresh, Bench())[0]
    assert rated[:4].min() > 0 > rated[4:].max()
    steps = np.concatenate(list(SMALL.steps(tmp_path, 2, fresh, Bench())))
    assert steps.shape == (800,)
    assert steps[:400].mean() > 0 > steps[400:].mean()


def test_sides_drawn_by_lot_have_little_advantage_over_each_other():
    honest, by_lot = np.arange(12) < 6, np.arange(12) % 2 == 0
    lead = []
    for side in (honest, by_lot):
        scores = side_round(SMALL, task(), side, ~side).confidence[0]
        side = side | (np.arange(12) < 2)  # the seeds are never among the rest
        lead.append(min(scores[side].mean(), -scores[~side].mean()))
    assert lead[0] > 0.5
    assert lead[1] < 0.1
