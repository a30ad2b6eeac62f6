"""Robot datasets in, robot datasets out, whatever their format (`registry` lists them)."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.formats.core.options import FROM_COMMAND_LINE, ReadOptions
from pubc.formats.core.selection import Selection
from pubc.formats.opening.detect import detect, format_for_new
from pubc.formats.registry import FORMATS, KINDS, Format, get, parse
from pubc.storage import claim, sealed_file
from pubc.trajectory import TrajectorySet

__all__ = [
    "FORMATS",
    "FROM_COMMAND_LINE",
    "KINDS",
    "Format",
    "ReadOptions",
    "Selection",
    "claim_dataset",
    "get",
    "load",
    "parse",
    "read",
    "save",
    "save_sealed",
    "save_subset",
    "write_inside",
]


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

    A file gets NAME.manifest.json beside it with its SHA-256, which `pubc verify` compares; a
    folder has its manifest inside.

    Args:
        path: Where to write.
        trajectories: What to write.
        format: Name of the format.
        version: Version of the format, where it has several; the newest if omitted.
        overwrite: Replace an earlier dataset that pubc wrote; nothing else ever is.

    Raises:
        UsageError: The format or version cannot be written, or `path` is taken.
        EnvironmentFailure: The disk said no; nothing was changed.
    """
    save_sealed(Path(path), trajectories, format=format, version=version, overwrite=overwrite)


def write_inside(
    path: Path,
    trajectories: TrajectorySet,
    *,
    format: str | None = None,
    version: str | None = None,
    overwrite: bool = False,
) -> None:
    """Write a dataset without a manifest of its own, in a folder that pubc seals as a whole.

    Args:
        path: Where to write.
        trajectories: What to write.
        format: Name of the format; the suffix picks it if omitted.
        version: Version of the format, where it has several.
        overwrite: Replace what is there.

    Raises:
        UsageError: The format or version cannot be written, or `path` exists.
        EnvironmentFailure: The disk said no; nothing was changed.
    """
    module, chosen = _writer(format or format_for_new(path), version)
    module.write(path, trajectories, overwrite=overwrite, **chosen)


def save_sealed(
    path: Path,
    trajectories: TrajectorySet,
    *,
    format: str | None = None,
    version: str | None = None,
    overwrite: bool = False,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write a dataset with its manifest in one step: inside a folder, beside a file.

    Args:
        path: Where to write.
        trajectories: What to write.
        format: Name of the format; the suffix picks it if omitted.
        version: Version of the format, where it has several.
        overwrite: Replace an earlier dataset that pubc wrote.
        about: Further facts for the manifest.

    Raises:
        UsageError: The format or version cannot be written, or `path` is taken.
        EnvironmentFailure: The disk said no; nothing was changed.
    """
    name = format or format_for_new(path)
    module, chosen = _writer(name, version)
    if name in KINDS:  # a folder, which seals itself
        module.write(path, trajectories, overwrite=overwrite, about=about, **chosen)
        return
    with sealed_file(path, kind="dataset", overwrite=overwrite, about=about) as place:
        write_inside(place, trajectories, format=name, version=version)


def claim_dataset(
    path: Path,
    *,
    format: str | None = None,
    version: str | None = None,
    force: bool,
    sources: Collection[Path | None] = (),
) -> None:
    """See that a dataset may be written as `save_sealed` would, before any work is done for it.

    Args:
        path: Where it is to go.
        format: Name of the format; the suffix picks it if omitted.
        version: Version of the format, where it has several.
        force: Whether an earlier dataset of that format may be replaced.
        sources: What it is made from, which must not lie there.

    Raises:
        UsageError: The format or version cannot be written, or `path` is taken.
    """
    name = format or format_for_new(path)
    _writer(name, version)
    folder = name in KINDS
    claim(path, name if folder else "dataset", force=force, file=not folder, sources=sources)


def _writer(name: str, version: str | None) -> tuple[Format, dict[str, Any]]:
    """The module that writes a format, and what it is told beside the data."""
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
    return module, {} if version is None else {"version": version}


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
    write_inside(target, trajectories[kept], format=name, overwrite=overwrite)
    return ()
