"""Robot datasets in, robot datasets out: the registry of formats.

A format is a module of this package with these names, loaded when it is first needed:

    EXTRA       the optional dependency it needs, or None
    SLOW        whether a flat cached copy pays off at the second opening
    read(path, options, findings) -> TrajectorySet
    write(path, trajectories, *, overwrite) -> None                      (optional)
    VERSIONS    what `write` also takes as `version`, its default first  (optional)
    subset(selection, target, *, overwrite) -> remarks or None           (optional)

`subset` copies selected trajectories from a source of the same format with everything it
holds about them, also what a `TrajectorySet` does not carry.
"""

from __future__ import annotations

import importlib
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from pubc.errors import (
    DataError,
    EnvironmentFailure,
    PubcError,
    UnknownNameError,
    UsageError,
)
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import FROM_COMMAND_LINE, ReadOptions
from pubc.formats.core.selection import Selection
from pubc.formats.opening.detect import detect, format_for_new, refuse_links_out
from pubc.trajectory import TrajectorySet

__all__ = [
    "FORMATS",
    "FROM_COMMAND_LINE",
    "KINDS",
    "Format",
    "ReadOptions",
    "Selection",
    "load",
    "parse",
    "read",
    "save",
    "save_subset",
]

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
KINDS = ("dataset", "store", "minari", "lerobot", "lerobot-keep")
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
    def write(path: Path, trajectories: TrajectorySet, *, overwrite: bool) -> None:
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


def read(path: Path | str, options: ReadOptions | None = None) -> TrajectorySet:
    """Read a dataset; what was repaired or warned about is in its `problems`.

    Args:
        path: A file or folder, or the id of a Minari dataset on this disk.
        options: How to read it.

    Raises:
        DataError: The file is not what its format promises.
        UsageError: The path does not exist, or no format fits it.
    """
    from pubc.formats.minari.minari_ids import find
    from pubc.formats.opening.open_dataset import open_dataset

    return open_dataset(find(Path(path)), options or ReadOptions()).trajectories


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


def load(path: Path | str, options: ReadOptions | None = None) -> TrajectorySet:
    """Read a dataset, with a Python warning for each problem found on the way.

    Example:
        >>> import pubc
        >>> mixed = pubc.load("mixed.npz")  # doctest: +SKIP
        >>> mixed[mixed.total_rewards() > 100]  # doctest: +SKIP
        TrajectorySet(12 trajectories, 12,000 steps, 27 -> 8)
    """
    trajectories = read(path, options)
    for problem in trajectories.problems:
        if problem.outcome != "noticed":
            warnings.warn(f"{path}: {problem.message}", stacklevel=2)
    return trajectories


def save(
    path: Path | str,
    trajectories: TrajectorySet,
    *,
    format: str | None = None,
    version: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write a dataset; the suffix of `path` picks the format unless one is named.

    Args:
        path: Where to write.
        trajectories: What to write.
        format: Name of the format.
        version: Version of the format, where it has several; the newest if omitted.
        overwrite: Replace what is there.

    Raises:
        UsageError: The format or version cannot be written, or `path` exists.
        EnvironmentFailure: The disk said no; nothing was changed.
    """
    path = Path(path)
    name = format or format_for_new(path)
    module = get(name)
    if not hasattr(module, "write"):
        writable = ", ".join(n for n in FORMATS if hasattr(get(n), "write"))
        raise UsageError(
            f"pubc reads the {name} format but does not write it. Writable: {writable}."
        )
    versions: tuple[str, ...] = getattr(module, "VERSIONS", ())
    if version is not None and version not in versions:
        known = f"pubc writes {' and '.join(versions)}" if versions else "it has only one"
        raise UsageError(f"No version {version!r} of the {name} format to write: {known}.")
    chosen: dict[str, Any] = {} if version is None else {"version": version}
    module.write(path, trajectories, overwrite=overwrite, **chosen)


def save_subset(
    source: Path,
    target: Path,
    trajectories: TrajectorySet,
    kept: NDArray[np.int64],
    options: ReadOptions,
    *,
    overwrite: bool = False,
) -> tuple[str, ...]:
    """Write the kept trajectories of a source in its own format, losing nothing.

    Formats that know how copy from the source itself; the others are written from the set.

    Returns:
        Remarks for the user, where something could be better.
    """
    name = options.format or detect(source)
    module = get(name)
    if hasattr(module, "subset"):
        selection = Selection(source, kept, replace(options, format=name))
        return module.subset(selection, target, overwrite=overwrite) or ()
    save(target, trajectories[kept], format=name, overwrite=overwrite)
    return ()
