import json
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import given, settings

from pubc import formats
from pubc.errors import DataError
from pubc.formats import ReadOptions, Selection
from pubc.formats.robomimic.robomimic_read import write_mask
from pubc.trajectory import TrajectorySet
from tests.formats.roundtrip import CASES, assert_same, assert_same_bits, trajectory_sets

FRESH = ReadOptions(cache=False)
NUMBERS = (0, 1, 2, 10, 11)


def make(path: Path, masks: dict[str, list[int]] | None = None, next_obs: bool = False) -> Path:
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["env_args"] = json.dumps({"env_name": "Lift", "type": 1, "env_kwargs": {}})
        total = 0
        for number in NUMBERS:
            length = 3 + number % 4
            rows = np.arange(length) + 100 * number
            demo = data.create_group(f"demo_{number}")
            demo.attrs["num_samples"] = length
            demo.attrs["model_file"] = "<mujoco/>"
            demo["actions"] = np.stack([rows, -rows], 1) / 1e4
            demo["rewards"] = rows * 0.0
            demo["dones"] = (np.arange(length) >= length - 2).astype(np.int64)
            demo["states"] = np.stack([rows] * 5, 1) / 3
            demo["obs/robot0_eef_pos"] = np.stack([rows, rows, rows], 1) / 7
            demo["obs/object"] = np.stack([rows, rows], 1) / 9
            demo["obs/agentview_image"] = np.zeros((length, 84, 84, 3), np.uint8)
            if next_obs:
                demo["next_obs/robot0_eef_pos"] = np.stack([rows + 1] * 3, 1) / 7
                demo["next_obs/object"] = np.stack([rows + 1] * 2, 1) / 9
            total += length
        data.attrs["total"] = total
        for name, members in (masks or {}).items():
            file[f"mask/{name}"] = np.array([f"demo_{n}".encode() for n in members], dtype="S")
    return path


QUALITY = {
    "worse": [0, 10],
    "okay": [1],
    "better": [2, 11],
    "worse_okay": [0, 1, 10],
    "worse_better": [0, 2, 10, 11],
    "okay_better": [1, 2, 11],
    "better_operator_1": [2],
    "better_operator_2": [11],
    "train": [0, 1, 2],
    "valid": [10, 11],
    "better_train": [2],
    "20_percent": [0],
}


def test_demonstrations_come_in_the_order_of_their_numbers(tmp_path: Path):
    mine = formats.read(make(tmp_path / "a.hdf5"), FRESH)
    assert mine.ids.tolist() == [f"demo_{n}" for n in NUMBERS]
    assert [t.steps.observations[0, 0] for t in mine] == [n * 100 / 9 for n in NUMBERS]
    assert mine.lengths.tolist() == [3 + n % 4 for n in NUMBERS]
    assert mine.metadata["env_args"]["env_name"] == "Lift"


def test_vectors_are_joined_in_a_recorded_order_and_pictures_left_out(tmp_path: Path):
    path = make(tmp_path / "a.hdf5")
    mine = formats.read(path, FRESH)
    assert [p["key"] for p in mine.metadata["observation_parts"]] == ["object", "robot0_eef_pos"]
    assert mine.observation_size == 5
    left = {p.field for p in mine.problems if p.code == "observation_left_out"}
    assert left == {"agentview_image"}
    assert set(mine.columns.extras) == {"states"}
    chosen = ReadOptions(cache=False, observation_keys=("robot0_eef_pos", "object"))
    assert formats.read(path, chosen)[0].steps.observations[1].tolist() == [1 / 7] * 3 + [1 / 9] * 2
    with pytest.raises(DataError, match="agentview_image"):
        formats.read(path, ReadOptions(cache=False, observation_keys=("agentview_image",)))


def test_a_demonstration_ends_at_its_last_step_however_many_are_done(tmp_path: Path):
    mine = formats.read(make(tmp_path / "a.hdf5"), FRESH)
    assert int(mine.columns.terminals.sum()) == len(mine)
    assert mine.ends().tolist() == ["terminal"] * 5
    assert "dones_inside" in [p.code for p in mine.problems]


