"""Reading what a user names as data, and saying what they should know of it.

The trajectories that a run kept may be named by themselves, as RUN/kept.npz. The run answers for
them all the same: they must be as it left them, and where it is not sound that is said.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pubc import formats
from pubc.errors import DataError
from pubc.formats.opening.open_dataset import REBUILT
from pubc.runs.statuses import unsound_words
from pubc.storage import MANIFEST, read_manifest
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from pubc.runs.folder.run_folder import RunFolder

__all__ = ["Tell", "check_given", "read_checked", "read_given", "run_behind", "tell_rebuilt"]

Tell = Callable[[str], None]
"""Takes a sentence for the user."""


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
    tell_rebuilt(path, trajectories, tell)
    return trajectories


def tell_rebuilt(path: Path, trajectories: TrajectorySet, tell: Tell) -> None:
    """Say of data that its copy in the cache was wrong, and was made again."""
    for problem in trajectories.problems:
        if problem.code == REBUILT:
            tell(f"{path}: {problem.message}")


def check_given(path: Path, tell: Tell) -> None:
    """See that data inside a finished run is as the run left it, and say where it is not sound.

    Raises:
        DataError: It was changed, or the run was.
    """
    run = run_behind(path)
    if run is None:
        return
    document = run.check_finished()
    run.check_parts(path.resolve().name)
    words = unsound_words(path.parent, document)
    if words is not None:
        tell(words)


def run_behind(path: Path) -> RunFolder | None:
    """The finished run that data lies in and that wrote it; None for all other data.

    Raises:
        DataError: There is such a run, and its manifest was changed.
    """
    place = path.resolve()
    if not all((place.parent / name).is_file() for name in ("run.json", MANIFEST)):
        return None
    from pubc.runs.folder.run_folder import RunFolder, is_run

    try:
        if not is_run(place.parent):
            return None
    except DataError:
        return None  # somebody else's run.json
    files = read_manifest(place.parent)["files"]
    ours = any(name == place.name or name.startswith(f"{place.name}/") for name in files)
    return RunFolder(place.parent) if ours else None
