"""Under a limit on memory (ulimit -v, -d) a command has somebody who tells how it ended.

Where an array finds no room, Python says so and the command ends in exit code 4. Where a thread of
a library finds none, C++ or the system ends the process, and nobody in it can catch that. So under
such a limit the command runs in a child, and this process waits for it: it passes signals on, ends
as the child ends, and turns a crash into one sentence and exit code 4. What C++ says of its end is
held back for that; everything else that came from below Python is shown at the end.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from typing import NoReturn

from pubc.cli.standard_streams import speak_through
from pubc.errors import EnvironmentFailure

__all__ = ["guard_memory"]

_CRASHES = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
_GOMP = 1
"""How libgomp ends a process that gets no thread; pubc never ends so."""
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGXCPU)
_FROM_THE_TERMINAL = 0x80  # SI_KERNEL: every process of the terminal got it, the child too
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG


def guard_memory() -> None:
    """Under a limit on memory, return in a child alone, whose end its parent tells."""
    limit = _limit()
    if limit is None or not hasattr(os, "memfd_create"):
        return
    import ctypes

    words = os.memfd_create("words of libraries")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, nobody could wait for a child
    parent = os.getpid()
    child = os.fork()
    if child:
        _wait(child, words, limit)
    ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:  # it was killed before we asked to go with it
        os._exit(EnvironmentFailure.exit_code)
    speak_through(os.dup(2))
    os.dup2(words, 2)


def _limit() -> int | None:
    """The tightest limit on memory, in bytes; None without one."""
    found = [resource.getrlimit(which)[0] for which in (resource.RLIMIT_AS, resource.RLIMIT_DATA)]
    return min((one for one in found if one != resource.RLIM_INFINITY), default=None)


def _wait(child: int, words: int, limit: int) -> NoReturn:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD, *_PASSED_ON})
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        heard = signal.sigwaitinfo({signal.SIGCHLD, *_PASSED_ON})
        if heard.si_signo != signal.SIGCHLD and heard.si_code != _FROM_THE_TERMINAL:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, heard.si_signo)
    code = os.waitstatus_to_exitcode(status)
    if code == _GOMP or -code in _CRASHES:
        how = f"signal {-code}" if code < 0 else f"status {code}"
        _tell_crash(how, limit)
    with contextlib.suppress(OSError):
        os.lseek(words, 0, os.SEEK_SET)
        while block := os.read(words, 1 << 16):
            os.write(2, block)
    os._exit(code if code >= 0 else 128 - code)


def _tell_crash(how: str, limit: int) -> NoReturn:
    from pubc.cli.main import report_error

    error = EnvironmentFailure(
        f"a library ended the command ({how}) under a memory limit of {limit >> 10:,} kB (ulimit), "
        "most likely because it found no room. Raise the limit. What stood before stands, and "
        "--resume goes on where the command has it."
    )
    code = report_error(error, "--json" in sys.argv)
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    os._exit(code)