def test_next_observations_give_the_final_one(tmp_path: Path):
    mine = formats.read(make(tmp_path / "a.hdf5", next_obs=True), FRESH)
    assert mine.has_final.all()
    last = 100 + 3 + 1  # demo_1 has the steps 100 … 103
    assert mine[1].final_observation.tolist() == [last / 9] * 2 + [last / 7] * 3


def test_quality_masks_are_the_sources(tmp_path: Path):
    mine = formats.read(make(tmp_path / "a.hdf5", QUALITY), FRESH)
    assert mine.sources.tolist() == ["worse", "okay", "better", "worse", "better"]
    assert "sources_from_masks" in [p.code for p in mine.problems]


@pytest.mark.parametrize(
    ("masks", "key", "expected"),
    [
        ({"train": [0, 1, 2], "valid": [10, 11]}, None, None),
        ({"20_percent": [0], "50_percent": [0, 1]}, None, None),
        ({"worse": [0], "better": [1]}, None, None),
        ({"a": [0, 1], "b": [2, 10, 11], "a_b": [0, 1, 2, 10, 11]}, None, list("aabbb")),
        ({"good": [0, 1], "bad": [2, 10, 11]}, None, ["good"] * 2 + ["bad"] * 3),
        (QUALITY, "better", ["other", "other", "better", "other", "better"]),
        (
            QUALITY,
            "better_operator",
            ["other", "other", "better_operator_1", "other", "better_operator_2"],
        ),
    ],
)
def test_masks_that_say_who_acted(tmp_path: Path, masks, key, expected):
    options = ReadOptions(cache=False, source_key=key)
    mine = formats.read(make(tmp_path / "a.hdf5", masks), options)
    assert (None if mine.sources is None else mine.sources.tolist()) == expected


def test_an_unknown_mask_is_refused_with_the_known_ones(tmp_path: Path):
    path = make(tmp_path / "a.hdf5", QUALITY)
    with pytest.raises(DataError, match="worse_okay") as caught:
        formats.read(path, ReadOptions(cache=False, source_key="operator_9"))
    assert caught.value.field == "mask/operator_9"


@pytest.mark.parametrize("place", ["data", "data/demo_2"])
def test_counts_that_disagree_are_refused_unless_the_data_are_trusted(tmp_path: Path, place: str):
    path = make(tmp_path / "a.hdf5")
    with h5py.File(path, "a") as file:
        file[place].attrs["total" if place == "data" else "num_samples"] = 999
    with pytest.raises(DataError, match="999") as caught:
        formats.read(path, FRESH)
    assert caught.value.code == "meta_conflict"
    mine = formats.read(path, ReadOptions(cache=False, trust="data"))
    assert [p.outcome for p in mine.problems if p.code == "meta_conflict"] == ["repaired"]


def check_layout(path: Path) -> None:
    """The rules that robomimic's own loader and dataset check hold a file to."""
    with h5py.File(path, "r") as file:
        demos = sorted(file["data"], key=lambda name: int(name[5:]))
        total = 0
        keys = None
        for demo in demos:
            group = file[f"data/{demo}"]
            length = group.attrs["num_samples"]
            assert length >= 1
            for name in ("actions", "rewards", "dones"):
                assert group[name].shape[0] == length
            assert group["actions"].ndim == 2
            here = {key: group["obs"][key].shape[1:] for key in group["obs"]}
            assert here
            assert all(len(group["obs"][key]) == length for key in here)
            if "next_obs" in group:
                assert {k: group["next_obs"][k].shape[1:] for k in group["next_obs"]} == here
                assert all(len(group["next_obs"][key]) == length for key in here)
            assert keys in (None, here)
            keys = here
            total += length
        assert file["data"].attrs["total"] == total
        for name in file.get("mask", {}):
            mask = file[f"mask/{name}"]
            assert mask.dtype.kind == "S"
            assert {word.decode("utf-8") for word in mask[:]} <= set(demos)


