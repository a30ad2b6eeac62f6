"""libhdf5 dies of a segmentation fault on a full disk; pubc says what happened instead."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from pubc import formats
from pubc.errors import EnvironmentFailure
from pubc.formats import ReadOptions, Selection
from pubc.formats.robomimic.robomimic_read import write_mask
from pubc.trajectory import Columns, TrajectorySet
from tests.formats.roundtrip import assert_same

FILES = {"d4rl": "s.hdf5", "minari": "s", "robomimic": "s.hdf5", "d3rlpy": "s.h5"}
FRESH = ReadOptions(cache=False)


def make_set(rows: int = 400) -> TrajectorySet:
    rng = np.random.Generator(np.random.Philox(1))
    timeouts = np.zeros(rows, dtype=bool)
    timeouts[19::20] = True
    return TrajectorySet.from_flat(
        Columns(
            observations=rng.normal(size=(rows, 5)),
            actions=rng.normal(size=(rows, 2)),
            rewards=rng.normal(size=rows),
            terminals=np.zeros(rows, dtype=bool),
            timeouts=timeouts,
        ),
        np.full(rows // 20, 20),
    )


class Failing:
    """Lets a number of writes through, then fails each one."""

    def __init__(self, good: int, error: BaseException) -> None:
        self.good, self.error, self.real, self.calls = good, error, os.pwrite, 0

    def __call__(self, handle: int, content: bytes, place: int) -> int:
        self.calls += 1
        if self.calls > self.good:
            raise self.error
        return self.real(handle, content, place)


@pytest.mark.parametrize("name", FILES)
def test_a_write_that_fails_at_any_moment_leaves_nothing_and_says_why(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trajectories = make_set()
    counter = Failing(10**9, OSError())
    monkeypatch.setattr(os, "pwrite", counter)
    formats.save(tmp_path / f"whole-{FILES[name]}", trajectories, format=name)
    whole = counter.calls
    assert whole > 3
    whole_files = {entry.name for entry in tmp_path.iterdir()}
    for good in sorted({0, 1, 2, whole // 3, whole // 2, whole - 2, whole - 1}):
        failing = Failing(good, OSError(errno.ENOSPC, "No space left on device"))
        monkeypatch.setattr(os, "pwrite", failing)
        with pytest.raises(EnvironmentFailure, match="the disk is full"):
            formats.save(tmp_path / FILES[name], trajectories, format=name)
        assert {entry.name for entry in tmp_path.iterdir()} == whole_files
    monkeypatch.setattr(os, "pwrite", counter.real)
    formats.save(tmp_path / FILES[name], trajectories, format=name)
    assert_same(trajectories, formats.read(tmp_path / FILES[name], FRESH))


def test_an_interrupt_between_two_writes_is_raised_as_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(os, "pwrite", Failing(3, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        formats.save(tmp_path / "s.hdf5", make_set())
    assert list(tmp_path.iterdir()) == []


def test_a_large_set_stops_at_the_block_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    failing = Failing(1, OSError(errno.EDQUOT, "Disk quota exceeded"))
    monkeypatch.setattr(os, "pwrite", failing)
    with pytest.raises(EnvironmentFailure, match="quota"):
        formats.save(tmp_path / "s.hdf5", make_set(400_000))
    assert failing.calls == 2


# In a process of its own, with the operating system's own refusal.
LIMITED = """
import resource, signal, sys
from pathlib import Path
from pubc import formats
from pubc.errors import EnvironmentFailure
from tests.formats.hdf5.test_hdf5_disk import FILES, make_set

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
for limit in (100, 3000, 9000):
    for name, file in FILES.items():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
        try:
            formats.save(Path(sys.argv[1]) / name / file, make_set(), format=name)
            print("written")
        except EnvironmentFailure:
            print("refused")
"""


def test_a_limit_of_the_system_is_told_and_the_process_lives(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["refused"] * 12
    assert [entry for entry in tmp_path.rglob("*") if entry.is_file()] == []


def test_adding_a_mask_on_a_full_disk_leaves_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    source = tmp_path / "a.hdf5"
    formats.save(source, make_set(), format="robomimic")
    monkeypatch.setattr(os, "pwrite", Failing(0, OSError(errno.ENOSPC, "full")))
    with pytest.raises(EnvironmentFailure, match="the disk is full"):
        write_mask(Selection(source, np.array([1]), FRESH), tmp_path / "b.hdf5")
    assert {entry.name for entry in tmp_path.iterdir()} == {"a.hdf5", "a.hdf5.manifest.json"}


def test_equal_sets_give_equal_files(tmp_path: Path):
    for name, file in FILES.items():
        for folder in ("one", "two"):
            formats.save(tmp_path / folder / name / file, make_set(), format=name)
    one, two = (sorted((tmp_path / f).rglob("*.h*5")) for f in ("one", "two"))
    assert len(one) == len(FILES)
    assert [f.read_bytes() for f in one] == [f.read_bytes() for f in two]
    assert all(h5py.is_hdf5(file) for file in one)
