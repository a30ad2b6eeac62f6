import json
from pathlib import Path

import h5py
import minari
import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

from pubc import formats
from pubc.errors import DataError
from pubc.formats import ReadOptions
from pubc.trajectory import TrajectorySet
from tests.formats.roundtrip import CASES, assert_same, assert_same_bits, trajectory_sets

FRESH = ReadOptions(cache=False)
LENGTHS = (4, 1, 6)


def make(
    folder: Path,
    layout: str = "hdf5",
    observation: spaces.Space | None = None,
    values=None,
    infos=None,
) -> Path:
    """A dataset written by minari itself; the step number is in every observation."""
    observation = observation or spaces.Box(-np.inf, np.inf, (3,), np.float64)
    folder.mkdir()
    storage = MinariStorage.new(
        folder,
        observation_space=observation,
        action_space=spaces.Box(-1, 1, (2,), np.float32),
        data_format=layout,
        jpeg_encoding=False,
    )
    storage.update_metadata({"dataset_id": "test/made-v0", "minari_version": "0.5.4"})
    buffers = []
    for number, length in enumerate(LENGTHS):
        rows = np.arange(length + 1) + 100 * number
        buffers.append(
            EpisodeBuffer(
                seed=number + 7,
                options={"speed": 2},
                observations=values(rows) if values else np.stack([rows, rows, rows], 1) / 3,
                actions=np.stack([rows[:-1], -rows[:-1]], 1).astype(np.float32) / 1000,
                rewards=rows[:-1] * 0.5,
                terminations=rows[:-1] == rows[-2],
                truncations=np.zeros(length, dtype=bool),
                infos=infos(rows) if infos else None,
            )
        )
    storage.update_episodes(buffers)
    return folder


@pytest.mark.parametrize("layout", ["hdf5", "arrow", "parquet"])
def test_every_layout_that_minari_writes_is_read_with_equal_arrays(tmp_path: Path, layout: str):
    path = make(tmp_path / "set", layout)
    mine = formats.read(path, FRESH)
    theirs = list(minari.MinariDataset(path).iterate_episodes())
    assert len(mine) == len(theirs) == 3
    for ours, episode in zip(mine, theirs, strict=True):
        assert_same_bits(episode.observations[:-1], ours.steps.observations, "observations")
        assert_same_bits(episode.observations[-1], ours.final_observation, "final")
        assert_same_bits(episode.actions, ours.steps.actions, "actions")
        assert_same_bits(episode.rewards, ours.steps.rewards, "rewards")
        assert_same_bits(episode.terminations, ours.steps.terminals, "terminals")
        assert_same_bits(episode.truncations, ours.steps.timeouts, "timeouts")
    assert mine.metadata["dataset_id"] == "test/made-v0"
    assert mine.ids.tolist() == ["0", "1", "2"]


@settings(max_examples=15, deadline=None)
@given(trajectories=trajectory_sets(CASES["minari"]))
def test_a_written_set_loads_in_minari_with_equal_arrays(
    trajectories: TrajectorySet, tmp_path_factory: pytest.TempPathFactory
):
    path = tmp_path_factory.mktemp("minari") / "robot-v3"
    formats.save(path, trajectories, format="minari")
    dataset = minari.MinariDataset(path / "data")
    assert dataset.total_episodes == len(trajectories)
    assert dataset.total_steps == trajectories.steps
    assert dataset.spec.dataset_id == "robot-v3"
    for ours, episode in zip(trajectories, dataset.iterate_episodes(), strict=True):
        assert_same_bits(ours.steps.observations, episode.observations[:-1], "observations")
        assert_same_bits(ours.steps.actions, episode.actions, "actions")
        if ours.steps.rewards is not None:
            assert_same_bits(ours.steps.rewards, episode.rewards, "rewards")
        if ours.final_observation is not None:
            assert_same_bits(ours.final_observation, episode.observations[-1], "final")
        assert_same_bits(ours.steps.terminals, episode.terminations, "terminals")
        assert_same_bits(ours.steps.timeouts, episode.truncations, "timeouts")
        assert dataset.observation_space.contains(episode.observations[0])


