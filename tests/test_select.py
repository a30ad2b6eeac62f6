"""Seed selection: exact counts, fixed ties, and refusals in words."""

from decimal import ROUND_CEILING, Decimal

import numpy as np
import pytest

from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.select import by_ids, by_source, check_seeds, locate, single_steps, top_count, top_returns
from pubc.trajectory import Columns, TrajectorySet, concatenate

RNG = np.random.default_rng(0)


def returning(*returns: float, sources=None, ids=None) -> TrajectorySet:
    """One trajectory of three steps for each return."""
    rng = np.random.default_rng(1)
    count = len(returns)
    rewards = np.zeros((count, 3))
    rewards[:, 0] = returns
    ends = np.tile([False, False, True], count)
    return TrajectorySet.from_flat(
        Columns(
            rng.normal(size=(3 * count, 2)),
            rng.normal(size=(3 * count, 1)),
            rewards.reshape(-1),
            np.zeros(3 * count, bool),
            ends,
        ),
        [3] * count,
        ids=ids,
        sources=None if sources is None else np.asarray(sources),
    )


@pytest.mark.parametrize("share", [0.001, 0.002, 0.004, 0.01, 0.02, 0.05, 0.07, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("at_least", [1, 2, 3])
def test_the_count_is_exact_for_every_size(share: float, at_least: int):
    for size in range(1, 1001):
        exact = int((Decimal(repr(share)) * size).to_integral_value(ROUND_CEILING))
        assert top_count(size, share, at_least) == min(size, max(at_least, exact))


def test_rounding_in_floats_does_not_add_a_trajectory():
    assert 0.07 * 100 > 7
    assert top_count(100, 0.07) == 7


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, float("nan")])
def test_an_impossible_share_is_refused(share: float):
    with pytest.raises(UsageError, match="above 0"):
        top_count(10, share)


def test_ties_go_to_the_earlier_trajectory():
    mixed = returning(1, 5, 5, 5, 0)
    assert top_returns(mixed, 0.4).tolist() == [1, 2]
    assert top_returns(mixed, 0.001, at_least=3).tolist() == [1, 2, 3]


def test_all_equal_returns_give_the_first_ones():
    assert top_returns(returning(*[2.0] * 10), 0.3).tolist() == [0, 1, 2]


def test_an_unknown_return_is_refused_and_named():
    with pytest.raises(DataError, match="trajectory 1") as caught:
        top_returns(returning(1, float("nan"), 3), 0.5)
    assert caught.value.code == "nonfinite_rewards"
    assert caught.value.count == 1


def test_no_rewards_is_refused():
    mixed = returning(1, 2)
    columns = mixed.columns
    silent = TrajectorySet.from_flat(
        Columns(columns.observations, columns.actions, None, columns.terminals, columns.timeouts),
        mixed.lengths,
    )
    with pytest.raises(DataError, match="no rewards"):
        top_returns(silent, 0.5)


def test_short_trajectories_are_passed_over():
    mixed = returning(1, 9, 3)
    one_step = TrajectorySet(
        mixed.columns, mixed.starts, np.array([3, 1, 3]), mixed.ids, sources=None
    )
    assert top_returns(one_step, 0.1, shortest=2).tolist() == [2]


def test_ids_are_found_in_the_order_given():
    assert by_ids(returning(1, 2, 3, ids=["a", "b", "c"]), ["c", "a"]).tolist() == [2, 0]


def test_an_unknown_id_is_refused_with_a_near_one():
    with pytest.raises(UnknownNameError, match="demo_1"):
        by_ids(returning(1, 2, ids=["demo_1", "demo_2"]), ["demo1"])


def test_an_id_named_twice_is_refused():
    with pytest.raises(UsageError, match="twice"):
        by_ids(returning(1, 2), ["0", "0"])


def test_source_draws_only_from_that_policy_and_repeats():
    mixed = returning(*range(6), sources=["e", "w"] * 3)
    first = by_source(mixed, "e", 2, np.random.default_rng(3))
    assert set(first) <= {0, 2, 4}
    assert first.tolist() == by_source(mixed, "e", 2, np.random.default_rng(3)).tolist()
    with pytest.raises(UnknownNameError, match="Known: e, w"):
        by_source(mixed, "expert", 1, RNG)
    with pytest.raises(UsageError, match="which has 3"):
        by_source(mixed, "e", 4, RNG)


def test_seeds_are_found_by_rows_and_by_content():
    mixed = returning(1, 2, 3)
    assert locate(mixed, mixed[[2, 0]]).tolist() == [2, 0]
    stranger = returning(*range(5))[[4]]
    assert locate(mixed, concatenate([mixed[[1]], stranger])).tolist() == [1, -1]


