"""What is played and what counts: decided by index alone, whoever finishes first."""

import errno
from pathlib import Path

import numpy as np
import pytest

from pubc.collect.finished_parts import part_path, read_index, read_trajectory, write_part
from pubc.collect.source_quota import Quota, SourceProgress
from pubc.collect.worker_pool import Answer, Limit
from pubc.errors import EnvironmentFailure
from pubc.trajectory import Columns, Trajectory


def progress(tmp_path: Path, quota: Quota, processes=1, time_limit=10) -> SourceProgress:
    return SourceProgress("E+", 0, quota, time_limit, tmp_path, processes)


def answer(task, lengths):
    return Answer("E+", task.first, tuple(lengths), (False,) * len(lengths), (0.0,) * len(lengths))


def trajectory(length: int, value: float = 0, terminal=False) -> Trajectory:
    observations = value + np.arange(length + 1, dtype=np.float32)[:, None]
    flags = np.zeros(length, dtype=np.bool_)
    ends = flags.copy()
    ends[-1] = True
    steps = Columns(
        observations[:-1],
        observations[:-1] * 10,
        observations[:-1, 0] * 100,
        ends if terminal else flags,
        flags if terminal else ends,
    )
    return Trajectory("x", steps, observations[-1], "E+")


def test_a_quota_of_trajectories_is_played_exactly(tmp_path: Path):
    one = progress(tmp_path, Quota(None, 10))
    tasks = [one.next_task() for _ in range(10)]
    assert [(t.first, t.count) for t in tasks[:8]] == [(0, 2), (2, 2)] + [
        (n, 1) for n in range(4, 10)
    ]
    assert tasks[8:] == [None, None]


def test_parts_shrink_so_that_nobody_waits_long_for_the_last(tmp_path: Path):
    one = progress(tmp_path, Quota(300_000, None), processes=2, time_limit=1000)
    sizes = []
    while (task := one.next_task()) is not None:
        sizes.append(task.count)
        one.record(answer(task, [1000] * task.count))
    assert sizes == sorted(sizes, reverse=True)
    assert (sizes[0], sizes[-8:], sum(sizes)) == (10, [1] * 8, 300)


def test_a_part_under_way_is_told_what_is_left_once_that_is_known(tmp_path: Path):
    one = progress(tmp_path, Quota(25, None), processes=3)
    first, second, third = (one.next_task() for _ in range(3))
    assert [(t.first, t.most) for t in (first, second, third)] == [(0, 25), (1, 25), (2, 25)]
    one.record(answer(second, [10]))
    assert [(limit.first, limit.most) for limit in one.limits()] == [(0, 25)]
    one.record(answer(first, [10]))
    assert list(one.limits()) == [Limit("E+", 2, 5)]


def test_a_part_that_is_not_needed_any_more_is_told_so_and_leaves_nothing(tmp_path: Path):
    one = progress(tmp_path, Quota(12, None), processes=2)
    one.record(answer(one.next_task(), [4]))
    first, second = one.next_task(), one.next_task()
    one.record(answer(first, [10]))
    assert list(one.limits()) == [Limit("E+", second.first, 0)]
    one.record(answer(second, []))
    assert one.next_task() is None
    assert [kept.length for kept in one.kept()] == [4, 8]


def test_alone_the_last_trajectory_is_played_only_as_far_as_needed(tmp_path: Path):
    one = progress(tmp_path, Quota(12, None))
    one.record(answer(one.next_task(), [10]))
    assert one.next_task().most == 2


def test_a_quota_of_steps_is_cut_by_index_not_by_who_came_first(tmp_path: Path):
    one = progress(tmp_path, Quota(12, None))
    first, second = one.next_task(), one.next_task()
    assert one.next_task() is None
    one.record(answer(second, [10]))
    assert one.next_task() is None
    one.record(answer(first, [7]))
    assert [kept.length for kept in one.kept()] == [7, 5]
    assert one.next_task() is None


def test_short_trajectories_are_followed_by_more(tmp_path: Path):
    one = progress(tmp_path, Quota(12, None))
    played = 0
    while (task := one.next_task()) is not None:
        one.record(answer(task, [3]))
        played += 1
    assert played == 4
    assert [kept.length for kept in one.kept()] == [3, 3, 3, 3]


def test_a_cut_trajectory_no_longer_ends_as_terminal(tmp_path: Path):
    one = progress(tmp_path, Quota(5, None))
    one.record(Answer("E+", 0, (3,), (True,), (0.0,)))
    one.record(Answer("E+", 1, (3,), (True,), (0.0,)))
    assert [(kept.length, kept.terminal) for kept in one.kept()] == [(3, True), (2, False)]


def test_a_gap_left_by_an_earlier_run_is_filled(tmp_path: Path):
    for first in (0, 4):
        write_part(part_path(tmp_path, 0, "E+", first, 1), [trajectory(3)])
    one = progress(tmp_path, Quota(200, None))
    one.resume()
    gap = []
    while (task := one.next_task()).first < 5:
        gap += range(task.first, task.first + task.count)
    assert gap == [1, 2, 3]


def test_parts_that_overlap_after_runs_of_several_sizes_count_once(tmp_path: Path):
    for first, count in ((0, 2), (1, 1), (2, 1)):
        whole = [trajectory(3, 100 * (first + n)) for n in range(count)]
        write_part(part_path(tmp_path, 0, "E+", first, count), whole)
    one = progress(tmp_path, Quota(None, 3))
    one.resume()
    assert one.next_task() is None
    starts = [
        read_trajectory(kept.part, kept.position, most=9, source="E+").steps.observations[0, 0]
        for kept in one.kept()
    ]
    assert starts == [0, 100, 200]


def test_a_damaged_part_is_played_again(tmp_path: Path):
    path = part_path(tmp_path, 0, "E+", 0, 1)
    write_part(path, [trajectory(10)])
    path.write_bytes(path.read_bytes()[:-3])
    one = progress(tmp_path, Quota(None, 1))
    one.resume()
    assert one.next_task().first == 0


def test_a_full_disk_is_named_and_leaves_no_part(tmp_path: Path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(EnvironmentFailure, match="the disk is full"):
        write_part(part_path(tmp_path, 0, "E+", 0, 1), [trajectory(10)])
    assert list(tmp_path.iterdir()) == []


def test_parts_give_back_what_was_written(tmp_path: Path):
    path = part_path(tmp_path, 0, "E+", 0, 1)
    write_part(path, [trajectory(3, 100), trajectory(5, 200, terminal=True)])
    index = read_index(path)
    assert (index.lengths, index.terminals) == ((3, 5), (False, True))
    second = read_trajectory(index, 1, most=99, source="E+")
    assert second.steps.observations[:, 0].tolist() == [200, 201, 202, 203, 204]
    assert second.steps.actions[0, 0] == 2000
    assert second.steps.rewards[0] == 20000
    assert second.final_observation.tolist() == [205]
    assert second.steps.terminals.tolist() == [False] * 4 + [True]


def test_a_cut_of_a_part_ends_with_the_next_observation_as_a_timeout(tmp_path: Path):
    path = part_path(tmp_path, 0, "E+", 0, 1)
    write_part(path, [trajectory(5, 200, terminal=True)])
    cut = read_trajectory(read_index(path), 0, most=2, source="E+")
    assert cut.final_observation.tolist() == [202]
    assert (cut.steps.terminals.any(), cut.steps.timeouts.tolist()) == (False, [False, True])
