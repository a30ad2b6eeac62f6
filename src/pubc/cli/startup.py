"""The first moments of a command, before it has done anything that would have to be undone.

While libraries load, Ctrl-C can strike inside their C code, where an exception becomes a broken
import and a page of traces. So until the flags are read, an interrupt ends the process at once.
"""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from pubc.cli.early_interrupt import listen
from pubc.errors import EnvironmentFailure

__all__ = [
    "begin_quietly",
    "begin_work",
    "check_limits",
    "check_torch_limit",
    "forget_odd_settings",
    "tidy_torch",
    "was_interrupted",
]

_LOADING = 64 << 20
_PER_CORE = 40 << 20
"""Bytes of addresses that loading numpy takes, and for each thread that its OpenBLAS starts."""
_FILES = 64
"""Files that a command may have open at a time, with those that libraries open while they load."""
_TORCH = 450 << 20
"""Bytes of addresses that torch takes at least; its build for the CPU takes 473 MiB."""
_TORCH_CACHE = "TORCHINDUCTOR_CACHE_DIR"
"""Names the folder that torch makes for compiled code, of which pubc has none."""
_COUNT, _SWITCH = r"[1-9][0-9]{0,8}", "true|false"
_PLACES = "(threads|cores|ll_caches|numa_domains|sockets)"
_BOUND = "(master|primary|close|spread)"
_SETTINGS = {
    "OMP_NUM_THREADS": rf"{_COUNT}(\s*,\s*{_COUNT})*",
    "MKL_NUM_THREADS": _COUNT,
    "OMP_THREAD_LIMIT": _COUNT,
    "OMP_MAX_ACTIVE_LEVELS": rf"0|{_COUNT}",
    "OMP_SCHEDULE": rf"((non)?monotonic\s*:\s*)?(static|dynamic|guided|auto)(\s*,\s*{_COUNT})?",
    "OMP_STACKSIZE": rf"{_COUNT}\s*[bkmg]?",
    "OMP_WAIT_POLICY": "active|passive",
    "OMP_DYNAMIC": _SWITCH,
    "OMP_NESTED": _SWITCH,
    "OMP_CANCELLATION": _SWITCH,
    "OMP_PROC_BIND": rf"{_SWITCH}|{_BOUND}(\s*,\s*{_BOUND})*",
    "OMP_PLACES": rf"{_PLACES}(\({_COUNT}\))?|[{{}}0-9:,!\s-]+",
    "GOMP_CPU_AFFINITY": r"[0-9:,\s-]+",
    "GOMP_SPINCOUNT": rf"0|{_COUNT}\s*[kmgt]?|infinit[ey]",
    "GOMP_STACKSIZE": rf"{_COUNT}\s*[bkmg]?",
}
"""Settings of the libraries that compute, in the environment, and what each of them may say."""
_LEARNING = ("demo", "filter", "score", "train", "evaluate", "compare", "export")
"""Commands that always load torch."""


@dataclass
class _Interrupts:
    """What became of interrupts; flags without locks, for one signal may strike within another."""

    came: bool = False
    """Since the command began to work."""
    lost: bool = False
    """The last one struck where Python passes over exceptions."""
    sending: bool = False
    """A thread sends it again."""
    answered: bool = False
    """What that thread sent last has struck."""


_interrupts = _Interrupts()


def begin_quietly() -> None:
    """From here on an interrupt ends the process at once, with one sentence and exit code 5."""
    _interrupts.came = False
    if _ours_to_set():
        listen()


