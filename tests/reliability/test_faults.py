"""A write that fails half way leaves the old result or the new one (L3, L4, R4)."""

import sys

import pytest

from pubc.cli.main import main
from tests.reliability import samples
from tests.reliability.fault_points import HOWS
from tests.reliability.faults import Scene, Tally, Worker, fail_everywhere

FEW = 6
"""Points of each command and way in the quick suite; all of them in `make check-full`."""


@pytest.fixture(scope="module")
def worker():
    made = Worker("pubc.cli.parsing", "pubc.formats.npz", "pubc.formats.store")
    yield made
    made.close()


def convert(suffix: str, *, force: bool):
    def build(folder) -> Scene:
        source = samples.npz(folder)
        words = ("convert", "set.npz", f"out{suffix}")
        if force:
            other = samples.flat()
            other["observations"] = other["observations"] + 1
            (folder / "other").mkdir()
            earlier = samples.npz(folder / "other", other)
            assert main(["convert", str(earlier), str(folder / f"out{suffix}")]) == 0
            words += ("--force",)
        assert source.exists()
        return Scene(folder, words, (f"out{suffix}",))

    return build


SCENES = {
    "convert to npz": convert(".npz", force=False),
    "convert to npz again": convert(".npz", force=True),
    "convert to hdf5 again": convert(".hdf5", force=True),
    "convert to a store again": convert(".store", force=True),
}


def check(tally: Tally, name: str) -> None:
    sys.stdout.write(f"{name}: {tally}\n")  # `pytest -rP` shows it
    assert tally.wrong == []
    assert tally.tried


@pytest.mark.parametrize("name", SCENES)
def test_a_few_failed_writes_leave_the_old_result_or_the_new(name, worker, tmp_path):
    (tmp_path / "before").mkdir()
    scene = SCENES[name](tmp_path / "before")
    check(fail_everywhere(worker, scene, tmp_path, HOWS, FEW), name)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", SCENES)
def test_every_failed_write_leaves_the_old_result_or_the_new(name, worker, tmp_path):
    (tmp_path / "before").mkdir()
    scene = SCENES[name](tmp_path / "before")
    check(fail_everywhere(worker, scene, tmp_path, HOWS), name)
