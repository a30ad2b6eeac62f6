"""The record of an observation's pieces: believed where it fits, and passed over elsewhere."""

import numpy as np
import pytest

from pubc.cli.data.inspect_details import describe_keys
from pubc.formats.core.named_parts import PARTS, read_parts, split
from pubc.policies.export_card import observation_keys
from pubc.trajectory import Columns, TrajectorySet

ARM = {"key": "arm", "shape": [2, 3], "dtype": "<f4"}
GRIP = {"key": "grip", "shape": [], "dtype": "float32"}
ODD = [
    None, "arm", {}, [None], [[]], [ARM],
    *([{**ARM, "shape": shape}, GRIP] for shape in (
        None, 6, "6", ["x"], [None], [[]], [{}], [float("inf")], [6.0], ["1" * 5000], [2**70],
        [-2, -3], [0, 2**70], [True, 6], [1] * 40 + [6])),
    *([{**ARM, "dtype": dtype}, GRIP] for dtype in (
        None, 4, "f4,(", "1" * 5000 + "f4", "f3", "O", "float32 ", ["f4"], {"names": ["a"]})),
    [{**ARM, "key": None}, GRIP], [{"shape": [6], "dtype": "<f4"}, GRIP],
]  # fmt: skip


def test_a_record_that_fits_is_read():
    arm, grip = read_parts([ARM, GRIP], 7)
    assert (arm.key, arm.shape, arm.size, arm.dtype) == ("arm", (2, 3), 6, np.float32)
    assert (grip.shape, grip.size) == ((), 1)


@pytest.mark.parametrize("record", ODD, ids=lambda record: str(record)[:60])
def test_any_other_record_is_passed_over_by_all_who_read_it(record):
    assert read_parts(record, 7) == []
    assert split(np.zeros((3, 7), np.float32), record) is None
    assert observation_keys(record, 7) == [{"key": "observations", "size": 7}]
    ends = np.array([False, False, True])
    columns = Columns(np.zeros((3, 7)), np.zeros((3, 1)), None, ends, ~ends)
    found = TrajectorySet.from_flat(columns, [3], metadata={PARTS: record})
    assert describe_keys(found)[0]["key"] == "observations"


def test_a_piece_without_numbers_is_no_input_of_a_policy():
    empty = {"key": "none", "shape": [0], "dtype": "<f4"}
    assert observation_keys([ARM, empty, GRIP], 7) == [
        {"key": "arm", "size": 6},
        {"key": "grip", "size": 1},
    ]
