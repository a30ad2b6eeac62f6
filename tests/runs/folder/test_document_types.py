"""What a stranger's run.json may say, and how it is told where it says something else."""

from __future__ import annotations

import dataclasses

import pytest

from pubc.errors import DataError
from pubc.formats import ReadOptions
from pubc.runs.folder.document_types import reading_options

PLAIN = dataclasses.asdict(ReadOptions())


def test_reading_is_read_back_as_it_was():
    told = ReadOptions(format="npz", observation_keys=("a", "b"), episode_length=7)
    assert reading_options({"reading": dataclasses.asdict(told)}) == told


@pytest.mark.parametrize(
    "change",
    [
        {"observation_keys": 5},
        {"observation_keys": True},
        {"observation_keys": 1e308},
        {"observation_keys": [3]},
        {"format": 0.5},
        {"format": [{}]},
        {"action_key": {}},
        {"episode_length": "many"},
        {"trailing": "perhaps"},
        {"isolate": None},
        {"unheard_of": 1},
    ],
)
def test_odd_reading_is_bad_data_and_no_fault(change):
    with pytest.raises(DataError) as told:
        reading_options({"reading": {**PLAIN, **change}})
    assert told.value.field == "reading"


def test_no_reading_is_bad_data():
    with pytest.raises(DataError):
        reading_options({})
