"""steps.npz: written as a stream, read back whole, refused where it does not fit."""

from pathlib import Path

import numpy as np
import pytest

from pubc.errors import DataError, UsageError
from pubc.pu.steps.step_model import JudgedSteps
from pubc.runs.segments.steps_file import STEPS_FILE, read_steps, write_steps_file


def parts():
    for trajectory, size in ((0, 4), (1, 6)):
        values = np.linspace(0, 1, size, dtype=np.float32)
        yield JudgedSteps(
            trajectory,
            0,
            values,
            np.zeros((size, 2), np.float32),
            np.ones(size, np.float32),
            np.zeros((size, 2), np.float32),
        )


def test_what_is_written_is_read_back(tmp_path: Path):
    segments = write_steps_file(tmp_path, parts(), 10)
    confidence, again = read_steps(tmp_path, 10)
    assert np.array_equal(segments, again)
    assert np.allclose(confidence, [*np.linspace(0, 1, 4), *np.linspace(0, 1, 6)])
    with np.load(tmp_path / STEPS_FILE, allow_pickle=False) as plain:
        assert set(plain.files) == {"confidence", "segments"}
        assert plain["segments"]["end"].tolist() == [2, 4, 3, 6]


def test_a_file_of_another_run_is_refused(tmp_path: Path):
    write_steps_file(tmp_path, parts(), 10)
    with pytest.raises(DataError, match=r"confidence of shape \(10,\) for 11 steps"):
        read_steps(tmp_path, 11)


@pytest.mark.parametrize("value", [1e38, -5.0, 1.5, np.nan])
def test_a_confidence_that_is_no_chance_is_refused(tmp_path: Path, value: float):
    write_steps_file(tmp_path, parts(), 10)
    with np.load(tmp_path / STEPS_FILE, allow_pickle=False) as plain:
        arrays = dict(plain)
    arrays["confidence"][3] = value
    np.savez(tmp_path / STEPS_FILE, **arrays)
    with pytest.raises(DataError, match="values that make no sense"):
        read_steps(tmp_path, 10)


def test_a_run_without_the_file_says_so(tmp_path: Path):
    with pytest.raises(UsageError, match="says nothing of single steps"):
        read_steps(tmp_path, 1)


def test_a_damaged_file_is_refused_in_one_sentence(tmp_path: Path):
    (tmp_path / STEPS_FILE).write_bytes(b"not an archive")
    with pytest.raises(DataError, match="cannot be read"):
        read_steps(tmp_path, 10)
