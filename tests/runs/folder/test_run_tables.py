"""keep.json: ids as the dataset has them."""

import json

import numpy as np
import pytest

from pubc.runs.folder.run_tables import keep_list
from pubc.trajectory import Columns, TrajectorySet


@pytest.mark.parametrize(
    ("ids", "kept", "unsure"),
    [
        (["3", "4", "5"], [3], [5]),
        (["a", "4", "5"], ["a"], ["5"]),
        (["1" * 5000, "4", "5"], ["1" * 5000], ["5"]),
    ],
    ids=["numbers", "names", "endless"],
)
def test_ids_are_integers_where_all_can_be(ids, kept, unsure):
    ends = np.ones(3, dtype=np.bool_)
    columns = Columns(np.zeros((3, 1)), np.zeros((3, 1)), None, ends, ~ends)
    mixed = TrajectorySet.from_flat(columns, [1, 1, 1], ids=ids)
    found = keep_list(mixed, np.array([True, False, False]), np.array([False, False, True]))
    assert found == {"episodes": kept, "unsure": unsure}
    json.dumps(found)
