"""steps.npz of a run: the confidence of every step, and the segments that follow from it.

The confidences are written as they come, so a set larger than memory costs no more than its
largest trajectory.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pubc.errors import DataError, UsageError
from pubc.pu.steps.cut_segments import SEGMENT, Segments, cut_trajectory
from pubc.runs.folder.round_files import UNREADABLE, stored_arrays
from pubc.storage import atomic_file

if TYPE_CHECKING:  # it loads torch, and reports are drawn without
    from pubc.pu.steps.step_model import JudgedSteps

__all__ = ["STEPS_FILE", "read_steps", "write_steps_file"]

STEPS_FILE = "steps.npz"
"""Name of the file inside the folder of a run."""
_ROUNDING = 1e-3
"""By which a confidence may miss the range from 0 to 1."""


def write_steps_file(folder: Path, judged: Iterator[JudgedSteps], steps: int) -> Segments:
    """Write steps.npz, and return its segments.

    Args:
        folder: The folder of the run.
        judged: Every step in order.
        steps: How many there are.
    """
    # As objects of Python: small arrays that stay among large ones that come and go keep the heap
    # from shrinking, by 300 MB over 15,000 trajectories.
    rows: list[tuple[object, ...]] = []
    with (
        atomic_file(folder / STEPS_FILE, overwrite=True) as new,
        zipfile.ZipFile(new, "w", zipfile.ZIP_STORED) as archive,
    ):
        with archive.open("confidence.npy", "w", force_zip64=True) as file:
            header = {"descr": "<f4", "fortran_order": False, "shape": (steps,)}
            npy.write_array_header_1_0(file, header)
            for _, parts in groupby(judged, key=lambda part: part.trajectory):
                whole = list(parts)
                for part in whole:
                    file.write(np.ascontiguousarray(part.confidence, dtype="<f4").tobytes())
                rows += cut_trajectory(whole).tolist()
        segments = np.array(rows, dtype=SEGMENT)
        with archive.open("segments.npy", "w", force_zip64=True) as file:
            npy.write_array(file, segments, allow_pickle=False)
    return segments


def read_steps(folder: Path, steps: int) -> tuple[NDArray[np.float32], Segments]:
    """The confidence of every step of a run, and its segments.

    Args:
        folder: The folder of the run.
        steps: How many steps its data has.

    Raises:
        UsageError: The run has no such file.
        DataError: It does not fit the run.
    """
    path = folder / STEPS_FILE
    if not path.exists():
        raise UsageError(
            f"{folder}: the run says nothing of single steps; it was made by an older pubc. "
            "Filter again."
        )
    try:
        arrays = stored_arrays(path)
        confidence, segments = arrays["confidence"], arrays["segments"]
        if confidence.shape != (steps,) or confidence.dtype != np.float32:
            raise ValueError(f"confidence of shape {confidence.shape} for {steps:,} steps")
        if segments.dtype != SEGMENT or segments.ndim != 1:
            raise ValueError(f"segments of type {segments.dtype}")
        # A chance, with room for its rounding; what is not a number is in no range.
        chances = (confidence > -_ROUNDING) & (confidence < 1 + _ROUNDING)
        if not chances.all() or (segments["end"] <= segments["first"]).any():
            raise ValueError("values that make no sense")
    except UNREADABLE as error:
        raise DataError(
            f"{path}: cannot be read ({error}). `pubc verify {folder}` says whether it was "
            "changed.",
            code="bad_run",
            field=STEPS_FILE,
        ) from None
    return confidence, segments
