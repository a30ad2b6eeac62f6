"""Mapped memory that is given back: also what the system mapped beside the rows that were read."""

import os
from pathlib import Path

import numpy as np
import pytest

from pubc.trajectory.arrays import give_back

SMAPS = Path("/proc/self/smaps")
ROW = 4096


def resident(path: Path) -> int:
    """KiB of a file that this process has mapped and in memory."""
    counting, found = False, 0
    for line in SMAPS.read_text().splitlines():
        words = line.split()
        if "-" in words[0] and not words[0].endswith(":"):
            counting = words[-1] == str(path)
        elif counting and words[0] == "Rss:":
            found += int(words[1])
    return found


@pytest.mark.skipif(not SMAPS.exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("rows", [slice(500, 520), np.array([3, 400, 1020])], ids=["slice", "list"])
def test_nothing_of_rows_that_were_given_back_stays_in_memory(rows, tmp_path: Path):
    path = tmp_path / "column"
    with path.open("wb") as file:
        file.write(np.arange(1024 * ROW, dtype=np.uint8).tobytes())
        os.fsync(file.fileno())
        # What is read from a disk comes in larger pieces than what was written just now.
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    column = np.memmap(path, np.uint8, "r", shape=(1024, ROW))
    read = int(column[rows].sum())
    assert resident(path) > 0
    give_back(column, rows)
    assert resident(path) == 0
    assert int(column[rows].sum()) == read


def test_an_array_of_its_own_has_nothing_to_give_back():
    array = np.ones((4, 3))
    give_back(array, slice(0, 2))
    assert array.sum() == 12