DICT = spaces.Dict(
    {
        "goal": spaces.Box(-9, 9, (2,), np.float32),
        "state": spaces.Box(-np.inf, np.inf, (3,), np.float64),
        "camera": spaces.Box(0, 255, (32, 32, 3), np.uint8),
    }
)


def dict_values(rows: np.ndarray) -> dict:
    return {
        "goal": np.stack([rows, rows + 0.5], 1).astype(np.float32),
        "state": np.stack([rows, rows / 3, rows / 7], 1),
        "camera": np.zeros((len(rows), 32, 32, 3), np.uint8),
    }


@pytest.mark.parametrize("layout", ["hdf5", "arrow", "parquet"])
def test_dict_observations_are_joined_in_a_recorded_order(tmp_path: Path, layout: str):
    path = make(tmp_path / "set", layout, DICT, dict_values)
    mine = formats.read(path, FRESH)
    parts = mine.metadata["observation_parts"]
    assert [part["key"] for part in parts] == ["goal", "state"]
    assert mine.observation_size == 5
    assert mine[2].steps.observations[:, 0].tolist() == [200, 201, 202, 203, 204, 205]
    assert mine[2].final_observation.tolist() == [206, 206.5, 206, 206 / 3, 206 / 7]
    left = [p for p in mine.problems if p.code == "observation_left_out"]
    assert [p.field for p in left] == ["camera"]
    chosen = formats.read(path, ReadOptions(cache=False, observation_keys=("state",)))
    assert chosen.observation_size == 3
    with pytest.raises(DataError, match="nothing_such"):
        formats.read(path, ReadOptions(cache=False, observation_keys=("nothing_such",)))


def test_dict_observations_are_written_as_the_groups_they_came_from(tmp_path: Path):
    before = formats.read(make(tmp_path / "set", "hdf5", DICT, dict_values), FRESH)
    formats.save(tmp_path / "again", before, format="minari")
    episode = next(minari.MinariDataset(tmp_path / "again" / "data").iterate_episodes())
    assert sorted(episode.observations) == ["goal", "state"]
    assert episode.observations["goal"].dtype == np.float32
    assert_same(before, formats.read(tmp_path / "again", FRESH))


def test_tuple_observations_are_joined_by_position(tmp_path: Path):
    space = spaces.Tuple([spaces.Box(-9, 9, (1,), np.float32), spaces.Discrete(900)])
    path = make(
        tmp_path / "set", "hdf5", space, lambda rows: (rows[:, None].astype(np.float32), rows)
    )
    before = formats.read(path, FRESH)
    assert [p["key"] for p in before.metadata["observation_parts"]] == ["_index_0", "_index_1"]
    assert before[1].steps.observations.tolist() == [[100, 100]]


def test_pictures_alone_are_refused_with_the_flag_that_helps(tmp_path: Path):
    space = spaces.Dict({"camera": DICT["camera"]})
    path = make(
        tmp_path / "set", "hdf5", space, lambda rows: {"camera": dict_values(rows)["camera"]}
    )
    with pytest.raises(DataError, match="--observation-keys") as caught:
        formats.read(path, FRESH)
    assert caught.value.code == "no_vectors"


def test_infos_become_extras_without_the_row_of_the_final_observation(tmp_path: Path):
    path = make(
        tmp_path / "set",
        infos=lambda rows: {"qpos": np.stack([rows, -rows], 1), "deep": {"x": rows[:-1] * 1.0}},
    )
    mine = formats.read(path, FRESH)
    assert set(mine.columns.extras) == {"infos/qpos", "infos/deep/x"}
    assert mine[2].steps.extras["infos/qpos"][:, 0].tolist() == [200, 201, 202, 203, 204, 205]
    assert "extra_row_left_out" in [p.code for p in mine.problems]


def test_an_episode_without_its_final_observation_is_accepted_alone(tmp_path: Path):
    path = make(tmp_path / "set")
    with h5py.File(path / "main_data.hdf5", "a") as file:
        shorter = file["episode_0/observations"][:-1]
        del file["episode_0/observations"]
        file["episode_0/observations"] = shorter
    mine = formats.read(path, FRESH)
    assert mine.has_final.tolist() == [False, True, True]
    assert mine[0].steps.observations[:, 0].tolist() == [0, 1 / 3, 2 / 3, 1]
    assert mine[1].final_observation[0] == 101 / 3
    assert "no_final_observation" in [p.code for p in mine.problems]


