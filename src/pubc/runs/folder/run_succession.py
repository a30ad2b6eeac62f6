"""Where a run is written while the folder that it is for holds a finished one.

`pubc filter --force` keeps the earlier result until the new one is whole: the new run grows in
the hidden folder beside it (`pubc.storage.successor`), is interrupted and continued there, and
takes its place at the end. An unfinished run is no result, so it goes at once.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from pubc.errors import DataError, UsageError
from pubc.runs.folder.run_files import DRAFT, KIND
from pubc.runs.folder.run_folder import RunFolder, is_run
from pubc.storage import claim, has_replaced, lock, retire, successor, unlock_dead
from pubc.storage.disk import (
    LOCK,
    disk_words,
    is_lock,
    is_temporary,
    place_of,
    remove,
    sweep,
    temporary,
)

__all__ = ["check_place", "claim_run", "is_free", "run_in_one_go", "run_to_go_on_with"]


def check_place(path: Path, *, force: bool) -> None:
    """See that a new run may go to a folder; nothing is changed.

    Args:
        path: Where the run is to be in the end.
        force: Whether it may replace an earlier run there.

    Raises:
        UsageError: Something is there that must not be replaced.
        LockedError: A run is at work there.
    """
    taken = not is_free(path)
    if taken and not _holds_run(path):
        raise UsageError(f"{path} exists and is not the folder of a filter run. Choose another.")
    if not force and not is_free(successor(path)):
        raise UsageError(
            f"{path}: a run that is to take this place is not finished. Go on with it (pubc filter "
            f"--resume {path}), choose another folder, or pass --force to begin anew."
        )
    if taken and not force:
        raise UsageError(
            f"{path} holds a run already. Go on with it (pubc filter --resume {path}), choose "
            "another folder, or pass --force to replace it."
        )
    for place in (path, successor(path)):
        if not is_free(place):
            claim(place, KIND, force=True, draft=DRAFT)
            with lock(place):
                pass


def claim_run(path: Path, *, force: bool) -> RunFolder:
    """Make room for a new run, and say where it is to be written.

    Args:
        path: Where the run is to be in the end.
        force: Whether it may replace an earlier run there.

    Raises:
        UsageError: Something is there that must not be replaced.
        LockedError: A run is at work there.
    """
    check_place(path, force=force)
    coming = successor(path)
    _discard(coming, path)
    if RunFolder(path).finished:
        return RunFolder(coming, path)
    if not is_free(path):
        _discard(path, path)
    return RunFolder(path)


@contextlib.contextmanager
def run_in_one_go(path: Path, *, force: bool) -> Iterator[RunFolder]:
    """A folder for a run whose rounds are over, which takes its place when it is finished.

    Args:
        path: Where the run is to be in the end.
        force: Whether it may replace an earlier run there.

    Raises:
        UsageError: Something is there that must not be replaced.
        LockedError: A run is at work there.
        EnvironmentFailure: The disk said no.
    """
    check_place(path, force=force)
    with disk_words(path):
        new = temporary(place_of(path))
        try:
            yield RunFolder(new, path)
        finally:
            remove(new)
    _discard(successor(path), path)


def run_to_go_on_with(path: Path) -> RunFolder:
    """The run behind a folder: the one that is to take its place, where such a one was begun.

    A run that is whole and was killed before it took its place takes it now; what is left of the
    one that it replaced goes.

    Raises:
        DataError: The run that is to take the place is damaged.
        UsageError: What is at its place must not be replaced.
        LockedError: A run is at work there.
    """
    coming = RunFolder(successor(path), path)
    if coming.path.parent.is_dir():
        with disk_words(path):
            sweep(place_of(path))
    if is_free(coming.path) or has_replaced(path, coming.path, "run.json"):
        _discard(coming.path, path)
    elif coming.finished:
        with lock(coming.path):
            coming.check_parts()
            coming.take_place()
    else:
        return coming
    here = RunFolder(path)
    if here.finished:
        # It may have been killed after its last word.
        unlock_dead(path)
    return here


def is_free(path: Path) -> bool:
    """Whether nothing is there, but for what a run killed before its first word leaves."""
    if path.is_symlink():
        return False
    return not path.exists() or (path.is_dir() and all(map(_is_leftover, path.iterdir())))


def _is_leftover(path: Path) -> bool:
    return is_temporary(path.name) or (path.name == LOCK and is_lock(path))


def _holds_run(path: Path) -> bool:
    try:
        return is_run(path)
    except DataError:
        return False


def _discard(path: Path, of: Path) -> None:
    """Remove a folder of a run; `of` is the place that it has, or was to have."""
    if not os.path.lexists(path):
        return
    if not is_free(path):
        claim(path, KIND, force=True, draft=DRAFT)
    with lock(path), disk_words(path):
        retire(path, of)
