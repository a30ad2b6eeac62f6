"""A copy in the cache is believed only where it is ours and unchanged (L5)."""

import os
import shutil

import numpy as np
import pytest

from pubc.formats import ReadOptions
from pubc.formats.opening import cached_copies, trusted_copies
from pubc.formats.opening.open_dataset import open_dataset
from pubc.formats.opening.trusted_copies import fault_in_copy
from tests.reliability import samples

OPTIONS = ReadOptions()


@pytest.fixture
def dataset(tmp_path):
    path = samples.SAMPLES["minari"](tmp_path)
    open_dataset(path, OPTIONS)
    return path


@pytest.fixture
def copy(dataset):
    (found,) = cached_copies.copies()
    return found.path


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    monkeypatch.setattr(trusted_copies, "_believed", set())


def edit(path, offset: int = -4) -> None:
    """Change one number, and leave size and time of the file as they were."""
    stat = path.stat()
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_an_edited_number_is_found_and_the_copy_made_again(dataset, copy):
    truth = np.array(open_dataset(dataset, ReadOptions(cache=False)).trajectories.columns.actions)
    edit(copy / "actions.npy")
    again = open_dataset(dataset, OPTIONS)
    assert not again.cached
    np.testing.assert_array_equal(again.trajectories.columns.actions, truth)
    (notice,) = [p for p in again.trajectories.problems if p.code == "cache_rebuilt"]
    assert "actions.npy" in notice.message
    third = open_dataset(dataset, OPTIONS)
    assert third.cached
    np.testing.assert_array_equal(third.trajectories.columns.actions, truth)
    assert not [p for p in third.trajectories.problems if p.code == "cache_rebuilt"]


def test_a_copy_of_another_user_is_not_used(dataset, copy, monkeypatch):
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    assert "belongs to another user" in fault_in_copy(copy)
    assert not open_dataset(dataset, OPTIONS).cached


def test_a_process_looks_once_unless_asked_to_look_again(dataset, copy):
    assert open_dataset(dataset, OPTIONS).cached
    edit(copy / "actions.npy")
    assert open_dataset(dataset, OPTIONS).cached
    assert not open_dataset(dataset, ReadOptions(verify=True)).cached


def test_large_files_are_looked_at_in_blocks(dataset, monkeypatch):
    monkeypatch.setattr(trusted_copies, "WHOLE", 150)
    monkeypatch.setattr(cached_copies, "WHOLE", 150)
    monkeypatch.setattr(trusted_copies, "BLOCK", 8)
    cached_copies.clear()
    open_dataset(dataset, OPTIONS)
    (copy,) = [found.path for found in cached_copies.copies()]
    assert fault_in_copy(copy) is None
    trusted_copies._believed.clear()
    edit(copy / "actions.npy", 0)
    assert "a part of it" in fault_in_copy(copy)
    edit(copy / "actions.npy", 0)
    # Every block has its turn as processes come and go.
    found = 0
    edit(copy / "actions.npy", 100)
    for pid in range(40):
        monkeypatch.setattr(os, "getpid", lambda pid=pid: pid)
        trusted_copies._believed.clear()
        found += fault_in_copy(copy) is not None
    assert found > 0
    assert "actions.npy" in fault_in_copy(copy, everything=True)


@pytest.mark.parametrize("how", ["moved", "linked"])
@pytest.mark.parametrize("verify", [False, True])
def test_the_copy_of_another_dataset_is_not_used(dataset, copy, tmp_path, how, verify):
    (tmp_path / "elsewhere").mkdir()
    other = samples.SAMPLES["minari"](tmp_path / "elsewhere")
    open_dataset(other, OPTIONS)
    (second,) = [found.path for found in cached_copies.copies() if found.path != copy]
    if how == "moved":
        copy.rename(tmp_path / "first")
        second.rename(copy)
        (tmp_path / "first").rename(second)
    else:
        shutil.rmtree(copy)
        copy.symlink_to(second)
    opened = open_dataset(dataset, ReadOptions(verify=verify))
    assert not opened.cached
    (notice,) = [p for p in opened.trajectories.problems if p.code == "cache_rebuilt"]
    assert "copy of another dataset" in notice.message
