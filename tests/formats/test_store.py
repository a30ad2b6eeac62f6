"""pubc's own folder: mapped, streamed, sealed."""

import mmap

import numpy as np
import pytest

from pubc import formats
from pubc.errors import DataError
from pubc.formats import store
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.storage import read_manifest, verify
from tests.reliability import samples


def is_mapped(array: np.ndarray) -> bool:
    base = array
    while isinstance(base, np.ndarray):
        base = base.base
    return isinstance(base, mmap.mmap)


def test_a_store_is_mapped_not_loaded(tmp_path):
    made = formats.read(samples.SAMPLES["store"](tmp_path))
    for _, column in made.columns.named():
        assert is_mapped(column)
        assert type(column) is np.ndarray
    assert is_mapped(made[1:].flat().observations)


def test_what_was_found_when_reading_stays_with_the_copy(tmp_path):
    arrays = samples.flat()
    arrays["rewards"][0] = np.nan
    first = formats.read(samples.npz(tmp_path, arrays))
    formats.save(tmp_path / "copy.store", first)
    again = formats.read(tmp_path / "copy.store")
    assert again.problems == first.problems
    with pytest.raises(DataError, match="refused: --strict"):
        formats.read(tmp_path / "copy.store", ReadOptions(strict=True))


def test_names_of_extras_never_become_paths(tmp_path):
    arrays = samples.flat() | {"infos/qpos": np.zeros(15), "a b\x1b": np.ones(15)}
    first = formats.read(samples.npz(tmp_path, arrays))
    formats.save(tmp_path / "copy.store", first)
    assert set(formats.read(tmp_path / "copy.store").columns.extras) == {"infos/qpos", "a b\x1b"}
    assert all(
        name.isascii() and "/" not in name
        for name in read_manifest(tmp_path / "copy.store")["files"]
    )
    assert verify(tmp_path / "copy.store") == []


@pytest.mark.parametrize("name", ["lengths", "ids", "terminals", "timeouts"])
def test_damaged_structure_is_seen_at_every_opening(tmp_path, name):
    path = samples.SAMPLES["store"](tmp_path)
    file = path / f"{name}.npy"
    data = bytearray(file.read_bytes())
    data[-4] ^= 1
    file.write_bytes(data)
    with pytest.raises(DataError) as caught:
        store.read(path, ReadOptions(), Findings(path))
    assert (caught.value.code, caught.value.field) == ("checksum", name)


def test_a_store_can_be_replaced_while_it_is_open(tmp_path):
    path = samples.SAMPLES["store"](tmp_path)
    opened = formats.read(path)
    formats.save(path, opened[:1], overwrite=True)
    assert len(formats.read(path)) == 1
    np.testing.assert_array_equal(opened.columns.actions, samples.flat()["actions"])
