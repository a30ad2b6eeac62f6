"""Every exception pubc raises on purpose, and the exit code each one stands for.

PubcError
├── UsageError              2  the command or call cannot mean anything
│   ├── UnknownNameError    2  a format, recipe, learner … nobody registered
│   └── MissingExtraError   2  an optional dependency is not installed
├── DataError               3  a file or an array is not what its reader promised
├── EnvironmentFailure      4  disk, memory, permission: the machine said no
│   └── LockedError         4  another run is writing to the same place
├── InterruptedRun          5  stopped half way; the same command with --resume goes on
└── UnsoundResult           6  finished, but statistically unsound, and the user asked
"""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Iterable
from pathlib import Path

__all__ = [
    "DataError",
    "EnvironmentFailure",
    "InterruptedRun",
    "LockedError",
    "MissingExtraError",
    "PubcError",
    "UnknownNameError",
    "UnsoundResult",
    "UsageError",
]


class PubcError(Exception):
    """Base of everything pubc raises on purpose."""

    exit_code = 1


class UsageError(PubcError):
    """The command or call cannot mean anything."""

    exit_code = 2


class UnknownNameError(UsageError, LookupError):
    """A name was looked up that nobody registered."""

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        names = sorted(known)
        close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        super().__init__(f"No {kind} named {name!r}.{hint} Known: {', '.join(names)}.")
        self.name = name


class MissingExtraError(UsageError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra {extra!r}. Install it with: {_install(extra)}")
        self.extra = extra


class DataError(PubcError):
    """A file or an array is not what its reader promised.

    Attributes:
        code: Short stable name of the fault, for example `nonfinite`.
        field: The array, key or column at fault, where there is one.
        index: First bad position, where there is one.
        count: How many positions are bad.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        code: str = "bad_data",
        field: str | None = None,
        index: int | tuple[int, ...] | None = None,
        count: int | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.field = field
        self.index = index
        self.count = count


class EnvironmentFailure(PubcError, OSError):
    """Disk, memory or permission: the machine said no."""

    exit_code = 4

    def __str__(self) -> str:
        # OSError formats its arguments in its own way; ours is already a sentence.
        return str(self.args[0]) if self.args else ""


class LockedError(EnvironmentFailure):
    """Another run is writing to the same place."""


class InterruptedRun(PubcError):
    """Stopped half way; what was done is kept and the run can go on."""

    exit_code = 5


class UnsoundResult(PubcError):
    """Finished, but statistically unsound, and the user asked to be told."""

    exit_code = 6


def _install(extra: str) -> str:
    """A line that installs an extra where this pubc came from; it is in no public index."""
    checkout = Path(__file__).resolve().parents[2]
    if (checkout / "pyproject.toml").is_file() and (checkout / "constraints.txt").is_file():
        bounds, source = checkout / "constraints.txt", f"{checkout}[{extra}]"
        return f"pip install --constraint {shlex.quote(str(bounds))} {shlex.quote(source)}"
    # Loads much, and an interrupt before the first line of a command must not meet it.
    from importlib import metadata

    try:
        needs = metadata.requires("pubc") or []
    except metadata.PackageNotFoundError:
        needs = []
    # Requirement; extra == 'NAME', with either kind of quotation mark.
    asked = [need.partition(";") for need in needs]
    wanted = [need.strip() for need, _, when in asked if extra in when.replace('"', "'").split("'")]
    return "pip install " + " ".join(map(shlex.quote, wanted or [f"pubc[{extra}]"]))
