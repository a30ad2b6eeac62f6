"""Arrays in a file that proves itself: by its name, its facts and every byte."""

import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from pubc.errors import DataError, UsageError
from pubc.tensor_files import load_arrays, proves_itself, save_arrays

ARRAYS = {
    "weights": np.arange(6, dtype=np.float32).reshape(2, 3)[:, ::2],
    "mask": np.array([True, False]),
    "count": np.int64(7),
    "none": np.zeros((0, 3), dtype=np.float64),
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "part.safetensors"
    save_arrays(path, ARRAYS, {"kind": "part", "numbers": [1, 2]})
    return path


def test_what_was_written_comes_back(file: Path):
    arrays, about = load_arrays(file)
    assert about == {"kind": "part", "numbers": [1, 2]}
    assert set(arrays) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert (arrays[name].dtype, arrays[name].shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(arrays[name], array)
    assert proves_itself(file)


def test_facts_that_json_spells_otherwise_come_back_as_json_has_them(file: Path):
    save_arrays(file, ARRAYS, {"by number": {10: "ten", 9: "nine"}, "pair": (1, 2)})
    assert load_arrays(file)[1] == {"by number": {"10": "ten", "9": "nine"}, "pair": [1, 2]}


def test_it_is_the_same_bytes_each_time(file: Path):
    before = file.read_bytes()
    save_arrays(file, ARRAYS, {"kind": "part", "numbers": [1, 2]})
    assert file.read_bytes() == before


def test_what_is_there_is_replaced_only_where_asked(file: Path):
    file.write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        save_arrays(file, ARRAYS, {}, overwrite=False)
    assert file.read_text() == "mine"


def test_a_change_of_any_byte_is_found(file: Path):
    whole = file.read_bytes()
    for position in range(len(whole)):
        changed = bytearray(whole)
        changed[position] ^= 4
        file.write_bytes(changed)
        if proves_itself(file):
            # Blanks that pad the header say nothing: the arrays and facts are the same.
            assert whole[position : position + 1] in b" "


def test_another_name_proves_nothing(file: Path):
    other = file.with_name("other.safetensors")
    file.rename(other)
    assert not proves_itself(other)
    with pytest.raises(DataError, match="under another name"):
        load_arrays(other)


def test_a_link_proves_nothing(file: Path, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / file.name
    link.symlink_to(file)
    assert not proves_itself(link)


@pytest.mark.parametrize("words", [None, "", "[]", "{}", '{"kind": "part"}', "[" * 100_000, "x"])
def test_what_says_nothing_of_itself_proves_nothing(tmp_path: Path, words: str | None):
    path = tmp_path / "part.safetensors"
    save_file({"a": np.zeros(2)}, path, metadata=None if words is None else {"pubc": words})
    assert not proves_itself(path)


def test_a_digest_of_other_facts_proves_nothing(file: Path):
    from safetensors import safe_open

    with safe_open(file, framework="numpy") as opened:
        facts = json.loads(opened.metadata()["pubc"])
    save_file(load_file(file), file, metadata={"pubc": json.dumps({**facts, "numbers": [1]})})
    assert not proves_itself(file)


def test_what_is_not_there_proves_nothing(tmp_path: Path):
    assert not proves_itself(tmp_path / "nothing.safetensors")
    assert not proves_itself(tmp_path)
