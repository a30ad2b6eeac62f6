"""Opening a dataset: from the cache, in a child process, or straight from the file.

Slow formats are kept as a flat copy, so that the second opening takes milliseconds. The key
is the path, size and modification time of every file of the dataset and every option that
changes what is read; a changed dataset is a different key. The copy is a store (see
`pubc.formats.store`) and may be deleted at any time; `cached_copies` keeps all of them within a
limit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

from pubc.errors import EnvironmentFailure, PubcError, UsageError
from pubc.formats import store
from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.formats.opening import cached_copies as copies
from pubc.formats.opening.detect import detect, is_hdf5
from pubc.formats.opening.isolate import Limits, parse_in_child
from pubc.formats.opening.path_hints import not_there
from pubc.formats.opening.trusted_copies import fault_in_copy
from pubc.formats.registry import get, parse
from pubc.storage import lies_in, make_scratch, read_manifest
from pubc.trajectory import Problem, TrajectorySet
from pubc.version import __version__

__all__ = ["REBUILT", "Opened", "dataset_key", "open_dataset"]

OWN = ("store", "npz")
"""Formats whose readers use no parsing library: never isolated, never cached."""
REBUILT = "cache_rebuilt"
"""The notice of a cached copy that was wrong."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A dataset and how it was opened."""

    trajectories: TrajectorySet
    """What it holds."""
    format: str
    """The format it was found to be in."""
    cached: bool = False
    """Whether it came from the flat copy in the cache."""
    isolated: bool = False
    """Whether a child process parsed it."""


def open_dataset(path: Path, options: ReadOptions) -> Opened:
    """Open a dataset the cheapest way that its options allow.

    Raises:
        UsageError: The path does not exist, or no format has the name asked for.
        DataError: The file is not what its format promises.
        EnvironmentFailure: It may not be read, or memory does not suffice.
    """
    name = _name(path, options)
    if name is not None:
        get(name)  # an unknown name is refused before anything is opened
    if name in OWN and options.isolate != "on":
        return Opened(_here(path, name, options), name)
    copy = None
    place = copies.folder()
    # A copy inside the dataset would be a part of it.
    apart = not place.is_symlink() and not lies_in(place.absolute(), path.absolute())
    if options.cache and copies.limit() and apart:
        copy = copies.folder() / f"{dataset_key(path, options)}.store"
    wrong = None
    if copy is not None and copy.is_dir():
        wrong = fault_in_copy(copy, everything=options.verify)
        found = None if wrong else _from_cache(copy)
        if found is not None:
            return found
    opened = _from_source(path, name, options, copy)
    if wrong is None:
        return opened
    return dataclasses.replace(opened, trajectories=_with_notice(opened.trajectories, wrong))


def _with_notice(trajectories: TrajectorySet, wrong: str) -> TrajectorySet:
    notice = Problem(
        REBUILT,
        "noticed",
        f"the copy in the cache was not used and the dataset was read again ({wrong}).",
    )
    return dataclasses.replace(trajectories, problems=(*trajectories.problems, notice))


def _from_source(path: Path, name: str | None, options: ReadOptions, copy: Path | None) -> Opened:
    if options.isolate != "off":
        return _in_child(path, options, copy)
    name = name or detect(path)
    trajectories = _here(path, name, options)
    if copy is not None and get(name).SLOW:
        # A cache that cannot be written costs time, not the result.
        with contextlib.suppress(PubcError):
            copies.write(copy, trajectories, path, name)
            copies.trim(copy)
    return Opened(trajectories, name)


def _here(path: Path, name: str, options: ReadOptions) -> TrajectorySet:
    try:
        return parse(path, name, options)
    except MemoryError:
        raise EnvironmentFailure(f"{path}: not enough memory to read it.") from None


def _name(path: Path, options: ReadOptions) -> str | None:
    """The format, as far as it can be told without a parser."""
    try:
        path.stat()
        return options.format or (None if is_hdf5(path) else detect(path))
    except PubcError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise UsageError(not_there(path)) from None
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {error.strerror}.") from None


def _from_cache(copy: Path) -> Opened | None:
    try:
        name = str(read_manifest(copy).get("origin"))
        opened = Opened(store.read(copy, ReadOptions(), Findings(copy)), name, cached=True)
        copies.touch(copy)
        return opened
    except (PubcError, OSError):
        return None  # absent, or damaged: the source is still there, so read it again


def _in_child(path: Path, options: ReadOptions, copy: Path | None) -> Opened:
    try:
        folder = make_scratch("read")
    except OSError as error:
        raise EnvironmentFailure(
            f"Could not make a temporary folder to read {path} into: {error.strerror}."
        ) from None
    try:
        target = folder / "data.store"
        answer = parse_in_child(path, options, store=target, cache=copy, limits=Limits.of(path))
        place = copy if answer.kept and copy is not None else target
        # The arrays stay mapped when the temporary folder is gone.
        trajectories = store.read(place, ReadOptions(), Findings(place))
        if place == copy:
            copies.trim(copy)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return Opened(trajectories, answer.format, isolated=True)


def dataset_key(path: Path, options: ReadOptions) -> str:
    """A name that changes with the files of a dataset and with how they are read."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    stats = [
        (file.relative_to(path).as_posix(), stat.st_size, stat.st_mtime_ns, stat.st_ino)
        for file in files
        if (stat := file.lstat())
    ]
    chosen = dataclasses.asdict(options) | {"cache": True, "verify": False, "isolate": "off"}
    text = json.dumps([__version__, str(path.resolve()), stats, chosen], default=list)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]