@pytest.mark.parametrize(
    ("field", "cut"), [("observations", 2), ("rewards", 1), ("terminations", 1)]
)
def test_unequal_lengths_are_refused_with_the_episode(tmp_path: Path, field: str, cut: int):
    path = make(tmp_path / "set")
    with h5py.File(path / "main_data.hdf5", "a") as file:
        shorter = file[f"episode_2/{field}"][:-cut]
        del file[f"episode_2/{field}"]
        file[f"episode_2/{field}"] = shorter
    with pytest.raises(DataError, match="episode 2") as caught:
        formats.read(path, FRESH)
    assert (caught.value.code, caught.value.field) == ("unequal_lengths", field)
    assert caught.value.index == 2


def test_a_partial_copy_is_refused_unless_the_data_are_trusted(tmp_path: Path):
    path = make(tmp_path / "set")
    with h5py.File(path / "main_data.hdf5", "a") as file:
        del file["episode_1"]
    with pytest.raises(DataError, match="--trust data") as caught:
        formats.read(path, FRESH)
    assert caught.value.code == "meta_conflict"
    mine = formats.read(path, ReadOptions(cache=False, trust="data"))
    assert mine.ids.tolist() == ["0", "2"]
    assert [p.outcome for p in mine.problems if p.code == "meta_conflict"] == ["repaired"] * 2


def test_a_folder_its_data_folder_and_its_file_open_the_same_set(tmp_path: Path):
    (tmp_path / "made-v0").mkdir(parents=True)
    data = make(tmp_path / "made-v0" / "data")
    whole = formats.read(data.parent, FRESH)
    assert_same(whole, formats.read(data, FRESH))
    assert_same(whole, formats.read(data / "main_data.hdf5", FRESH))


def test_an_attribute_of_the_episodes_names_their_source(tmp_path: Path):
    path = make(tmp_path / "set")
    with h5py.File(path / "main_data.hdf5", "a") as file:
        for number, word in enumerate(["expert", "weak", "expert"]):
            file[f"episode_{number}"].attrs["policy"] = word
    mine = formats.read(path, ReadOptions(cache=False, source_key="policy"))
    assert mine.sources.tolist() == ["expert", "weak", "expert"]
    with pytest.raises(DataError, match="no episode has such an attribute"):
        formats.read(path, ReadOptions(cache=False, source_key="nobody"))


def test_the_environment_in_the_metadata_is_shown_and_never_built(tmp_path: Path):
    path = make(tmp_path / "set")
    about = json.loads((path / "metadata.json").read_text())
    spec = json.dumps({"id": "Evil-v0", "entry_point": "os:abort", "kwargs": {}})
    (path / "metadata.json").write_text(json.dumps({**about, "env_spec": spec}))
    assert formats.read(path, FRESH).metadata["env_spec"] == spec


@pytest.mark.parametrize("layout", ["hdf5", "arrow", "parquet"])
def test_a_subset_keeps_all_that_the_source_says_of_an_episode(tmp_path: Path, layout: str):
    path = make(tmp_path / "set", layout, DICT, dict_values)
    before = formats.read(path, FRESH)
    target = tmp_path / "kept"
    formats.save_subset(path, target, before, np.array([0, 2]), FRESH)
    after = formats.read(target, FRESH)
    assert after.ids.tolist() == ["0", "2"]
    for mine, theirs in zip(after, before[[0, 2]], strict=True):
        assert_same_bits(theirs.steps.observations, mine.steps.observations, "observations")
        assert_same_bits(theirs.steps.actions, mine.steps.actions, "actions")
    dataset = minari.MinariDataset(target / "data")
    episodes = list(dataset.iterate_episodes())
    assert [len(episode.rewards) for episode in episodes] == [4, 6]
    assert episodes[1].observations["camera"].shape == (7, 32, 32, 3)
    facts = list(dataset.storage.get_episode_metadata([0, 1]))
    assert [fact["seed"] for fact in facts] == [7, 9]
    assert [fact["options"]["speed"] for fact in facts] == [2, 2]
    assert dataset.total_steps == 10
