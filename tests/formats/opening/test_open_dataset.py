"""The second opening of a slow format comes from a copy; a changed dataset never does."""

import os
from pathlib import Path

import numpy as np
import pytest

from pubc.errors import EnvironmentFailure, UnknownNameError, UsageError
from pubc.formats import ReadOptions
from pubc.formats.opening import cached_copies as kept
from pubc.formats.opening.open_dataset import open_dataset
from tests.reliability import samples

OPTIONS = ReadOptions()


def copies() -> list[Path]:
    return sorted(copy.path for copy in kept.copies())


@pytest.mark.parametrize("isolate", ["off", "on"])
def test_the_second_opening_is_cached_and_the_same(tmp_path, isolate):
    path = samples.SAMPLES["minari"](tmp_path)
    options = ReadOptions(isolate=isolate)
    first, second = open_dataset(path, options), open_dataset(path, options)
    assert (first.cached, second.cached) == (False, True)
    assert first.format == second.format == "minari"
    assert len(copies()) == 1
    for name, column in first.trajectories.columns.named():
        np.testing.assert_array_equal(dict(second.trajectories.columns.named())[name], column)
    assert second.trajectories.problems == first.trajectories.problems
    assert open_dataset(path, ReadOptions(isolate="auto")).cached


def test_a_changed_dataset_or_option_is_read_anew(tmp_path):
    path = samples.SAMPLES["minari"](tmp_path)
    open_dataset(path, OPTIONS)
    assert not open_dataset(path, ReadOptions(trailing="drop")).cached
    file = next(path.rglob("*.hdf5"))
    stat = file.stat()
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    assert not open_dataset(path, OPTIONS).cached


def test_no_cache_leaves_no_copy(tmp_path):
    path = samples.SAMPLES["minari"](tmp_path)
    for _ in range(2):
        assert not open_dataset(path, ReadOptions(cache=False)).cached
    assert copies() == []


def test_a_damaged_copy_is_replaced(tmp_path):
    path = samples.SAMPLES["minari"](tmp_path)
    open_dataset(path, OPTIONS)
    (copies()[0] / "lengths.npy").write_bytes(b"damaged")
    assert not open_dataset(path, OPTIONS).cached
    assert open_dataset(path, OPTIONS).cached


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("PUBC_CACHE", str(tmp_path / "file"))
    path = samples.SAMPLES["minari"](tmp_path)
    for isolate in ("off", "on"):
        assert len(open_dataset(path, ReadOptions(isolate=isolate)).trajectories) == 3


def test_fast_formats_are_not_copied(tmp_path):
    open_dataset(samples.d4rl(tmp_path), OPTIONS)
    open_dataset(samples.npz(tmp_path), ReadOptions(isolate="auto"))
    assert copies() == []


def test_a_path_that_is_not_there_or_not_ours_is_told(tmp_path, monkeypatch):
    with pytest.raises(UsageError, match="does not exist"):
        open_dataset(tmp_path / "nothing", OPTIONS)
    with pytest.raises(EnvironmentFailure, match="File name too long"):
        open_dataset(tmp_path / ("x" * 300), OPTIONS)
    with pytest.raises(UnknownNameError, match=r"No format named 'd4lr'. Did you mean 'd4rl'"):
        open_dataset(samples.npz(tmp_path), ReadOptions(format="d4lr"))


def test_no_copy_is_put_into_the_dataset_itself(tmp_path, monkeypatch):
    path = samples.SAMPLES["minari"](tmp_path).rename(tmp_path / "datasets")
    monkeypatch.setenv("PUBC_CACHE", str(tmp_path))
    before = sorted(path.rglob("*"))
    assert not open_dataset(path, OPTIONS).cached
    assert not open_dataset(path, OPTIONS).cached
    assert sorted(path.rglob("*")) == before
