"""The three standard streams, sane whatever the shell made of them.

Without this a closed stream is None in Python, the next file that is opened gets its number, and
`print(file=None)` puts words for standard error among the result. And a standard error that takes
no words (a full disk, a reader that went away) would end a command that is otherwise well.
"""

from __future__ import annotations

import io
import os
import sys

__all__ = ["mend_streams", "speak_through"]

_STREAMS = (("stdin", "r"), ("stdout", "w"), ("stderr", "w"))


class _Forgiving(io.FileIO):
    """A file that drops what it cannot take."""

    def write(self, words: object, /) -> int:
        count = memoryview(words).nbytes  # type: ignore[arg-type]  # typeshed's Buffer
        try:
            return super().write(words) or count  # type: ignore[arg-type]
        except OSError:
            return count


def mend_streams() -> None:
    """Open those of the descriptors 0 to 2 that are closed; standard error never fails again."""
    for number, (name, mode) in enumerate(_STREAMS):
        try:
            os.fstat(number)
        except OSError:
            # A new file gets the lowest number that is free, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
            stream = os.fdopen(number, mode, encoding="utf-8", errors="replace", closefd=False)
            setattr(sys, name, stream)
    speak_through(2)


def speak_through(number: int) -> None:
    """Have standard error of Python go to a descriptor, dropping what that cannot take."""
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(_Forgiving(number, "w", closefd=False)),
        encoding=sys.stderr.encoding,
        errors=sys.stderr.errors,
        line_buffering=True,
    )
