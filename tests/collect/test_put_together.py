"""Putting a mixture together: one trajectory in memory at a time, whatever the size."""

import tracemalloc
from pathlib import Path

import numpy as np

from pubc.collect import Request, custom
from pubc.collect.finished_parts import part_path, write_part
from pubc.collect.put_together import assemble
from pubc.collect.source_quota import Quota, SourceProgress
from pubc.trajectory import Columns, Trajectory

SIZE, LENGTH, PARTS, PER_PART = 300, 200, 12, 5
RECIPE = custom("humanoid", {"E+": "humanoid/expert", "N": "noise"})
REQUEST = Request(RECIPE, None, PARTS * PER_PART, seed_steps=0)


def played(folder: Path) -> SourceProgress:
    """A source whose observations count through all its steps."""
    progress = SourceProgress("E+", 0, REQUEST.quota(1.0), LENGTH, folder)
    for first in range(0, PARTS * PER_PART, PER_PART):
        trajectories = []
        for index in range(first, first + PER_PART):
            rows = index * LENGTH + np.arange(LENGTH + 1, dtype=np.float32)
            observations = np.repeat(rows[:, None], SIZE, axis=1)
            flags = np.zeros((2, LENGTH), dtype=np.bool_)
            flags[1, -1] = True
            steps = Columns(observations[:-1], observations[:-1, :2], rows[:-1], flags[0], flags[1])
            trajectories.append(Trajectory("x", steps, observations[-1], "E+"))
        write_part(part_path(folder, 0, "E+", first, PER_PART), trajectories)
    progress.resume()
    return progress


def test_a_mixture_is_assembled_without_holding_it(tmp_path: Path):
    progress = played(tmp_path)
    assemble(REQUEST, [played(tmp_path)], tmp_path, {})  # what is loaded once is not counted
    tracemalloc.start()
    mixed, _ = assemble(REQUEST, [progress], tmp_path, {})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    size = mixed.steps * (SIZE + 3) * 4
    assert size == 2 * PARTS * PER_PART * LENGTH * (SIZE + 3) * 4
    assert peak < size / 10


def test_every_trajectory_is_there_once_and_whole(tmp_path: Path):
    mixed, _ = assemble(REQUEST, [played(tmp_path)], tmp_path, {})
    expert = mixed[mixed.sources == "E+"]
    firsts = sorted(int(one.steps.observations[0, 0]) for one in expert)
    assert firsts == [index * LENGTH for index in range(PARTS * PER_PART)]
    for one in expert:
        rows = one.steps.observations[:, 0]
        assert np.array_equal(np.diff(rows), np.ones(LENGTH - 1))
        assert one.final_observation[0] == rows[-1] + 1
        assert np.array_equal(one.steps.rewards, rows)


def test_noise_follows_a_quota_of_steps(tmp_path: Path):
    request = Request(RECIPE, 450, seed_steps=0)
    progress = played(tmp_path)
    progress.quota = Quota(450, None)
    mixed, _ = assemble(request, [progress], tmp_path, {})
    noise = mixed[mixed.sources == "N"]
    assert noise.steps == 450
    assert sorted(noise.lengths.tolist()) == [50, 200, 200]
