"""Reading what a user names as data, and saying what they should know of it.

Data that pubc wrote has a manifest, and must be as that says. The trajectories that a run kept may
be named by themselves, as RUN/kept.npz. The run answers for them all the same: it must be finished,
they must be as it left them, and where it is not sound that is said. What was converted from them
says in its manifest which run selected it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pubc import formats
from pubc.errors import DataError
from pubc.formats.opening.open_dataset import REBUILT
from pubc.runs.statuses import second_hand_words, unsound_words
from pubc.storage import MANIFEST, read_json, read_manifest, verify
from pubc.storage.manifest import ADDED, content_of, fits, sidecar
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from pubc.runs.folder.run_folder import RunFolder

__all__ = [
    "SELECTED_BY",
    "Tell",
    "check_given",
    "check_manifest",
    "read_checked",
    "read_given",
    "run_behind",
    "selected_by",
    "tell_rebuilt",
]

Tell = Callable[[str], None]
"""Takes a sentence for the user."""
SELECTED_BY = "selected_by"
"""Where the manifest of a dataset names the run that selected it, and how that ended."""
_HOPS = 40
"""Links that lead to links, as many as Linux follows."""
_HASHED = 1 << 30
"""Bytes of a dataset up to which digests are compared, about a second; of more only the sizes, and
all of it by `pubc verify`."""


def read_given(path: Path, options: formats.ReadOptions, tell: Tell) -> TrajectorySet:
    """Read a dataset that a user named.

    Args:
        path: The dataset.
        options: How to read it.
        tell: Told, in a sentence each, what the user should know.

    Raises:
        DataError: It is not what its format promises, or a run kept it and it was changed since.
        UsageError: The path does not exist, or no format fits it.
    """
    check_given(path, tell)
    return read_checked(path, options, tell)


def read_checked(path: Path, options: formats.ReadOptions, tell: Tell) -> TrajectorySet:
    """Read a dataset whose run was looked at already; otherwise as `read_given`."""
    trajectories = formats.read(path, options)
    check_manifest(path, options)
    tell_rebuilt(path, trajectories, tell)
    return trajectories


def tell_rebuilt(path: Path, trajectories: TrajectorySet, tell: Tell) -> None:
    """Say of data that its copy in the cache was wrong, and was made again."""
    for problem in trajectories.problems:
        if problem.code == REBUILT:
            tell(f"{path}: {problem.message}")


def check_given(path: Path, tell: Tell) -> None:
    """See that data inside a run is as the run left it, and say where its run is not sound.

    Raises:
        DataError: It was changed, or the run was, or the run is not finished.
    """
    run = run_behind(path)
    if run is None:
        words = second_hand_words(path, selected_by(path))
        if words is not None:
            tell(words)
        return
    document = run.check_finished()
    run.check_parts(*(name.name for name in _names(path) if name.parent == run.path))
    named = path.parent if path.parent.resolve() == run.path else run.path
    words = unsound_words(named, document)
    if words is not None:
        tell(words)


def run_behind(path: Path) -> RunFolder | None:
    """The run that data lies in and that wrote it; None for all other data.

    Raises:
        DataError: There is such a run, and its manifest was changed.
    """
    return next((run for run in map(_run_around, _names(path)) if run is not None), None)


def _names(path: Path) -> list[Path]:
    """What data is called: as it was named, and what that leads to where it is a link."""
    names = [path.parent.resolve() / path.name]
    while names[-1].is_symlink() and len(names) < _HOPS:
        hop = names[-1].parent / names[-1].readlink()
        names.append(hop.parent.resolve() / hop.name)
    return names


def _run_around(place: Path) -> RunFolder | None:
    if not (place.parent / "run.json").is_file():
        return None
    from pubc.runs.folder.run_files import FILES
    from pubc.runs.folder.run_folder import RunFolder, is_run

    try:
        if not is_run(place.parent):
            return None
    except DataError:
        return None  # somebody else's run.json
    if not (place.parent / MANIFEST).exists():
        ours = any(fits(name, FILES) for name in (place.name, f"{place.name}/part"))
        return RunFolder(place.parent) if ours else None
    files = read_manifest(place.parent)["files"]
    ours = any(name == place.name or name.startswith(f"{place.name}/") for name in files)
    return RunFolder(place.parent) if ours else None


def selected_by(path: Path) -> dict[str, Any]:
    """Name, soundness and status of the run that selected data; empty where no run is known.

    Args:
        path: A run, data inside a run, or data that was made from either.

    Raises:
        DataError: There is such a run, and it was changed.
    """
    from pubc.runs.folder.run_folder import RunFolder, is_run

    run = RunFolder(path) if is_run(path) else run_behind(path)
    if run is not None:
        document = run.read()
        verdict = {name: document.get(name) for name in ("sound", "status")}
        return {"name": run.path.resolve().name, **verdict}
    said = [_manifest_of(name).get(SELECTED_BY) for name in _names(path)]
    return next((dict(told) for told in said if isinstance(told, Mapping)), {})


def check_manifest(path: Path, options: formats.ReadOptions) -> None:
    """See that data that pubc wrote is as its manifest says, after it was read.

    What its reader finds says more, so that comes first. What was added to a folder may be.

    Raises:
        DataError: A file was changed or is missing, and the user did not ask to go on without it.
    """
    if options.skip_bad_files:
        return
    for name in _names(path):
        if _manifest_of(name):
            _compare(name)


def _compare(path: Path) -> None:
    parts = [path / name for name in content_of(path)] if path.is_dir() else [path]
    small = sum(part.lstat().st_size for part in parts) <= _HASHED
    for fault in verify(path, digests=small):
        if fault.reason != ADDED:
            raise DataError(
                f"{path}: {fault.file} is not as pubc wrote it ({fault.reason}). Write it anew "
                f"from its source, or delete {_manifest_path(path)} if you changed it on purpose.",
                code="changed",
                field=fault.file,
            )


def _manifest_path(path: Path) -> Path:
    return path / MANIFEST if path.is_dir() else sidecar(path)


def _manifest_of(path: Path) -> dict[str, Any]:
    """What the manifest of a dataset that pubc wrote says; empty for all other data.

    Raises:
        DataError: There is one, and it is not as pubc wrote it.
    """
    place = _manifest_path(path)
    if not os.path.lexists(place) or (path.is_symlink() and place.is_symlink()):
        return {}  # two links: what they lead to is looked at
    beside = place != path / MANIFEST
    try:
        told = read_json(place)
        # A folder may have a manifest.json of somebody else; NAME.manifest.json is ours alone.
        if beside or "seal" in told or told.get("kind") in formats.KINDS:
            told = read_manifest(path)
    except DataError as error:
        raise DataError(
            f"{error} Whether {path.name} is as it was written cannot be told: write it anew from "
            f"its source, or move {place} away if that is none of pubc's.",
            code=error.code,
            field=error.field,
        ) from error
    return told if told.get("kind") in formats.KINDS and "seal" in told else {}
