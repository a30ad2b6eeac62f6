"""Functions that the engines are tested with; workers import them by name."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from pubc.errors import DataError, UsageError


def double(item):
    return 2 * item


def add(more, item):
    return item + more


def second_before_first(item):
    """The first item waits for the second, however long its worker takes to start."""
    number, path = item
    if number == 1:
        Path(path).touch()
        return number
    while not Path(path).exists():
        time.sleep(0.1)
    time.sleep(2)
    return number


def sometimes_fail(item):
    if item == 1:
        raise DataError("The third column is not a number.", code="nonfinite")
    if item == 2:
        raise ZeroDivisionError("nothing to divide by")
    if item == 3:
        raise UsageError("That means nothing.")
    return item


def not_plain(item):
    return threading.Lock()


def threads(item):
    import torch

    return torch.get_num_threads(), os.environ.get("OPENBLAS_NUM_THREADS")


def process(item):
    return os.getpid()


def printed(item):
    sys.stdout.write("a library prints\n")
    sys.stdout.flush()
    return item


def dies(item):
    """Die as often as the file named by the item says, counting the calls in it."""
    path, times = item
    with Path(path).open("a") as calls:
        calls.write("x")
    if Path(path).stat().st_size <= times:
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def is_killed(item):
    os.kill(os.getpid(), signal.SIGKILL)


def long_work(path):
    """Say that work began, then take a minute."""
    Path(path).write_text(str(os.getpid()))
    time.sleep(60)
    return path
