"""Ctrl-C before anything has loaded: one sentence and exit code 5 instead of a trace.

Loads nothing but what is built into the interpreter, for it comes before everything else.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` loads much more
import os
import sys

__all__ = ["INTERRUPTED", "leave", "listen"]

INTERRUPTED = 5
"""The exit code of an interrupted command."""
_DOCUMENT = b'{"error": {"kind": "InterruptedRun", "message": "interrupted.", "exit_code": 5}}\n'


def leave(number: int, frame: object) -> None:
    """End the process at once: nothing was done yet that would have to be undone."""
    os.write(2, b"pubc: interrupted.\n")
    if "--json" in sys.argv:
        os.write(1, _DOCUMENT)
    os._exit(INTERRUPTED)


def listen() -> None:
    """From here on an interrupt ends the process, unless somebody made it deaf to them."""
    if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, leave)
