import json
import os
from pathlib import Path

import lmdb
import numpy as np
import pytest

from pubc import formats
from pubc.errors import DataError
from pubc.formats.opening.detect import detect
from pubc.formats.zarr.lmdb_pages import LmdbFile
from tests.formats.roundtrip import assert_aligned
from tests.formats.zarr_sets import trifinger_arrays, write_folder, write_lmdb, zarr_keys

OPTIONS = formats.ReadOptions(cache=False)


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    return trifinger_arrays()


def dataset(tmp_path: Path, arrays: dict[str, np.ndarray], **options) -> Path:
    return write_lmdb(tmp_path / "set.zarr", zarr_keys(arrays, **options))


def test_a_dataset_is_read_with_inclusive_ends_and_aligned(tmp_path, arrays):
    path = dataset(tmp_path, arrays)
    assert detect(path) == detect(path / "data.mdb") == "trifinger"
    for place in (path, path / "data.mdb"):
        read = formats.read(place, OPTIONS)
        assert read.lengths.tolist() == [4, 6, 5]
        assert read.ends().tolist() == ["timeout"] * 3
        assert not read.columns.terminals.any()
        assert_aligned(read)
        for name in ("observations", "actions", "rewards"):
            assert getattr(read.columns, name).tobytes() == arrays[name].tobytes()


def test_reading_leaves_no_file_behind(tmp_path, arrays):
    path = dataset(tmp_path, arrays)
    before = (path / "data.mdb").read_bytes()
    formats.read(path, OPTIONS)
    assert os.listdir(path) == ["data.mdb"]
    assert (path / "data.mdb").read_bytes() == before


def test_the_same_group_as_plain_files(tmp_path, arrays):
    path = write_folder(tmp_path / "set.zarr", zarr_keys(arrays))
    assert detect(path) == "trifinger"
    assert_aligned(formats.read(path, OPTIONS))


def test_observations_are_never_clipped(tmp_path, arrays):
    arrays["observations"][3, 2] = 1e6
    read = formats.read(dataset(tmp_path, arrays), OPTIONS)
    assert read.columns.observations[3, 2] == 1e6


def test_images_are_left_out_with_a_notice(tmp_path, arrays):
    arrays["images"] = np.zeros((4, 3, 8, 8), dtype=np.uint8)
    arrays["obs_to_image_index"] = np.arange(15)
    read = formats.read(dataset(tmp_path, arrays), OPTIONS)
    assert [p.field for p in read.problems if p.code == "image_left_out"] == [
        "images",
        "obs_to_image_index",
    ]
    assert not read.columns.extras


def test_steps_after_the_last_end_go_by_trailing(tmp_path, arrays):
    arrays["episode_ends"] = arrays["episode_ends"][:-1]
    path = dataset(tmp_path, arrays)
    assert formats.read(path, OPTIONS).lengths.tolist() == [4, 6, 5]
    dropped = formats.read(path, formats.ReadOptions(cache=False, trailing="drop"))
    assert dropped.lengths.tolist() == [4, 6]
    with pytest.raises(DataError, match="without an end mark") as caught:
        formats.read(path, formats.ReadOptions(cache=False, trailing="error"))
    assert caught.value.code == "unmarked_tail"


@pytest.mark.parametrize(
    ("ends", "code"),
    [
        (np.array([3, 9, 15]), "meta_conflict"),
        (np.array([9, 3, 14]), "bad_index"),
        (np.array([3.0, 9.0, 14.0]), "bad_dtype"),
    ],
)
def test_ends_that_contradict_the_data_are_refused(tmp_path, arrays, ends, code):
    arrays["episode_ends"] = ends
    with pytest.raises(DataError, match="episode_ends") as caught:
        formats.read(dataset(tmp_path, arrays), OPTIONS)
    assert caught.value.code == code


def test_timeouts_elsewhere_are_told(tmp_path, arrays):
    arrays["timeouts"][1] = True
    read = formats.read(dataset(tmp_path, arrays), OPTIONS)
    assert read.lengths.tolist() == [4, 6, 5]
    (problem,) = [p for p in read.problems if p.code == "timeouts_elsewhere"]
    assert problem.first == 1


def test_whole_numbers_where_fractions_belong_are_told(tmp_path, arrays):
    arrays["rewards"] = np.abs(arrays["rewards"]).astype(np.uint32)
    read = formats.read(dataset(tmp_path, arrays), OPTIONS)
    assert "odd_dtype" in {problem.code for problem in read.problems}


@pytest.mark.parametrize("choice", [{"reward_key": "torque"}, {"action_key": "torque"}], ids=str)
def test_a_key_that_is_not_there_is_named_with_those_there_are(tmp_path, arrays, choice):
    with pytest.raises(DataError, match=r"torque: no such array.*observations") as caught:
        formats.read(dataset(tmp_path, arrays), formats.ReadOptions(cache=False, **choice))
    assert caught.value.code == "missing_key"


