"""Sets are frozen views: every selection points, nothing copies, every mismatch is told."""

import numpy as np
import pytest

from pubc.errors import DataError, UsageError
from pubc.trajectory import Columns, TrajectorySet, concatenate

LENGTHS = (3, 1, 4, 2)


def make(lengths=LENGTHS, **rest) -> TrajectorySet:
    """A set whose first observation dimension numbers its rows."""
    rows = sum(lengths)
    count = np.arange(rows, dtype=np.float32)
    ends = np.zeros(rows, dtype=bool)
    ends[np.cumsum(lengths) - 1] = True
    columns = Columns(
        np.stack([count, -count], axis=1), count[:, None] * 2, count + 1, ~ends & ends, ends
    )
    return TrajectorySet.from_flat(columns, lengths, **rest)


def numbers(trajectories: TrajectorySet) -> list[int]:
    return trajectories.flat().observations[:, 0].astype(int).tolist()


def test_a_column_of_another_length_is_refused_with_both_numbers():
    with pytest.raises(DataError, match=r"observations has 5 rows but actions has 4") as caught:
        Columns(np.zeros((5, 2)), np.zeros((4, 1)), None, np.zeros(5, bool), np.zeros(5, bool))
    assert (caught.value.code, caught.value.field, caught.value.index) == (
        "unequal_lengths",
        "actions",
        4,
    )


def test_a_column_with_the_wrong_axes_is_refused_with_its_shape():
    with pytest.raises(DataError, match=r"observations must have 2 axes. Got shape \(5,\)"):
        Columns(np.zeros(5), np.zeros((5, 1)), None, np.zeros(5, bool), np.zeros(5, bool))


def test_flags_that_are_not_boolean_are_refused():
    with pytest.raises(DataError, match="timeouts must be boolean"):
        Columns(np.zeros((5, 2)), np.zeros((5, 1)), None, np.zeros(5, bool), np.zeros(5))


def test_lengths_that_do_not_sum_to_the_rows_are_refused_with_both_numbers():
    with pytest.raises(DataError, match="2 trajectories sum to 9 steps but the columns have 10"):
        TrajectorySet.from_flat(make().columns, [4, 5])


@pytest.mark.parametrize("name", ["ids", "sources"])
def test_one_entry_per_trajectory_is_required(name: str):
    with pytest.raises(DataError, match=f"4 trajectories but {name} has 2 entries"):
        make(**{name: np.array(["a", "b"])})


def test_final_observations_need_the_width_of_observations():
    with pytest.raises(DataError, match=r"\(2,\) per step but final_observations have \(3,\)"):
        make(final_observations=np.zeros((4, 3)), has_final=np.ones(4, bool))


def test_final_observations_and_their_flags_come_together():
    with pytest.raises(DataError, match="come together"):
        make(final_observations=np.zeros((4, 2)))


@pytest.mark.parametrize(
    ("starts", "lengths"), [([0, 8], [3, 3]), ([-1, 3], [3, 3]), ([0, 3], [3, 0])]
)
def test_an_index_outside_the_rows_is_refused(starts, lengths):
    with pytest.raises(DataError, match="points outside the 10 rows"):
        TrajectorySet(make().columns, np.array(starts), np.array(lengths), np.array(["a", "b"]))


def test_arrays_are_read_only_views_of_what_was_given():
    observations = np.zeros((4, 2))
    actions, flags = np.zeros((4, 1)), np.zeros(4, bool)
    extra = np.zeros(4)
    columns = Columns(observations, actions, None, flags, flags, {"x": extra})
    trajectories = TrajectorySet.from_flat(columns, [4])
    for array in (columns.observations, columns.terminals, columns.extras["x"]):
        assert not array.flags.writeable
    assert np.shares_memory(columns.observations, observations)
    assert np.shares_memory(columns.extras["x"], extra)
    assert not trajectories.lengths.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        trajectories[0].steps.observations[0, 0] = 1
    observations[0, 0] = 1  # the caller's array stays the caller's
    assert trajectories[0].steps.observations[0, 0] == 1


def test_metadata_and_extras_cannot_be_changed():
    trajectories = make(metadata={"a": 1})
    with pytest.raises(TypeError):
        trajectories.metadata["a"] = 2  # type: ignore[index]
    with pytest.raises(TypeError):
        trajectories.columns.extras["a"] = 2  # type: ignore[index]


def test_slices_masks_and_positions_select_the_same_trajectories():
    trajectories = make()
    mask = np.array([False, True, False, True])
    for key in (slice(1, None, 2), mask, [1, 3], np.array([1, -1]), mask.tolist()):
        chosen = trajectories[key]
        assert numbers(chosen) == [3, 8, 9]
        assert chosen.ids.tolist() == ["1", "3"]
    assert numbers(trajectories[::-1]) == [8, 9, 4, 5, 6, 7, 3, 0, 1, 2]
    assert numbers(trajectories[[2, 2]]) == [4, 5, 6, 7] * 2


def test_selecting_copies_no_step():
    trajectories = make()
    chosen = trajectories[[3, 0]]
    assert np.shares_memory(chosen.columns.observations, trajectories.columns.observations)
    assert np.shares_memory(chosen[0].steps.observations, trajectories.columns.observations)
    assert np.shares_memory(
        trajectories[1:3].flat().observations, trajectories.columns.observations
    )