@settings(max_examples=25, deadline=None)
@given(trajectories=trajectory_sets(CASES["robomimic"]))
def test_a_written_file_keeps_the_rules_of_the_library(
    trajectories: TrajectorySet, tmp_path_factory: pytest.TempPathFactory
):
    path = tmp_path_factory.mktemp("robomimic") / "set.hdf5"
    formats.save(path, trajectories, format="robomimic")
    check_layout(path)
    with h5py.File(path, "r") as file:
        masks = {name.decode() for m in file.get("mask", {}).values() for name in m[:]}
        assert len(masks) == (0 if trajectories.sources is None else len(trajectories))


def test_observations_are_written_under_the_keys_they_came_from(tmp_path: Path):
    before = formats.read(make(tmp_path / "a.hdf5", QUALITY, next_obs=True), FRESH)
    formats.save(tmp_path / "b.hdf5", before, format="robomimic")
    check_layout(tmp_path / "b.hdf5")
    with h5py.File(tmp_path / "b.hdf5", "r") as file:
        assert list(file["data"].keys()) == ["demo_0", "demo_1", "demo_10", "demo_11", "demo_2"]
        assert sorted(file["data/demo_10/obs"]) == ["object", "robot0_eef_pos"]
        assert sorted(file["mask"]) == ["better", "okay", "worse"]
        assert json.loads(file["data"].attrs["env_args"])["env_name"] == "Lift"
    assert_same(before, formats.read(tmp_path / "b.hdf5", FRESH))


def test_a_subset_copies_demonstrations_whole_and_under_their_names(tmp_path: Path):
    path = make(tmp_path / "a.hdf5", QUALITY)
    before = formats.read(path, FRESH)
    formats.save_subset(path, tmp_path / "b.hdf5", before, np.array([3, 1]), FRESH)
    check_layout(tmp_path / "b.hdf5")
    with h5py.File(path, "r") as old, h5py.File(tmp_path / "b.hdf5", "r") as new:
        assert sorted(new["data"]) == ["demo_1", "demo_10"]
        assert new["data"].attrs["env_args"] == old["data"].attrs["env_args"]
        for demo in new["data"]:
            assert new[f"data/{demo}"].attrs["model_file"] == "<mujoco/>"
            for name in ("actions", "states", "obs/agentview_image"):
                assert_same_bits(old[f"data/{demo}/{name}"][:], new[f"data/{demo}/{name}"][:], name)
        assert new["mask/worse_okay"][:].tolist() == [b"demo_1", b"demo_10"]
        assert "better" not in new["mask"]
    after = formats.read(tmp_path / "b.hdf5", FRESH)
    assert after.ids.tolist() == ["demo_1", "demo_10"]


def test_a_subset_of_a_written_file_keeps_what_pubc_wrote(tmp_path: Path):
    before = formats.read(make(tmp_path / "a.hdf5", QUALITY), FRESH)[[4, 0, 2]]
    formats.save(tmp_path / "b.hdf5", before, format="robomimic")
    whole = formats.read(tmp_path / "b.hdf5", FRESH)
    formats.save_subset(tmp_path / "b.hdf5", tmp_path / "c.hdf5", whole, np.array([0, 2]), FRESH)
    assert_same(before[[0, 2]], formats.read(tmp_path / "c.hdf5", FRESH))


def test_a_mask_is_added_to_a_copy_and_the_source_stays(tmp_path: Path):
    path = make(tmp_path / "a.hdf5", QUALITY)
    bytes_before = path.read_bytes()
    write_mask(Selection(path, np.array([4, 1]), FRESH), tmp_path / "b.hdf5")
    assert path.read_bytes() == bytes_before
    check_layout(tmp_path / "b.hdf5")
    with h5py.File(tmp_path / "b.hdf5", "r") as file:
        assert file["mask/pubc_keep"].dtype.kind == "S"
        assert file["mask/pubc_keep"][:].tolist() == [b"demo_1", b"demo_11"]
        assert sorted(file["mask"]) == sorted([*QUALITY, "pubc_keep"])
    after = formats.read(tmp_path / "b.hdf5", FRESH)
    assert_same(formats.read(path, FRESH), after)