def test_a_missing_array_is_named_with_those_there_are(tmp_path, arrays):
    del arrays["actions"]
    with pytest.raises(DataError, match=r"actions: no such array.*observations") as caught:
        formats.read(dataset(tmp_path, arrays), OPTIONS)
    assert caught.value.field == "actions"


def change(keys: dict[str, bytes], key: str, **changes) -> dict[str, bytes]:
    return keys | {key: json.dumps(json.loads(keys[key]) | changes).encode()}


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"compressor": {"id": "pickle"}}, "codec"),
        ({"filters": [{"id": "json2"}]}, "codec"),
        ({"filters": [{"id": "vlen-utf8"}]}, "codec"),
        ({"dtype": "|O"}, "bad_dtype"),
        ({"dtype": [["a", "<f4"]]}, "bad_dtype"),
        ({"shape": [10**12, 5]}, "bomb"),
        ({"shape": [2_000_000, 5], "chunks": [500_000, 5]}, "missing_file"),
        ({"chunks": [10**12, 5]}, "bomb"),
        ({"shape": [-1, 5]}, "bad_shape"),
        ({"shape": [True, 5]}, "bad_shape"),
        ({"chunks": [0, 5]}, "bad_shape"),
        ({"chunks": [5]}, "bad_shape"),
    ],
)
def test_a_hostile_description_is_refused_before_zarr_sees_it(tmp_path, arrays, changes, code):
    keys = change(zarr_keys(arrays), "observations/.zarray", **changes)
    with pytest.raises(DataError, match="observations") as caught:
        formats.read(write_lmdb(tmp_path / "set.zarr", keys), OPTIONS)
    assert caught.value.code == code


def test_a_missing_chunk_is_refused_or_filled_on_request(tmp_path, arrays):
    keys = zarr_keys(arrays)
    del keys["observations/1.0"]
    path = write_lmdb(tmp_path / "set.zarr", keys)
    with pytest.raises(DataError, match=r"1 of 3 chunks are missing, first 1\.0") as caught:
        formats.read(path, OPTIONS)
    assert caught.value.code == "missing_file"
    read = formats.read(path, formats.ReadOptions(cache=False, trust="data"))
    assert "missing_chunks" in {p.code for p in read.problems}


def test_a_truncated_chunk_is_refused(tmp_path, arrays):
    keys = zarr_keys(arrays)
    keys["observations/1.0"] = keys["observations/1.0"][:-3]
    with pytest.raises(DataError, match="observations") as caught:
        formats.read(write_lmdb(tmp_path / "set.zarr", keys), OPTIONS)
    assert caught.value.code == "bad_array"


def test_the_page_reader_agrees_with_the_library(tmp_path):
    """Small and large values, thousands of keys, deletions: every kind of page."""
    rng = np.random.Generator(np.random.Philox(3))
    keys = {f"k/{i:05d}": rng.bytes(int(rng.integers(0, 9000))) for i in range(3000)}
    environment = lmdb.open(str(tmp_path), map_size=1 << 28)
    with environment.begin(write=True) as transaction:
        for key, value in keys.items():
            transaction.put(key.encode(), value)
    with environment.begin(write=True) as transaction:
        for key in list(keys)[::3]:
            transaction.delete(key.encode())
            del keys[key]
    environment.close()
    with LmdbFile(tmp_path / "data.mdb") as file:
        assert sorted(file.names()) == sorted(keys)
        for key, value in keys.items():
            assert file.size(key) == len(value)
            assert file.read(key) == value


def test_an_empty_database_has_no_names(tmp_path):
    lmdb.open(str(tmp_path), map_size=1 << 20).close()
    with LmdbFile(tmp_path / "data.mdb") as file:
        assert not file.names()


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.9, 0.999])
def test_a_truncated_file_is_refused(tmp_path, arrays, share):
    path = dataset(tmp_path, arrays) / "data.mdb"
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(DataError) as caught:
        formats.read(path, formats.ReadOptions(cache=False, format="trifinger"))
    assert caught.value.code == "truncated"


def test_mutated_files_never_end_in_anything_but_a_data_error(tmp_path, arrays):
    path = dataset(tmp_path, arrays) / "data.mdb"
    whole = path.read_bytes()
    rng = np.random.Generator(np.random.Philox(11))
    refused = 0
    for _ in range(300):
        data = bytearray(whole)
        for place in rng.integers(0, len(data), 4):
            data[place] = int(rng.integers(256))
        path.write_bytes(data)
        try:
            with LmdbFile(path) as file:
                for name in file.names():
                    file.read(name)
        except DataError:
            refused += 1
    assert refused > 0
