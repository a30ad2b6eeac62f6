"""Where a result must not go: into a sealed folder, over its own source, or over another result.

A sealed folder holds what its manifest says and nothing else, so whatever is put into it has
`pubc verify` call it damaged. And a result that replaces what it was made from cannot be made
again.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path
from typing import Any

from pubc.errors import PubcError, UsageError
from pubc.storage.manifest import MANIFEST, read_manifest

__all__ = ["check_apart", "check_target", "lies_in"]


def check_target(path: Path, *sources: Path | None) -> None:
    """See that a place may get a result at all, before any work is done for it.

    Args:
        path: Where a result is to go.
        sources: What it is made from, as far as that lies on the disk.

    Raises:
        UsageError: The place lies in a folder that pubc sealed, or holds a source.
    """
    place = Path(os.path.realpath(path))
    for folder in place.parents:
        sealed = _manifest_of(folder)
        if sealed is not None:
            raise UsageError(
                f"{path} lies inside {folder}, which pubc sealed (kind {sealed['kind']!r}): with "
                "more in it `pubc verify` would call it damaged. Choose a place outside."
            )
    for source in sources:
        origin = None if source is None else Path(os.path.realpath(source))
        if origin is not None and lies_in(origin, place):
            told = "is what is read" if origin == place else f"holds {source}"
            raise UsageError(
                f"{path} {told}, so the result would replace its own source. Choose another place."
            )


def check_apart(*paths: Path | None) -> None:
    """See that the results of one command do not get into each other's way, before any work.

    Args:
        paths: A place for each result that was asked for: a file, a folder that is written as a
            whole, or a file in a folder that may hold other things too.

    Raises:
        UsageError: Two are the same place, or one lies inside the other.
    """
    places = [(path, Path(os.path.realpath(path))) for path in paths if path is not None]
    for (inner, inside), (outer, around) in itertools.permutations(places, 2):
        if lies_in(inside, around):
            told = "is named twice" if inside == around else f"lies inside {outer}"
            raise UsageError(
                f"{inner} {told}, but each result of a command needs a place of its own."
            )


def lies_in(inner: Path, outer: Path) -> bool:
    """Whether a place is another or lies inside it, also where a mount gives one two names."""
    return inner.is_relative_to(outer) or any(
        _is_same(step, outer) or (step.name == outer.name and _is_same(step.parent, outer.parent))
        for step in (inner, *inner.parents)
    )


def _is_same(one: Path, other: Path) -> bool:
    with contextlib.suppress(OSError):
        return one.samefile(other)
    return False


def _manifest_of(folder: Path) -> dict[str, Any] | None:
    """The manifest of a folder that pubc sealed; None for any other folder."""
    with contextlib.suppress(PubcError, OSError):
        if (folder / MANIFEST).is_file():
            return read_manifest(folder)
    return None