def test_seed_checks_speak():
    mixed = returning(*range(10))
    codes = {p.code for p in check_seeds(mixed, mixed[[0]])}
    assert codes == {"few_seed_steps", "one_seed"}
    twice = concatenate([mixed[[0]], mixed[[0]]])
    assert "seed_duplicates" in {p.code for p in check_seeds(mixed, twice)}
    assert "many_seeds" in {p.code for p in check_seeds(mixed, mixed[:6])}


def test_seeds_of_another_robot_are_refused():
    mixed = returning(1, 2, 3)
    other = TrajectorySet.from_flat(
        Columns(np.zeros((2, 5)), np.zeros((2, 1)), None, np.zeros(2, bool), np.zeros(2, bool)), [2]
    )
    with pytest.raises(DataError, match="2 observation and 1 action"):
        check_seeds(mixed, other)
    with pytest.raises(UsageError, match="at least one"):
        check_seeds(mixed, mixed[[]])


def test_single_steps_are_trajectories_of_their_own():
    mixed = returning(1, 2, sources=["e", "w"])[[1]]
    steps = single_steps(mixed)
    assert len(steps) == 3
    assert steps.lengths.tolist() == [1, 1, 1]
    assert steps.sources is not None
    assert steps.sources.tolist() == ["w"] * 3
    assert np.array_equal(steps.flat().observations, mixed.flat().observations)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3,17,40-45", ["3", "17", "40", "41", "42", "43", "44", "45"]),
        (" 1 , 2-2 ,", ["1", "2"]),
        ("59", ["59"]),
        ("absent", ["absent"]),
    ],
)
def test_e4_ranges_of_ids_are_taken(text, found):
    from pubc.select import listed_ids

    assert listed_ids(numbered([str(n) for n in range(60)]), text) == found


@pytest.mark.parametrize(
    ("ids", "text", "found"),
    [
        ([f"demo_{n}" for n in range(9)], "demo_1-demo_3", ["demo_1", "demo_2", "demo_3"]),
        ([f"demo_{n}" for n in range(9)], "demo_1-3", ["demo_1", "demo_2", "demo_3"]),
        (["007", "008", "010"], "7-10", ["007", "008", "010"]),
        (["1-5", "1", "5"], "1-5", ["1-5"]),
        (["train/0", "train/1", "test/1"], "train/0-1", ["train/0", "train/1"]),
    ],
)
def test_e4_ranges_keep_the_names_of_the_set(ids, text, found):
    from pubc.select import listed_ids

    assert listed_ids(numbered(ids), text) == found


@pytest.mark.parametrize(
    ("ids", "text", "told"),
    [
        ([str(n) for n in range(60)], "55-70", "Ids go from 0 to 59."),
        ([f"demo_{n}" for n in range(9)], "demo_4-12", "Ids go from demo_0 to demo_8."),
        (["0", "2", "4"], "1-4", "Ids go from 0 to 4, with gaps."),
    ],
)
def test_a_range_beyond_the_ids_is_told_where_they_end(ids, text, told):
    from pubc.select import listed_ids

    with pytest.raises(UsageError, match=f"The range {text!r}") as caught:
        listed_ids(numbered(ids), text)
    assert str(caught.value).endswith(told)


def test_e4_a_range_that_runs_backwards_is_refused():
    from pubc.select import listed_ids

    with pytest.raises(UsageError, match="'5-3' runs backwards"):
        listed_ids(numbered(["3", "4", "5"]), "5-3")


def test_ids_of_endless_digits_are_names_like_any_other():
    from pubc.cli.data.inspect_details import describe_ids
    from pubc.select import listed_ids

    mixed = numbered([*(str(n) + "1" * 5000 for n in range(1, 4)), "7", "8"])
    assert listed_ids(mixed, "7-8") == ["7", "8"]
    assert listed_ids(mixed, str(mixed.ids[0])) == [str(mixed.ids[0])]
    assert describe_ids(mixed)["pattern"] is None
    with pytest.raises(UsageError, match="at most 100 digits"):
        listed_ids(mixed, "7-" + "1" * 5000)


def numbered(ids: list[str]) -> TrajectorySet:
    ends = np.ones(len(ids), dtype=np.bool_)
    columns = Columns(np.zeros((len(ids), 1)), np.zeros((len(ids), 1)), None, ends, ~ends)
    return TrajectorySet.from_flat(columns, [1] * len(ids), ids=ids)