def begin_work() -> None:
    """From here on an interrupt is an exception; a polite kill ends like Ctrl-C.

    Files are closed, temporaries removed, and the exit code is 5.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        _interrupts.came = _interrupts.answered = True
        _interrupts.lost = _is_passed_over(frame)
        if _interrupts.lost:
            return
        if number == getattr(signal, "SIGXCPU", None):
            # It comes again every second, also while the process ends.
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        return  # only the main thread may; a program that calls main() elsewhere decides
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGXCPU"):
        number = getattr(signal, name, None)
        # `nohup` and a shell's background jobs have us deaf to some of them.
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, stop)
    _hear_lost_interrupts()


def was_interrupted() -> bool:
    """Whether an interrupt came since the command began to work.

    A library in C that is struck inside may say that its file is bad: whatever of the data a
    command complains of after that, it ends because somebody stopped it.
    """
    return _interrupts.came


def check_limits() -> None:
    """Refuse limits (ulimit -v, -n) under which libraries fail with words or ends of their own.

    Without memory OpenBLAS would end the process; without files torch would print its worries.

    Raises:
        EnvironmentFailure: There is such a limit.
    """
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files != resource.RLIM_INFINITY and files < _FILES:
        raise EnvironmentFailure(
            f"only {files} files may be open at a time (ulimit -n), and pubc takes up to {_FILES}. "
            "Raise the limit."
        )
    _check_room(_LOADING + _PER_CORE * (os.cpu_count() or 1), "numpy")


def check_torch_limit(command: str) -> None:
    """Refuse a limit under which torch cannot load, where a command needs it.

    The loader ends the process where a library's data for threads finds no room.

    Raises:
        EnvironmentFailure: There is such a limit.
    """
    if command in _LEARNING and "torch" not in sys.modules:
        _check_room(_TORCH, "torch")


def forget_odd_settings() -> None:
    """Remove settings of libraries that say nothing they can use.

    The libraries do as if they were not there, but only after complaints of their own on standard
    error, some with a trace of their C++.
    """
    for name, usable in _SETTINGS.items():
        said = os.environ.get(name)
        if said is not None and not re.fullmatch(usable, said.strip(), re.IGNORECASE):
            del os.environ[name]


def tidy_torch() -> None:
    """Have torch put what it keeps between runs where it goes when this one ends."""
    from pubc.storage import reserve_scratch

    if _TORCH_CACHE not in os.environ:
        with contextlib.suppress(OSError):
            os.environ[_TORCH_CACHE] = str(reserve_scratch("torch"))


def _hear_lost_interrupts() -> None:
    """Have an interrupt come again that struck where Python passes over exceptions.

    While an object is destroyed, and in the callbacks of weak references, of which matplotlib has
    thousands, an exception is printed and forgotten: the command would go on as if nobody had
    asked it to stop.
    """
    before = sys.unraisablehook
    if getattr(before, "__qualname__", "").startswith(_hear_lost_interrupts.__qualname__):
        return

    def hear(lost: sys.UnraisableHookArgs) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            _interrupts.lost = True
        else:
            before(lost)
        if _interrupts.lost and not _interrupts.sending:
            _interrupts.sending = True
            threading.Thread(target=_interrupt_again, daemon=True).start()

    sys.unraisablehook = hear


def _interrupt_again() -> None:
    """Interrupt until that is an exception where somebody hears it."""
    while _interrupts.lost:
        _interrupts.answered = False
        time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGTERM)
        while not _interrupts.answered:
            time.sleep(0.01)
    _interrupts.sending = False


def _is_passed_over(frame: FrameType | None) -> bool:
    """Whether an exception raised here would be lost, for Python is just telling of a lost one."""
    while frame is not None:
        if frame.f_code.co_qualname.startswith(_hear_lost_interrupts.__qualname__):
            return True
        frame = frame.f_back
    return False


def _check_room(more: int, library: str) -> None:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    used = 0
    with contextlib.suppress(OSError, ValueError):
        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    needed = used + more
    if limit < needed:
        raise EnvironmentFailure(
            f"the memory limit (ulimit -v) is {limit >> 10:,} kB, and loading {library} takes "
            f"about {needed >> 10:,} kB. Raise the limit."
        )


def _ours_to_set() -> bool:
    """Whether this is the program itself, and nobody made it deaf to interrupts."""
    main = sys.modules.get("__main__")
    named = os.path.basename(getattr(main, "__file__", None) or "")
    alone = named in ("pubc", "__main__.py", "main.py")
    return alone and threading.current_thread() is threading.main_thread()
