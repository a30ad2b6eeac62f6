import json
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from pubc import formats
from pubc.errors import DataError
from pubc.formats import ReadOptions
from pubc.trajectory import Columns, TrajectorySet
from tests.formats.roundtrip import assert_same, assert_same_bits

FRESH = ReadOptions(cache=False)


def make_set(dtype: str = "f4") -> TrajectorySet:
    rows = np.arange(12)
    terminals = np.zeros(12, dtype=bool)
    terminals[4] = True
    timeouts = np.zeros(12, dtype=bool)
    timeouts[6] = True
    return TrajectorySet.from_flat(
        Columns(
            observations=np.stack([rows, rows / 3], 1).astype(dtype),
            actions=np.stack([-rows, rows * 0.5, rows], 1).astype(dtype),
            rewards=(rows * 0.25).astype(dtype),
            terminals=terminals,
            timeouts=timeouts,
        ),
        [5, 2, 5],
        ids=["a", "b", "c"],
        sources=np.array(["x", "y", "x"]),
    )


# In a process of its own: importing d3rlpy changes torch's defaults, warns and takes seconds.
FRIEND = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from d3rlpy.dataset import Episode, InfiniteBuffer, ReplayBuffer

def load(path):
    with open(path, "rb") as file:
        buffer = ReplayBuffer.load(file, InfiniteBuffer())
    return {
        "transitions": buffer.transition_count,
        "episodes": [
            [e.observations.tolist(), e.actions.tolist(), e.rewards.tolist(), bool(e.terminated)]
            for e in buffer.episodes
        ],
    }

episodes = []
for number, length in enumerate((3, 5)):
    rows = (np.arange(length) + 100 * number).astype(np.float32)
    episodes.append(Episode(
        observations=np.stack([rows, rows / 3], 1),
        actions=np.stack([-rows], 1),
        rewards=rows[:, None] * 0.5,
        terminated=number == 0,
    ))
with open(sys.argv[1], "w+b") as file:
    ReplayBuffer(InfiniteBuffer(), episodes=episodes).dump(file)
print(json.dumps([load(path) for path in sys.argv[2:]]))
"""


@pytest.fixture(scope="module")
def friend(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict]]:
    """A file that d3rlpy dumped, and what it loaded from two files of ours."""
    folder = tmp_path_factory.mktemp("d3rlpy")
    for dtype in ("f4", "f8"):
        formats.save(folder / f"{dtype}.h5", make_set(dtype))
    files = [str(folder / name) for name in ("dumped.h5", "f4.h5", "f8.h5")]
    done = subprocess.run([sys.executable, "-c", FRIEND, *files], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "dumped.h5", json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize(("dtype", "number"), [("f4", 0), ("f8", 1)])
def test_a_written_file_loads_in_d3rlpy_with_equal_arrays(friend, dtype: str, number: int):
    loaded = friend[1][number]
    # d3rlpy leaves out the last step of an episode that did not terminate.
    assert loaded["transitions"] == 5 + 1 + 4
    for ours, theirs in zip(make_set(dtype), loaded["episodes"], strict=True):
        observations, actions, rewards, terminated = theirs
        assert np.array_equal(np.array(observations, dtype), ours.steps.observations)
        assert np.array_equal(np.array(actions, dtype), ours.steps.actions)
        assert np.array_equal(np.array(rewards, dtype)[:, 0], ours.steps.rewards)
        assert terminated == bool(ours.steps.terminals[-1])


def test_a_file_that_d3rlpy_dumped_is_read_as_it_is(friend):
    mine = formats.read(friend[0], FRESH)
    assert mine.lengths.tolist() == [3, 5]
    assert mine.ends().tolist() == ["terminal", "timeout"]
    rows = np.arange(5, dtype=np.float32) + 100
    assert_same_bits(np.stack([rows, rows / 3], 1), mine[1].steps.observations, "observations")
    assert_same_bits(-rows[:, None], mine[1].steps.actions, "actions")
    assert_same_bits(rows * np.float32(0.5), mine[1].steps.rewards, "rewards")


def test_version_one_cuts_at_episode_terminals(tmp_path: Path):
    path = tmp_path / "old.h5"
    rows = np.arange(7, dtype=np.float32)
    with h5py.File(path, "w") as file:
        file["observations"] = rows[:, None]
        file["actions"] = -rows[:, None]
        file["rewards"] = rows
        file["terminals"] = np.array([0, 0, 1, 0, 0, 0, 0], dtype=np.float32)
        file["episode_terminals"] = np.array([0, 0, 1, 0, 0, 0, 1], dtype=np.float32)
    mine = formats.read(path, FRESH)
    assert mine.lengths.tolist() == [3, 4]
    assert mine.ends().tolist() == ["terminal", "timeout"]
    assert mine[1].steps.observations[:, 0].tolist() == [3, 4, 5, 6]


def edit(path: Path, name: str, value: object) -> None:
    with h5py.File(path, "a") as file:
        if name in file:
            del file[name]
        if value is not None:
            file[name] = value


@pytest.mark.parametrize(
    ("changes", "code", "field"),
    [
        ({"version": "2.0"}, "bad_version", "version"),
        ({"num_episodes": 4}, "meta_conflict", "num_episodes"),
        ({"num_episodes": 1.5}, "bad_dtype", "num_episodes"),
        ({"terminated_1": 2}, "not_boolean", "terminated"),
        ({"terminated_1": None}, "missing_key", "terminated_1"),
        ({"rewards_2": np.zeros((3, 1), np.float32)}, "unequal_lengths", "rewards"),
        (
            {"observations_0": None, "observations_0_0": np.zeros(5), "observations_0_1": 1.0},
            "tuple_observation",
            "observations_0_0",
        ),
    ],
)
def test_a_broken_buffer_is_refused_by_name(tmp_path: Path, changes, code: str, field: str):
    path = tmp_path / "set.h5"
    formats.save(path, make_set())
    for name, value in changes.items():
        edit(path, name, value)
    with pytest.raises(DataError) as caught:
        formats.read(path, FRESH)
    assert (caught.value.code, caught.value.field) == (code, field)
    assert str(path) in str(caught.value)


def test_a_subset_is_bit_equal_to_the_source(tmp_path: Path):
    trajectories = make_set("f8")
    formats.save(tmp_path / "set.h5", trajectories)
    formats.save_subset(
        tmp_path / "set.h5", tmp_path / "kept.h5", trajectories, np.array([2, 0]), FRESH
    )
    assert_same(trajectories[[2, 0]], formats.read(tmp_path / "kept.h5", FRESH))
