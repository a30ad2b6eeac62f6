"""`find_expert` where there is an answer, and where there is none.

Goals R3 and R4 of docs/dev/check-full.md.
"""

import dataclasses
import functools

import numpy as np
import pytest

import pubc
from pubc.errors import DataError, UsageError
from pubc.metrics import confusion, roc_auc
from pubc.pu.recipes import (
    Auto,
    Paper,
    PaperGuarded,
    get_recipe,
    recipe_from_json,
    recipe_to_json,
    with_settings,
)
from pubc.runs.find_expert import prepare
from pubc.trajectory import TrajectorySet, concatenate
from tests.pu.piles import pile


def mixed(*counts: int, **options) -> TrajectorySet:
    return pile(counts, steps=120, states=3, **options)


@functools.cache
def found_by_two_seeds() -> pubc.Result:
    """What one worker finds in ten and ten; several tests compare another run with it."""
    return pubc.find_expert(mixed(10, 10), [3, 5], workers=1)


@pytest.mark.parametrize(
    ("counts", "seeds"),
    [
        # The same pile is told apart by seeds from elsewhere below.
        pytest.param((20, 20), [0], marks=pytest.mark.slow),
        ((12, 48), [0, 1]),
        pytest.param((15, 20, 15), [0, 1], marks=pytest.mark.slow),
        pytest.param((40, 15), [0, 1, 2, 3, 4], marks=pytest.mark.slow),
    ],
)
def test_auto_finds_the_expert(counts, seeds):
    data = mixed(*counts)
    found = pubc.find_expert(data, seeds)
    truth = data.sources == "0"
    assert found.sound
    assert confusion(found.mask, truth).accuracy == 1.0
    assert roc_auc(found.confidence, truth) == 1.0
    assert found.weighed.chance_wrong is not None
    assert found.weighed.chance_wrong < 0.05
    assert not found.advice


def test_seeds_may_come_from_elsewhere():
    data = mixed(20, 20)
    seeds = mixed(2, random_seed=50)
    found = pubc.find_expert(data, seeds)
    assert found.sound
    assert not found.seeds.any()
    assert confusion(found.mask, data.sources == "0").accuracy == 1.0


@pytest.mark.usefixtures("brisk")
def test_a_copy_of_a_trajectory_is_that_trajectory():
    data = mixed(10, 10)
    copies = concatenate([data[[3, 5]]])
    assert np.flatnonzero(prepare(data, copies).seeds).tolist() == [3, 5]
    outside = pubc.find_expert(data, copies)
    assert np.array_equal(found_by_two_seeds().confidence, outside.confidence)


def test_labels_and_rewards_are_out_of_reach():
    ready = prepare(mixed(4, 4), mixed(4, 4)[[0]])
    for part in (ready.mixed, ready.seed_positives):
        assert part.sources is None
        assert part.columns.rewards is None
        assert not part.metadata


@pytest.mark.parametrize("random_seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_one_policy_only_cannot_be_split(random_seed: int):
    found = pubc.find_expert(mixed(30, random_seed=random_seed), [0, 1], random_seed=7)
    assert found.status in ("no_valley", "seed_incoherent", "weak_valley")
    assert not found.sound
    assert found.advice


@pytest.mark.slow  # it takes the way of the pile of one policy
def test_pure_noise_cannot_be_split():
    rng = np.random.default_rng(0)
    data = mixed(20)
    columns = dataclasses.replace(
        data.columns,
        observations=rng.uniform(-1, 1, data.columns.observations.shape).astype(np.float32),
        actions=rng.uniform(-1, 1, data.columns.actions.shape).astype(np.float32),
    )
    found = pubc.find_expert(dataclasses.replace(data, columns=columns), [0, 1])
    assert not found.sound


def test_seeds_of_different_policies_are_never_a_confident_set():
    data = mixed(10, 10, 10)
    found = pubc.find_expert(data, [0, 1, 11, 12, 21, 22])
    truths = [data.sources == name for name in "012"]
    wrong = all(confusion(found.mask, truth).accuracy < 1 for truth in truths)
    assert not (found.sound and wrong)


def test_seeds_of_a_policy_that_is_not_there_are_not_confirmed():
    data = mixed(20, 20)
    stranger = mixed(1, 1, 1, 2, random_seed=3)[[3, 4]]
    found = pubc.find_expert(data, stranger)
    if found.sound:
        # Then at least the set is one whole policy, not an arbitrary piece of both.
        assert len(set(data.sources[found.mask])) == 1


@pytest.mark.parametrize("counts", [(3, 3), (2, 2), (4, 1), (1, 5)])
@pytest.mark.usefixtures("brisk")
def test_a_handful_of_trajectories_never_crashes(counts):
    data = mixed(*counts)
    found = pubc.find_expert(data, [0])
    assert found.mask.shape == (sum(counts),)
    if found.sound:
        assert confusion(found.mask, data.sources == "0").accuracy == 1.0


@pytest.mark.usefixtures("brisk")
def test_the_same_call_twice_is_the_same_to_the_bit():
    one, other = found_by_two_seeds(), pubc.find_expert(mixed(10, 10), [3, 5], workers=2)
    assert np.array_equal(one.confidence, other.confidence)
    assert one.status == other.status


def test_impossible_calls_are_refused():
    data = mixed(3)
    with pytest.raises(UsageError, match="nothing to find"):
        pubc.find_expert(data, [0, 1, 2])
    with pytest.raises(UsageError, match="at least one"):
        pubc.find_expert(data, [])
    with pytest.raises(DataError, match="observation and"):
        pubc.find_expert(data, pile([1], states=5))


def test_recipes_survive_json():
    changed = with_settings(Paper(), {"ensemble.classifiers": 5, "loop.max_rounds": 4, "cut": 0.5})
    assert changed.loop.max_rounds == 4
    for recipe in (Auto(), Paper(), PaperGuarded(), changed):
        assert recipe_from_json(recipe_to_json(recipe)) == recipe
    with pytest.raises(UsageError, match="No recipe named 'fast'"):
        get_recipe("fast")
    with pytest.raises(UsageError, match="No setting named 'ordr'"):
        with_settings(Paper(), {"ordr": 3})
    with pytest.raises(DataError, match="does not know"):
        recipe_from_json({"name": "other"})
