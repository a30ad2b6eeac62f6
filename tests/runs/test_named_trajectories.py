"""Every way to name trajectories, and every way to get it wrong."""

import numpy as np
import pytest

from pubc.errors import UsageError
from pubc.runs.find_expert import prepare
from pubc.runs.named_trajectories import bad_in, positions_in, seeds_in
from pubc.trajectory import TrajectorySet
from tests.pu.piles import pile

MIXED = pile([3, 3], steps=4)
NAMED = TrajectorySet.from_flat(
    MIXED.columns, MIXED.lengths, ids=[f"demo_{number}" for number in range(6)]
)
MASK = [False, True, False, True, False, False]


@pytest.mark.parametrize(
    "named",
    [
        [1, 3],
        (1, 3),
        range(1, 4, 2),
        np.array([1, 3], dtype=np.uint8),
        ["demo_1", "demo_3"],
        np.array(["demo_1", "demo_3"]),
        np.array(["demo_1", "demo_3"], dtype=object),
        MASK,
        np.array(MASK),
        [1, 3, 1, 1],
        ["demo_1", "demo_3", "demo_1"],
    ],
)
def test_ids_positions_and_masks_name_the_same_trajectories(named):
    assert positions_in(NAMED, named, "seeds").tolist() == [1, 3]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ([1.5, 3], "Got integers and numbers"),
        ([1.0, 3.0], "numbers that are not integers, first 1.0"),
        (np.array([1.5]), "numbers that are not integers"),
        ([-1, 3], "between 0 and 5.*Got -1"),
        ([1, 99], "between 0 and 5.*Got 99"),
        (["demo_1", "demo_9"], "No trajectory named 'demo_9'"),
        ([True, False], "one entry per trajectory of the mixed set, which has 6. Got 2"),
        ([True, 1, 0, 0, 0, 0], "Got booleans and integers"),
        (["demo_1", 3], "Got ids and integers"),
        ([[1, 3]], "a list of list"),
        (np.ones((2, 3), dtype=int), r"Got shape \(2, 3\)"),
        ("demo_1", r"Got str. For one trajectory pass a list: \['demo_1'\]"),
        (3, r"Got int. For one trajectory pass a list: \[3\]"),
        (None, "Got NoneType"),
        ({"demo_1": 1}, "Got dict"),
        ([None, None], "a list of NoneType"),
        (NAMED[3], "pass its position"),
        ([NAMED[3]], "a list of Trajectory"),
    ],
)
def test_w5_what_means_nothing_is_refused_in_words(named, said):
    with pytest.raises(UsageError, match=said):
        positions_in(NAMED, named, "seeds")


def test_a_set_may_come_from_elsewhere_but_the_bad_must_be_in_the_pile():
    stranger = pile([1], steps=4, random_seed=9)
    assert seeds_in(NAMED, stranger) is stranger
    assert bad_in(NAMED, NAMED[[2, 4]]).tolist() == [False, False, True, False, True, False]
    assert not bad_in(NAMED, None).any()
    with pytest.raises(UsageError, match="not in the mixed set"):
        bad_in(NAMED, stranger)


def test_w6_a_seed_that_is_named_twice_counts_once():
    repeated = prepare(NAMED, NAMED[[1, 3, 1]])
    assert repeated.seed_positives.ids.tolist() == ["demo_1", "demo_3"]
    assert any(problem.code == "seed_duplicates" for problem in repeated.problems)


def test_nothing_is_seed_and_bad_at_once():
    with pytest.raises(UsageError, match="demo_1 is named as a seed and as bad"):
        prepare(NAMED, NAMED[[1]], bad_in(NAMED, [1]))
