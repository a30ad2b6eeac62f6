"""The files around a run of `pubc filter`: a free folder, and the kept data in its format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pubc import formats
from pubc.errors import DataError, UsageError
from pubc.formats.opening.detect import detect
from pubc.storage import claim, lock
from pubc.storage.disk import remove
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from pubc.cli.filtering.filter_command import Filter
    from pubc.runs.find_expert import Result

__all__ = ["MASKED", "check_format", "most_unsure", "open_folder", "write_kept", "write_masked"]

Mask = NDArray[np.bool_]

MASKED = "masked.hdf5"
"""The copy of a robomimic file with a mask."""
_SUFFIX = {"diffusion": "zarr", "d3rlpy": "h5", "d4rl": "hdf5", "robomimic": "hdf5"}


def open_folder(path: Path, *, force: bool) -> None:
    """See that the folder for a new run is free, or make it so.

    Raises:
        UsageError: Something is there that must not be replaced.
    """
    from pubc.runs.run_folder import DRAFT, KIND

    # A run killed before its first word leaves hidden files at most.
    if not path.exists() or (path.is_dir() and all(p.name[0] == "." for p in path.iterdir())):
        return
    if not (path / "run.json").is_file() or not _is_run(path):
        raise UsageError(f"{path} exists and is not the folder of a filter run. Choose another.")
    if not force:
        raise UsageError(
            f"{path} holds a run already. Go on with it (pubc filter --resume {path}), choose "
            "another folder, or pass --force to replace it."
        )
    claim(path, KIND, force=True, draft=DRAFT)
    with lock(path):
        for entry in path.iterdir():
            if entry.name != ".lock":
                remove(entry)


def write_kept(
    folder: Path, source: Path, mixed: TrajectorySet, mask: Mask, command: Filter
) -> str | None:
    """Write the kept trajectories, and return the name of what was written."""
    positions = np.flatnonzero(mask)
    if not len(positions):
        return None
    own = command.reading.format or detect(source)
    wanted = command.to or own
    if wanted == own and source.is_file():
        name = "kept" + "".join(source.suffixes[-2:] if wanted == "diffusion" else [source.suffix])
    else:
        name = f"kept.{_SUFFIX.get(wanted, wanted)}"
    if wanted == own:
        module = formats.get(own)
        if hasattr(module, "subset") or hasattr(module, "write"):
            formats.save_subset(
                source, folder / name, mixed, positions, command.reading, overwrite=True
            )
            return name
        wanted, name = "store", "kept.store"
    formats.save(folder / name, mixed[positions], format=wanted, overwrite=True)
    return name


def write_masked(folder: Path, source: Path, mask: Mask, reading: formats.ReadOptions) -> None:
    """Write a copy of a robomimic file with a mask that names what was kept."""
    from pubc.formats.robomimic.robomimic_read import write_mask

    selection = formats.Selection(source, np.flatnonzero(mask), reading)
    write_mask(selection, folder / MASKED, overwrite=True)


def most_unsure(result: Result, most: int = 24) -> NDArray[np.int64]:
    """Positions of the borderline trajectories nearest to the threshold."""
    unsure = np.flatnonzero(result.quality.borderline & np.isfinite(result.confidence))
    middle = 0.0 if result.threshold is None else result.threshold
    near = np.argsort(np.abs(result.confidence[unsure] - middle), kind="stable")
    return np.sort(unsure[near[:most]]).astype(np.int64)


def check_format(command: Filter) -> None:
    """Refuse what cannot be written, before any work is done."""
    name = command.to
    if name is not None and not hasattr(formats.get(name), "write"):
        raise UsageError(f"pubc reads the {name} format but does not write it; see `pubc formats`.")
    assert command.data is not None
    if command.mask and (own := command.reading.format or detect(command.data)) != "robomimic":
        raise UsageError(f"--mask is for robomimic files, and {command.data} is {own}.")


def _is_run(path: Path) -> bool:
    from pubc.runs.run_folder import RunFolder

    try:
        RunFolder(path).read()
    except DataError:
        return False
    return True
