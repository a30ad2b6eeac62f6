"""The kept trajectories of a run, in the format that the data came in or that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from pubc import formats
from pubc.errors import UsageError
from pubc.formats.opening.detect import detect
from pubc.runs.filter_config import FilterConfig
from pubc.runs.find_expert import Result
from pubc.runs.folder.run_files import KEPT_FILES
from pubc.runs.segments.segment_set import check_segment_options
from pubc.trajectory import TrajectorySet

__all__ = [
    "MASKED",
    "check_format",
    "most_unsure",
    "write_borderline",
    "write_kept",
    "write_masked",
    "write_steps",
]

Mask = NDArray[np.bool_]

MASKED = "masked.hdf5"
"""The copy of a robomimic file with a mask."""
_SUFFIX = {"diffusion": "zarr", "d3rlpy": "h5", "d4rl": "hdf5", "robomimic": "hdf5"}


def write_kept(
    folder: Path,
    source: Path | None,
    mixed: TrajectorySet,
    mask: Mask,
    config: FilterConfig,
    warn: Callable[[str], None] = lambda sentence: None,
    segments: TrajectorySet | None = None,
) -> str | None:
    """Write the kept trajectories, and return the name of what was written.

    Args:
        folder: The folder of the run.
        source: Where the data came from; None where it was made in memory.
        mixed: The data.
        mask: Which of it is kept.
        config: What was asked for.
        warn: Told where what was written could be better.
        segments: What is written instead, where segments were asked for.
    """
    positions = np.flatnonzero(mask)
    if config.segments:
        return None if segments is None else _write_segments(folder, source, segments, config, warn)
    if not len(positions):
        return None
    if source is None:
        wanted = config.to or "npz"
        name = f"kept.{_SUFFIX.get(wanted, wanted)}"
        formats.write_inside(folder / name, mixed[positions], format=wanted, overwrite=True)
        return name
    own = config.reading.format or detect(source)
    wanted = config.to or own
    name = f"kept.{_SUFFIX.get(wanted, wanted)}"
    if wanted == own and source.is_file():
        # Under any other suffix an unfinished run could not tell it from somebody's file.
        for suffix in ("".join(source.suffixes[-2:]), source.suffix):
            if suffix[1:] in KEPT_FILES:
                name = f"kept{suffix}"
                break
    if wanted == own:
        module = formats.get(own)
        if hasattr(module, "subset") or hasattr(module, "write"):
            target = folder / name
            for remark in formats.save_subset(
                source, target, mixed, positions, config.reading, overwrite=True
            ):
                warn(remark)
            return name
        warn(f"pubc reads the {own} format but does not write it: what was kept is a store.")
        wanted, name = "store", "kept.store"
    formats.write_inside(folder / name, mixed[positions], format=wanted, overwrite=True)
    return name


def _write_segments(
    folder: Path,
    source: Path | None,
    segments: TrajectorySet,
    config: FilterConfig,
    warn: Callable[[str], None],
) -> str:
    """Segments are new trajectories, so they are written from the set in any format."""
    own = "npz" if source is None else config.reading.format or detect(source)
    wanted = config.to or own
    if not hasattr(formats.get(wanted), "write"):
        warn(f"pubc reads the {wanted} format but does not write it: what was kept is a store.")
        wanted = "store"
    elif wanted == own == "lerobot" and source is not None and _pictures(source):
        warn("the segments hold numbers only: pictures and videos are not cut.")
    name = f"kept.{_SUFFIX.get(wanted, wanted)}"
    formats.write_inside(folder / name, segments, format=wanted, overwrite=True)
    return name


def _pictures(source: Path) -> bool:
    from pubc.formats.lerobot.lerobot_read import has_pictures

    return has_pictures(source)


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


def write_steps(folder: Path, blocks: Iterator[NDArray[np.float32]], steps: int) -> None:
    """Stream a value per step to steps.npy."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (steps,)}
    with (folder / "steps.npy").open("wb") as file:
        npy.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype="<f4").data)


def write_borderline(
    folder: Path, positions: NDArray[np.int64], values: Iterator[NDArray[np.float32]]
) -> None:
    """Keep the steps of a few unsure trajectories, so that a report can show where."""
    flat = np.concatenate([np.zeros(0, np.float32), *values])
    with (folder / "borderline_steps.npz").open("wb") as file:
        np.savez(file, allow_pickle=False, positions=positions, values=flat)


def check_format(config: FilterConfig, data: Path | None) -> None:
    """Refuse what cannot be written, before any work is done."""
    check_segment_options(
        config.segments, config.min_segment, config.segment_margin, config.drop_idle
    )
    name = config.to
    if name is not None and not hasattr(formats.get(name), "write"):
        raise UsageError(f"pubc reads the {name} format but does not write it; see `pubc formats`.")
    if not config.mask:
        return
    if data is None:
        raise UsageError("--mask is for robomimic files, and this data is no file.")
    if (own := config.reading.format or detect(data)) != "robomimic":
        raise UsageError(f"--mask is for robomimic files, and {data} is {own}.")
