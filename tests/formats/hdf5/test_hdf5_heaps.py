"""Damaged text in an HDF5 file is told at once, where libhdf5 alone would loop for ever."""

import struct
import subprocess
import sys
from pathlib import Path

import h5py
import numpy as np
import pytest

from pubc import formats
from pubc.errors import DataError
from pubc.formats import ReadOptions
from pubc.formats.core.findings import Findings
from pubc.formats.hdf5.hdf5_heaps import broken_heap
from pubc.formats.hdf5.hdf5_read import Checked, open_checked
from tests.reliability import samples

TEXT = h5py.string_dtype()
WORDS = ["", "a", "schräg", "x" * 15, "y" * 16, "z" * 9000]


def as_dataset(file: h5py.File) -> None:
    file.create_dataset("words", data=WORDS, dtype=TEXT)


def as_attribute(file: h5py.File) -> None:
    file["numbers"] = np.arange(3)
    file.attrs.create("words", "some text", dtype=TEXT)


def read_words(file: Checked) -> list[str]:
    return file.words("words")


def read_attribute(file: Checked) -> str:
    return file.attribute("", "words")


def read_attributes(file: Checked) -> str:
    return file.attributes()["words"]


KINDS = [
    pytest.param(as_dataset, read_words, WORDS, id="dataset"),
    pytest.param(as_attribute, read_attribute, "some text", id="attribute"),
    pytest.param(as_attribute, read_attributes, "some text", id="all-attributes"),
]


def written(path: Path, fill, **how) -> Path:
    with h5py.File(path, "w", **how) as file:
        fill(file)
    return path


def objects(data: bytes) -> list[int]:
    """Places of the objects in the first collection of a file."""
    start = data.index(b"GCOL")
    end = start + int.from_bytes(data[start + 8 : start + 16], "little")
    places, place = [], start + 16
    while place + 16 <= end:
        places.append(place)
        index, _, _, size = struct.unpack_from("<HHIQ", data, place)
        place += size if index == 0 else 16 + (size + 7) // 8 * 8
    return places


def free_of_size(size: int):
    """Make an object free space of some size."""
    return lambda data, place: struct.pack_into("<HHIQ", data, place, 0, 0, 0, size)


def used_of_size(size: int):
    """Give an object that is in use some size."""
    return lambda data, place: struct.pack_into("<HHIQ", data, place, 1, 1, 0, size)


@pytest.mark.parametrize(
    "spoil",
    [free_of_size(0), used_of_size(2**64 - 16), used_of_size(1 << 40), free_of_size(2**64 - 32)],
    ids=["free of no size", "around the numbers to no size", "too large", "around and back"],
)
@pytest.mark.parametrize("which", [0, -1], ids=["first", "last"])
@pytest.mark.parametrize("fill", [as_dataset, as_attribute])
def test_an_object_that_leads_nowhere_is_found(tmp_path, fill, which, spoil):
    path = written(tmp_path / "x.h5", fill)
    data = bytearray(path.read_bytes())
    place = objects(bytes(data))[which]
    spoil(data, place)
    path.write_bytes(data)
    assert broken_heap(path) == place


def free_the_first_text(path: Path) -> Path:
    """Damage a file so that libhdf5 never comes back from reading its text."""
    file = path if path.is_file() else path / "data/main_data.hdf5"
    data = bytearray(file.read_bytes())
    free_of_size(0)(data, objects(bytes(data))[0])
    file.write_bytes(data)
    return path


@pytest.mark.parametrize("sample", ["d3rlpy", "robomimic"], ids=["dataset", "attribute"])
def test_damaged_text_is_told_instead_of_awaited(tmp_path, sample):
    path = free_the_first_text(samples.SAMPLES[sample](tmp_path))
    with pytest.raises(DataError, match="texts of the file are damaged at byte") as caught:
        formats.read(path, ReadOptions(cache=False, isolate="on"))
    assert caught.value.code == "damaged"
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("how", [{}, {"libver": "latest"}, {"userblock_size": 512}], ids=str)
@pytest.mark.parametrize(("fill", "read", "expected"), KINDS)
def test_sound_text_is_read(tmp_path, fill, read, expected, how):
    path = written(tmp_path / "x.h5", fill, **how)
    assert b"GCOL\x01" in path.read_bytes()
    assert broken_heap(path) is None
    with open_checked(path, Findings(path)) as file:
        assert read(file) == expected


def test_text_that_was_deleted_and_written_again_is_sound(tmp_path):
    path = written(tmp_path / "x.h5", as_dataset)
    rng = np.random.Generator(np.random.Philox(1))
    for _ in range(30):
        with h5py.File(path, "r+") as file:
            words = file["words"]
            for row in rng.integers(len(WORDS), size=20):
                words[row] = "w" * int(rng.integers(6000))
            name = f"more{rng.integers(5)}"
            if name in file:
                del file[name]
            else:
                sizes = rng.integers(200, size=int(rng.integers(400)))
                file.create_dataset(name, data=["v" * n for n in sizes], dtype=TEXT)
    assert path.read_bytes().count(b"GCOL\x01") > 3
    assert broken_heap(path) is None


def test_bytes_that_only_look_like_a_heap_do_no_harm(tmp_path):
    looks = b"GCOL\x01\0\0\0" + (2**63).to_bytes(8, "little") + bytes(40)

    def fill(file: h5py.File) -> None:
        file["numbers"] = np.frombuffer(looks * 3 + b"GCOL\x01", dtype=np.uint8)
        as_dataset(file)

    path = written(tmp_path / "x.h5", fill)
    with open_checked(path, Findings(path)) as file:
        assert file.words("words") == WORDS


def never_read_d4rl(folder: Path) -> tuple[Path, str]:
    path = samples.d4rl(folder)
    with h5py.File(path, "r+") as file:
        file["observations"].attrs.create("unit", "m", dtype=TEXT)
    return path, "new.hdf5"


def never_read_robomimic(folder: Path) -> tuple[Path, str]:
    path = samples.robomimic(folder)
    with h5py.File(path, "r+") as file:
        file["data"].attrs["env_args"] = np.bytes_("{}")
        file["data/demo_1"].attrs.create("model_file", "<mujoco/>", dtype=TEXT)
    return path, "new.hdf5"


def never_read_minari(folder: Path) -> tuple[Path, str]:
    path = samples.SAMPLES["minari"](folder)
    (path / "manifest.json").unlink(missing_ok=True)
    with h5py.File(path / "data/main_data.hdf5", "r+") as file:
        file["episode_1"].attrs.create("weather", "fine", dtype=TEXT)
    return path, "new"


COPY = """
import sys
from pathlib import Path
import numpy as np
from pubc import formats
from pubc.errors import DataError
source, target = map(Path, sys.argv[1:])
selection = formats.Selection(source, np.array([0, 1]), formats.ReadOptions(cache=False))
try:
    formats.get(formats.detect(source)).subset(selection, target, overwrite=False)
except DataError as error:
    print(error)
"""


@pytest.mark.parametrize("make", [never_read_d4rl, never_read_robomimic, never_read_minari])
def test_a_damaged_text_that_is_only_copied_is_told_too(tmp_path, make):
    path, name = make(tmp_path)
    free_the_first_text(path)
    done = subprocess.run(
        [sys.executable, "-c", COPY, str(path), str(tmp_path / name)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert "texts of the file are damaged at byte" in done.stdout
    assert not (tmp_path / name).exists()