@pytest.mark.parametrize("key", [[], slice(4, 9), np.zeros(4, bool), np.array([], dtype=float)])
def test_an_empty_selection_is_an_empty_set(key):
    empty = make()[key]
    assert (len(empty), empty.steps, numbers(empty)) == (0, 0, [])
    assert list(empty.blocks()) == []
    assert list(empty) == []
    assert empty.total_rewards().shape == (0,)
    assert empty.ends().tolist() == []
    assert empty.offsets.tolist() == [0]
    assert len(empty.take_steps(np.array([], dtype=np.int64)).observations) == 0


def test_a_mask_of_the_wrong_length_is_refused_with_both_numbers():
    with pytest.raises(UsageError, match=r"mask of shape \(3,\) for a set of 4"):
        make()[np.ones(3, bool)]


@pytest.mark.parametrize("key", [np.array([0.5]), np.zeros((2, 2), int), ["a"]])
def test_a_selection_that_means_nothing_is_refused(key):
    with pytest.raises(UsageError, match="Select trajectories with"):
        make()[key]


@pytest.mark.parametrize("index", [4, -5])
def test_a_trajectory_that_is_not_there_is_an_index_error(index: int):
    with pytest.raises(IndexError, match=f"Trajectory {index} of a set of 4"):
        make()[index]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 100])
@pytest.mark.parametrize(
    "key", [slice(None), [3, 0, 2], [0, 2], slice(2, 4), slice(None, None, -1)]
)
def test_blocks_stream_exactly_the_flat_columns(key, size: int):
    chosen = make()[key]
    blocks = list(chosen.blocks(size))
    assert all(1 <= len(block.observations) <= size for block in blocks)
    for name, column in chosen.flat().named():
        streamed = np.concatenate([dict(block.named())[name] for block in blocks])
        np.testing.assert_array_equal(streamed, column)
    streamed = np.concatenate(list(chosen.stream(chosen.columns.actions, size)))
    np.testing.assert_array_equal(streamed, chosen.flat().actions)


def test_a_block_needs_a_step():
    with pytest.raises(UsageError, match="Got 0"):
        next(make().blocks(0))


def test_steps_are_taken_by_their_position_in_the_selection():
    chosen = make()[[3, 0]]
    assert chosen.take_steps(np.array([0, 4, 1])).observations[:, 0].tolist() == [8, 2, 9]
    for wrong in (-1, 5):
        with pytest.raises(IndexError, match="of a set of 5 steps"):
            chosen.take_steps(np.array([0, wrong]))


def test_returns_do_not_depend_on_how_steps_are_blocked(monkeypatch):
    rng = np.random.Generator(np.random.Philox(0))
    lengths = rng.integers(1, 50, 40)
    rows = int(lengths.sum())
    flags = np.zeros(rows, bool)
    rewards = rng.normal(size=rows)
    columns = Columns(np.zeros((rows, 1)), np.zeros((rows, 1)), rewards, flags, flags)
    trajectories = TrajectorySet.from_flat(columns, lengths)
    whole = trajectories.total_rewards()
    by_hand = [float(np.sum(t.steps.rewards)) for t in trajectories]
    np.testing.assert_allclose(whole, by_hand, rtol=1e-12)
    monkeypatch.setattr("pubc.trajectory.sets.BLOCK", 7)
    np.testing.assert_array_equal(trajectories.total_rewards(), whole)
    order = rng.permutation(40)
    np.testing.assert_array_equal(trajectories[order].total_rewards(), whole[order])


def test_a_set_without_rewards_has_unknown_returns():
    flags = np.zeros(3, bool)
    columns = Columns(np.zeros((3, 1)), np.zeros((3, 1)), None, flags, flags)
    assert np.isnan(TrajectorySet.from_flat(columns, [2, 1]).total_rewards()).all()


def test_a_terminal_wins_over_a_timeout():
    terminals = np.array([False, True, True, False])
    timeouts = np.array([False, True, False, False])
    columns = Columns(np.zeros((4, 1)), np.zeros((4, 1)), None, terminals, timeouts)
    ends = TrajectorySet.from_flat(columns, [2, 1, 1]).ends()
    assert ends.tolist() == ["terminal", "terminal", "unmarked"]


def test_joined_sets_keep_what_all_of_them_have():
    left, right = make(sources=np.array(list("abcd"))), make((2,), ids=["z"])
    both = concatenate([left[1:], right])
    assert both.ids.tolist() == ["1", "2", "3", "z"]
    assert both.sources is None
    assert numbers(both) == [3, 4, 5, 6, 7, 8, 9, 0, 1]


def test_sets_of_different_dimensions_are_not_joined():
    other = make()
    flags = np.zeros(2, bool)
    wide = TrajectorySet.from_flat(
        Columns(np.zeros((2, 5)), np.zeros((2, 1)), None, flags, flags), [2]
    )
    with pytest.raises(DataError, match=r"\(2, 1\), \(5, 1\)"):
        concatenate([other, wide])


def test_streaming_a_mapped_set_gives_its_memory_back(tmp_path):
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    rows, wide = 400_000, 40
    np.save(tmp_path / "x.npy", np.ones((rows, wide), dtype=np.float32))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    flags = np.zeros(rows, bool)
    trajectories = TrajectorySet.from_flat(
        Columns(mapped, flags[:, None], None, flags, flags), [1000] * 400
    )
    start, peak, total = resident(), 0, 0.0
    for chosen in (trajectories, trajectories[::2]):
        for block in chosen.blocks(10_000):
            total += float(block.observations.sum())
            peak = max(peak, resident())
    assert total == rows * wide * 1.5
    assert peak - start < 24 << 20  # of 64 MiB that were read
    assert float(trajectories[0].steps.observations.sum()) == 1000 * wide
    trajectories.release()
    assert float(trajectories[0].steps.observations.sum()) == 1000 * wide
