"""What was kept of an RLDS dataset is an RLDS dataset, record by record (E3)."""

import json

import numpy as np
import pytest

from pubc import formats
from pubc.formats.core.selection import Selection
from pubc.formats.rlds import rlds_read as rlds
from pubc.formats.rlds.tfrecords import read_records
from pubc.storage import verify
from tests.formats.rlds_sets import episode, write_rlds

OPTIONS = formats.ReadOptions(cache=False)


@pytest.fixture
def source(tmp_path):
    starts = np.cumsum([0, 4, 6, 5, 3])
    made = [episode(int(s), n, terminal=True) for s, n in zip(starts, (4, 6, 5, 3), strict=False)]
    return write_rlds(tmp_path / "set", [made[:1], made[1:3], made[3:]])


def test_e3_a_part_holds_the_records_as_they_were(source, tmp_path):
    kept = np.array([1, 3])
    rlds.subset(Selection(source, kept, OPTIONS), tmp_path / "part", overwrite=False)
    before, after = formats.read(source, OPTIONS), formats.read(tmp_path / "part", OPTIONS)
    assert after.lengths.tolist() == before.lengths[kept].tolist()
    np.testing.assert_array_equal(
        after.columns.observations,
        np.concatenate([before[int(n)].steps.observations for n in kept]),
    )
    old = [bytes(r) for f in sorted(source.glob("*.tfrecord*")) for r in read_records(f)]
    (file,) = (tmp_path / "part").glob("*.tfrecord*")
    assert [bytes(record) for record in read_records(file)] == [old[1], old[3]]
    info = json.loads((tmp_path / "part/dataset_info.json").read_text())
    assert info["splits"][0]["shardLengths"] == ["2"]
    assert verify(tmp_path / "part") == []


def test_e3_every_format_that_pubc_writes_comes_out_as_it_came_in():
    kept_as_store = {
        name
        for name in formats.FORMATS
        if not any(hasattr(formats.get(name), verb) for verb in ("subset", "write"))
    }
    assert kept_as_store == {"trifinger", "diffusion"}
