"""Ctrl-C before anything has loaded, or after all is done: one sentence instead of a trace.

Loads nothing but what is built into the interpreter, for it comes before everything else.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` loads much more
import os
import sys

__all__ = ["INTERRUPTED", "leave", "leave_now", "listen", "listen_to_the_end"]

INTERRUPTED = 5
"""The exit code of an interrupted command."""
_DOCUMENT = b'{"error": {"kind": "InterruptedRun", "message": "interrupted.", "exit_code": 5}}\n'


def leave(number: int, frame: object) -> None:
    """End the process at once: nothing was done yet that would have to be undone."""
    try:
        if "--json" in sys.argv:
            os.write(1, _DOCUMENT)
    finally:  # also where nobody can be told
        leave_now(number, frame)


def leave_now(number: int, frame: object) -> None:
    """End the process at once; what it had to say was said."""
    try:
        os.write(2, b"pubc: interrupted.\n")
    finally:
        os._exit(INTERRUPTED)


def listen() -> None:
    """From here on Ctrl-C or a polite kill ends the process, unless it was made deaf to it."""
    if _signal.getsignal(_signal.SIGINT) in (_signal.default_int_handler, _signal.SIG_DFL):
        _signal.signal(_signal.SIGINT, leave)
    for number in (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGXCPU):
        if _signal.getsignal(number) == _signal.SIG_DFL:
            _signal.signal(number, leave)


def listen_to_the_end() -> None:
    """The command is done, and Python takes itself apart: an exception there would be a trace."""
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGXCPU):
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, leave_now)
