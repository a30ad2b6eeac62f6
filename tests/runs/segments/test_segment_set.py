"""Segments keep their place in every format, and end as they should."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.errors import UsageError
from pubc.runs.segments.segment_set import check_segment_options, cut_segments
from pubc.trajectory import Columns, TrajectorySet

NOBODY = np.zeros(2, dtype=bool)


def data() -> tuple[TrajectorySet, np.ndarray]:
    """Two trajectories of 20 steps whose states and actions count the steps."""
    count = np.arange(40, dtype=np.float32)
    terminals, timeouts = np.zeros((2, 40), dtype=bool)
    terminals[19], timeouts[39] = True, True
    mixed = TrajectorySet.from_flat(
        Columns(
            np.stack([count, -count], 1), np.stack([count / 40, count / 80], 1), count,
            terminals, timeouts,
        ),
        [20, 20],
        ids=["one", "two"],
        final_observations=np.array([[100, -100], [200, -200]], dtype=np.float32),
        has_final=np.array([True, True]),
    )  # fmt: skip
    confidence = np.full(40, 0.9, dtype=np.float32)
    confidence[8:12] = 0.1
    confidence[35:] = 0.2
    return mixed, confidence


def cut(**more) -> TrajectorySet:
    mixed, confidence = data()
    made = cut_segments(mixed, confidence, NOBODY, **{"shortest": 3, "margin": 1, **more})
    assert made is not None
    return made


def test_segments_say_where_they_come_from():
    made = cut()
    assert made.ids.tolist() == ["one#0-7", "one#13-20", "two#0-14"]
    assert made.metadata["segments"] == [["one", 0, 7], ["one", 13, 20], ["two", 0, 14]]
    assert made.lengths.tolist() == [7, 7, 14]


def test_a_segment_ends_by_timeout_unless_its_trajectory_ended_there():
    ends = [(bool(one.steps.terminals[-1]), bool(one.steps.timeouts[-1])) for one in cut()]
    assert ends == [(False, True), (True, False), (False, True)]
    inside = cut()[0].steps
    assert not (inside.terminals[:-1] | inside.timeouts[:-1]).any()


def test_the_observation_after_a_segment_comes_with_it():
    finals = [one.final_observation[0] for one in cut()]
    assert finals == [7, 100, 34]


def test_the_data_itself_is_not_touched():
    mixed, confidence = data()
    before = mixed.columns.timeouts.copy()
    cut_segments(mixed, confidence, NOBODY, shortest=3, margin=1)
    assert np.array_equal(mixed.columns.timeouts, before)


def test_nothing_is_taken_of_what_is_known_to_be_bad():
    mixed, confidence = data()
    made = cut_segments(mixed, confidence, np.array([True, False]), shortest=3, margin=1)
    assert made is not None
    assert made.ids.tolist() == ["two#0-14"]


def test_where_nothing_is_long_enough_one_sentence_says_so():
    mixed, confidence = data()
    said: list[str] = []
    made = cut_segments(mixed, confidence, NOBODY, shortest=30, margin=1, warn=said.append)
    assert made is None
    assert said == [
        "no segment of the expert has 30 steps (the longest has 14), so nothing is kept. Lower "
        "--min-segment, or look at the report."
    ]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((True, 0, 2, False), "--min-segment must be at least 1 step"),
        ((True, 5, -1, False), "--segment-margin cannot be negative"),
        ((False, 5, 2, True), "--drop-idle cuts trajectories, so it needs --segments"),
    ],
)
def test_impossible_options_are_refused(given, words):
    with pytest.raises(UsageError, match=words):
        check_segment_options(*given)


@pytest.mark.parametrize(
    "name",
    ["kept.npz", "kept.store", "kept.d4rl.hdf5", "kept.minari", "kept.robomimic.hdf5",
     "kept.lerobot", "kept.h5"],
)  # fmt: skip
def test_every_format_that_is_written_keeps_the_provenance(name: str, tmp_path: Path):
    formats = {"d4rl": "d4rl", "robomimic": "robomimic", "minari": "minari", "lerobot": "lerobot"}
    chosen = next((formats[word] for word in formats if word in name), None)
    chosen = "d3rlpy" if name.endswith(".h5") else chosen
    made = cut()
    pubc.save(tmp_path / name, made, format=chosen)
    again = pubc.load(tmp_path / name)
    flat, wanted = again.flat(), made.flat()
    assert again.lengths.tolist() == [7, 7, 14]
    assert np.array_equal(flat.observations, wanted.observations)
    assert flat.extras["source_step"].reshape(-1).tolist() == [
        *range(7),
        *range(13, 20),
        *range(14),
    ]
    assert flat.extras["source_trajectory"].reshape(-1).tolist() == [0] * 14 + [1] * 14
    assert [list(row) for row in again.metadata["segments"]] == made.metadata["segments"]
    assert np.array_equal(flat.timeouts, wanted.timeouts)
    assert np.array_equal(again.final_observations, made.final_observations)


def test_minari_and_robomimic_note_it_where_their_readers_look(tmp_path: Path):
    import h5py

    pubc.save(tmp_path / "kept.minari", cut(), format="minari")
    with h5py.File(tmp_path / "kept.minari" / "data" / "main_data.hdf5") as file:
        facts = dict(file["episode_1"].attrs)
    assert (facts["pubc_source_id"], facts["pubc_first_step"], facts["pubc_end_step"]) == (
        "one", 13, 20,
    )  # fmt: skip
    pubc.save(tmp_path / "kept.hdf5", cut(), format="robomimic")
    with h5py.File(tmp_path / "kept.hdf5") as file:
        assert file["data/demo_2"].attrs["pubc_source_id"] == "two"


def test_minari_itself_loads_segments(tmp_path: Path):
    minari = pytest.importorskip("minari")
    made = cut()
    pubc.save(tmp_path / "kept.minari", made, format="minari")
    theirs = list(minari.MinariDataset(tmp_path / "kept.minari" / "data").iterate_episodes())
    assert [len(episode.actions) for episode in theirs] == [7, 7, 14]
    flat = made.flat()
    # One observation more than actions: what came after the last step.
    seen = np.concatenate([episode.observations[:-1] for episode in theirs])
    assert np.array_equal(seen, flat.observations)
    assert np.array_equal(np.concatenate([one.actions for one in theirs]), flat.actions)
    assert [bool(episode.truncations[-1]) for episode in theirs] == [True, False, True]


LOADED = """
import json, sys
from d3rlpy.dataset import InfiniteBuffer, ReplayBuffer
with open(sys.argv[1], "rb") as file:
    buffer = ReplayBuffer.load(file, InfiniteBuffer())
print(json.dumps([
    [len(episode.actions), float(episode.observations[0][0]), bool(episode.terminated)]
    for episode in buffer.episodes
]))
"""


def test_d3rlpy_itself_loads_segments(tmp_path: Path):
    pytest.importorskip("d3rlpy")
    pubc.save(tmp_path / "kept.h5", cut(), format="d3rlpy")
    words = [sys.executable, "-W", "ignore", "-c", LOADED, str(tmp_path / "kept.h5")]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == [
        [7, 0.0, False], [7, 13.0, True], [14, 20.0, False],
    ]  # fmt: skip
