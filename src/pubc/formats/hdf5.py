"""HDF5 files from strangers, opened with their tricks refused.

An HDF5 file can point to other files (external links and storage, virtual datasets), load
plug-ins to decode itself, and declare terabytes in a kilobyte. None of that belongs into a
dataset, so the whole tree is walked before anything is read.
"""

from __future__ import annotations

import os
from pathlib import Path

# Read once when libhdf5 loads: no filter plug-in may come from outside.
os.environ["HDF5_PLUGIN_PATH"] = "/nonexistent"

import h5py

from pubc.errors import DataError

__all__ = ["root_names"]


def root_names(path: Path) -> list[str]:
    """Names at the top of a file, without following a link."""
    try:
        with h5py.File(path, "r") as file:
            return list(file.keys())
    except (OSError, RuntimeError) as error:
        raise DataError(f"{path}: not readable as HDF5 ({error}).", code="truncated") from None
