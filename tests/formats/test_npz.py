"""One NumPy archive: what is read as it is, and what is written the same every time."""

import zipfile

import numpy as np
import pytest

from pubc import formats
from pubc.errors import DataError
from pubc.formats import ReadOptions
from tests.reliability import samples


def test_marks_that_are_all_zero_are_no_bomb(tmp_path):
    """They shrink a thousandfold, and every HalfCheetah set has them."""
    rows = 2_000_000
    arrays = {
        "observations": np.random.Generator(np.random.Philox(0))
        .normal(size=(rows, 1))
        .astype("f2"),
        "actions": np.arange(rows) % 7,
        "terminals": np.zeros(rows, bool),
        "timeouts": np.arange(rows) % 1000 == 999,
        "rewards": np.zeros(rows),
    }
    path = samples.npz(tmp_path, arrays, compressed=True)
    with zipfile.ZipFile(path) as archive:
        entry = archive.getinfo("rewards.npy")
        assert entry.file_size > 900 * entry.compress_size
    assert len(formats.read(path)) == 2000


def test_archives_of_other_tools_are_read(tmp_path):
    path = samples.npz(tmp_path)
    other = tmp_path / "other.npz"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w") as target:
        for name in reversed(source.namelist()):
            # Written as a stream: sizes follow the data instead of preceding it.
            with target.open(name, "w", force_zip64=name.startswith("a")) as entry:
                entry.write(source.read(name))
    np.testing.assert_array_equal(
        formats.read(other).columns.observations, formats.read(path).columns.observations
    )


def test_an_array_that_the_directory_forgot_is_missed(tmp_path):
    path = samples.npz(tmp_path)
    with zipfile.ZipFile(path, "a") as archive:
        del archive.filelist[2]
        archive._didModify = True
    with pytest.raises(DataError, match="belong to no array") as caught:
        formats.read(path)
    assert caught.value.code == "truncated"


def test_equal_sets_give_equal_bytes(tmp_path):
    for name in ("a.npz", "b.npz"):
        formats.save(tmp_path / name, samples.trajectories())
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_arrays_in_fortran_order_are_read_by_their_index(tmp_path):
    arrays = samples.flat()
    arrays["observations"] = np.asfortranarray(arrays["observations"])
    np.testing.assert_array_equal(
        formats.read(samples.npz(tmp_path, arrays)).columns.observations,
        samples.flat()["observations"],
    )


def test_keys_can_be_mapped_and_joined_in_the_order_given(tmp_path):
    arrays = samples.flat()
    arrays["pos"], arrays["vel"] = arrays["observations"][:, :2], arrays["observations"][:, 2]
    arrays["torque"] = arrays.pop("actions")
    del arrays["observations"]
    path = samples.npz(tmp_path, arrays)
    made = formats.read(path, ReadOptions(observation_keys=("vel", "pos"), action_key="torque"))
    np.testing.assert_array_equal(
        made.columns.observations, samples.flat()["observations"][:, [2, 0, 1]]
    )
    assert dict(made.columns.extras) == {}
