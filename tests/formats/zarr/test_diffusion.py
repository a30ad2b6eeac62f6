import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
import zarr

from pubc import formats
from pubc.errors import DataError
from pubc.formats.core.findings import Findings
from pubc.formats.opening.detect import detect
from pubc.formats.zarr import diffusion
from tests.formats.roundtrip import assert_aligned, keys_of
from tests.formats.zarr_sets import diffusion_arrays, write_folder, zarr_keys

OPTIONS = formats.ReadOptions(cache=False)


def zipped(path: Path, keys: dict[str, bytes], kind: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as archive:
        for key, value in keys.items():
            archive.writestr(key, value)
    return path


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    return diffusion_arrays()


@pytest.mark.parametrize("kind", ["folder", "zip"])
def test_a_buffer_is_read_with_exclusive_ends_and_aligned(tmp_path, arrays, kind):
    keys = zarr_keys(arrays)
    path = (
        write_folder(tmp_path / "set.zarr", keys)
        if kind == "folder"
        else zipped(tmp_path / "set.zarr.zip", keys)
    )
    assert detect(path) == "diffusion"
    read = formats.read(path, OPTIONS)
    assert read.lengths.tolist() == [4, 6, 5]
    assert read.ends().tolist() == ["unmarked"] * 3
    assert read.columns.rewards is None
    assert keys_of(read) == ["state"]
    assert_aligned(read)
    assert sorted(p.name for p in tmp_path.iterdir()) == [path.name]


def test_zarr_version_three_is_read_too(tmp_path, arrays):
    group = zarr.open_group(tmp_path / "set.zarr", mode="w", zarr_format=3)
    for name, values in arrays.items():
        group.create_array(name, data=values, chunks=(4, *values.shape[1:]))
    assert detect(tmp_path / "set.zarr") == "diffusion"
    assert_aligned(formats.read(tmp_path / "set.zarr", OPTIONS))


def test_without_a_state_all_vectors_are_observed_and_images_left_out(tmp_path, arrays):
    arrays["data/a_eef"] = arrays.pop("data/state")
    arrays["data/z_gripper"] = np.arange(30, dtype=np.float64).reshape(15, 2)
    arrays["data/camera"] = np.zeros((15, 4, 4, 3), dtype=np.uint8)
    arrays["data/timestamp"] = np.arange(15, dtype=np.float64)
    read = formats.read(write_folder(tmp_path / "set.zarr", zarr_keys(arrays)), OPTIONS)
    assert keys_of(read) == ["a_eef", "z_gripper"]
    assert read.columns.observations.shape == (15, 7)
    assert list(read.columns.extras) == ["timestamp"]
    assert_aligned(read)
    assert {p.code for p in read.problems} >= {"image_left_out", "observation_keys"}


def test_a_named_array_of_more_axes_is_flattened(tmp_path, arrays):
    arrays["data/keypoint"] = arrays["data/state"][:, :4].reshape(15, 2, 2)
    path = write_folder(tmp_path / "set.zarr", zarr_keys(arrays))
    keys = formats.ReadOptions(cache=False, observation_keys=("keypoint", "state"))
    assert formats.read(path, keys).columns.observations.shape == (15, 9)


def test_an_image_codec_is_no_obstacle_where_images_are_left_out(tmp_path, arrays):
    arrays["data/camera"] = np.zeros((15, 4, 4, 3), dtype=np.uint8)
    keys = zarr_keys(arrays)
    description = json.loads(keys["data/camera/.zarray"])
    description["compressor"] = {"id": "imagecodecs_jpegxl"}
    keys["data/camera/.zarray"] = json.dumps(description).encode()
    assert_aligned(formats.read(write_folder(tmp_path / "set.zarr", keys), OPTIONS))


@pytest.mark.parametrize(
    ("codec", "code"),
    [({"id": "pickle"}, "codec"), ({"id": "msgpack2"}, "codec"), ("pickle", "codec")],
)
def test_a_codec_off_the_list_is_refused(tmp_path, arrays, codec, code):
    keys = zarr_keys(arrays)
    description = json.loads(keys["data/action/.zarray"]) | {"compressor": codec}
    keys["data/action/.zarray"] = json.dumps(description).encode()
    with pytest.raises(DataError, match="data/action") as caught:
        formats.read(write_folder(tmp_path / "set.zarr", keys), OPTIONS)
    assert caught.value.code == code


def test_a_zip_that_grows_a_millionfold_is_refused(tmp_path, arrays):
    keys = zarr_keys(arrays)
    keys["data/action/0.0"] = bytes(100 << 20)
    path = zipped(tmp_path / "set.zarr.zip", keys, zipfile.ZIP_DEFLATED)
    with pytest.raises(DataError, match="data/action") as caught:
        formats.read(path, OPTIONS)
    assert caught.value.code in ("bomb", "bad_array")


@pytest.mark.parametrize("name", ["zstd", "lz4", "blosc", "zlib", "gzip"])
def test_a_chunk_that_unpacks_to_more_than_a_chunk_is_refused(tmp_path, arrays, name):
    import numcodecs

    codec = {
        "zstd": numcodecs.Zstd(),
        "lz4": numcodecs.LZ4(),
        "blosc": numcodecs.Blosc(),
        "zlib": numcodecs.Zlib(),
        "gzip": numcodecs.GZip(),
    }[name]
    keys = zarr_keys(arrays, compressors=codec)
    path = write_folder(tmp_path / "good.zarr", keys)
    assert_aligned(formats.read(path, OPTIONS))
    keys["data/action/0.0"] = bytes(codec.encode(bytes(8 << 20)))
    with pytest.raises(DataError, match="data/action") as caught:
        formats.read(write_folder(tmp_path / "bad.zarr", keys), OPTIONS)
    assert caught.value.code == "bomb"


def test_a_truncated_zip_is_refused(tmp_path, arrays):
    path = zipped(tmp_path / "set.zarr.zip", zarr_keys(arrays))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataError) as caught:
        formats.read(path, OPTIONS)
    assert caught.value.code == "truncated"


def test_a_link_in_the_folder_is_refused(tmp_path, arrays):
    path = write_folder(tmp_path / "set.zarr", zarr_keys(arrays))
    (tmp_path / "elsewhere").write_bytes((path / "data/action/0.0").read_bytes())
    (path / "data/action/0.0").unlink()
    (path / "data/action/0.0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError) as caught:
        diffusion.read(path, OPTIONS, Findings(path))
    assert caught.value.code == "link"


def test_a_group_without_ends_is_refused(tmp_path, arrays):
    del arrays["meta/episode_ends"]
    with pytest.raises(DataError, match="meta/episode_ends: no such array"):
        formats.read(write_folder(tmp_path / "set.zarr", zarr_keys(arrays)), OPTIONS)


def test_empty_trajectories_are_dropped_and_the_others_keep_their_ids(tmp_path, arrays):
    arrays["meta/episode_ends"] = np.array([4, 4, 10, 15])
    read = formats.read(write_folder(tmp_path / "set.zarr", zarr_keys(arrays)), OPTIONS)
    assert read.ids.tolist() == ["0", "2", "3"]
    assert_aligned(read)
