"""The registry: every format, the module that reads it, and one way to call that.

A format is a module with these names, loaded when it is first needed:

    EXTRA       the optional dependency it needs, or None
    SLOW        whether a flat cached copy pays off at the second opening
    read(path, options, findings) -> TrajectorySet
    write(path, trajectories, *, overwrite) -> None                      (optional)
    VERSIONS    what `write` also takes as `version`, its default first  (optional)
    subset(selection, target, *, overwrite) -> remarks or None           (optional)

`subset` copies selected trajectories from a source of the same format with everything it
holds about them, also what a `TrajectorySet` does not carry. Where a dataset is a folder, `write`
seals it, and takes `about` too: further facts for its manifest.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, Protocol, cast

from pubc.errors import DataError, EnvironmentFailure, PubcError, UnknownNameError
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.formats.core.selection import Selection
from pubc.formats.opening.detect import refuse_links_out
from pubc.trajectory import TrajectorySet

__all__ = ["FORMATS", "KINDS", "Format", "get", "parse"]

FORMATS: dict[str, str] = {
    "store": "folder of flat .npy arrays with a manifest; pubc's own, memory-mapped",
    "npz": "one NumPy archive",
    "d4rl": "D4RL HDF5",
    "minari": "Minari dataset folder (HDF5, Arrow or Parquet)",
    "robomimic": "robomimic HDF5",
    "lerobot": "LeRobot dataset folder, v2.1 and v3.0",
    "trifinger": "TriFinger RL dataset (LMDB holding zarr)",
    "diffusion": "Diffusion-Policy zarr, folder or zip",
    "d3rlpy": "d3rlpy replay buffer .h5",
    "rlds": "RLDS/TFDS folder of tfrecords",
}
"""Name and meaning of every format."""
KINDS = ("dataset", "store", "minari", "lerobot", "lerobot-keep", "rlds")
"""What manifests call a dataset: a single file, or a folder of one of the formats."""

_HOME = {
    "minari": "minari.minari_read",
    "robomimic": "robomimic.robomimic_read",
    "lerobot": "lerobot.lerobot_read",
    "trifinger": "zarr.trifinger_lmdb",
    "diffusion": "zarr.diffusion",
    "rlds": "rlds.rlds_read",
}
"""Modules of the formats that have a folder; those in one file are named like their format."""


class Format(Protocol):
    """What a format module offers."""

    EXTRA: str | None
    SLOW: bool

    @staticmethod
    def read(path: Path, options: ReadOptions, findings: Findings) -> TrajectorySet:
        """Read and check the dataset at `path`."""
        ...

    @staticmethod
    def write(path: Path, trajectories: TrajectorySet, *, overwrite: bool, **more: Any) -> None:
        """Write a new dataset at `path`."""
        ...

    @staticmethod
    def subset(selection: Selection, target: Path, *, overwrite: bool) -> tuple[str, ...] | None:
        """Copy the selected trajectories, with all the source says of them; remarks, if any."""
        ...


def get(name: str) -> Format:
    """The module of a format.

    Raises:
        UnknownNameError: No format has that name.
    """
    if name not in FORMATS:
        raise UnknownNameError("format", name, FORMATS)
    return cast(Format, importlib.import_module(f"pubc.formats.{_HOME.get(name, name)}"))


def parse(path: Path, name: str, options: ReadOptions) -> TrajectorySet:
    """Run the reader of one format on a file, in this process and past every cache.

    Raises:
        DataError: The file is not what its format promises, however its parser put it.
        EnvironmentFailure: It may not be read.
        MemoryError: Memory does not suffice.
    """
    module = get(name)
    findings = Findings(path, strict=options.strict)
    try:
        refuse_links_out(path, findings)
        return module.read(path, options, findings)
    except (PubcError, MemoryError):
        raise
    except PermissionError:
        raise EnvironmentFailure(f"{path}: no permission to read it.") from None
    except Exception as error:
        # Parsers of damaged files raise whatever they stumble over; users get one class.
        raise DataError(
            f"{path}: not readable as {name} ({type(error).__name__}: {error}).",
            code="unreadable",
        ) from error
