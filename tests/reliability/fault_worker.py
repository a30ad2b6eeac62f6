"""A process that has loaded pubc once and runs commands in forks of itself, with faults.

Reads one JSON request per line, {"words", "folder", "at", "how", "program"}, and answers one per
line: {"code", "points", "struck", "out", "err", "seconds"}. A fault is at a point, as
`fault_points` counts them, or with {"signal", "after"} at a moment. The process has never started
a thread or opened an HDF5 file itself, so a fork of it is as good as a new interpreter and comes in
milliseconds.
"""

import contextlib
import gc
import importlib
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

import pubc.__main__
from pubc.cli.early_interrupt import listen
from pubc.errors import PubcError
from tests.reliability.fault_points import Points, install

PATIENCE = 240.0
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve() -> None:
    for name in sys.argv[1:]:  # loaded once for all forks; some need an extra
        with contextlib.suppress(ImportError, PubcError):
            importlib.import_module(name)
    gc.freeze()  # a search for garbage in what was loaded would copy its pages in every fork
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryDirectory() as notes:
            answer = _run(request, Path(notes))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _run(request: dict, notes: Path) -> dict:
    for name in ("out", "err"):  # a kill may come before the child has opened them
        (notes / name).touch()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child can answer them
    child = os.fork()
    if child == 0:
        _child(request, notes)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    began = time.monotonic()
    code = _wait(child, request.get("signal"), began + request.get("after", 0.0))
    seen = (notes / "points").read_text() if (notes / "points").exists() else "[]"
    return {
        "code": code,
        "points": json.loads(seen),
        "struck": (notes / "struck").exists() or code == -signal.SIGKILL,
        "out": (notes / "out").read_text(errors="replace"),
        "err": (notes / "err").read_text(errors="replace"),
        "seconds": time.monotonic() - began,
    }


def _wait(child: int, number: int | None, moment: float) -> int:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        if number is not None and time.monotonic() >= moment:
            os.kill(child, number)
            number = None
        time.sleep(0.005 if number is None else min(0.005, max(0, moment - time.monotonic())))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1000  # it hung


def _child(request: dict, notes: Path) -> None:
    code = 70
    try:
        os.chdir(request["folder"])
        for number, name in ((1, "out"), (2, "err")):
            handle = os.open(notes / name, os.O_CREAT | os.O_WRONLY)
            os.dup2(handle, number)
        points = Points(Path(request["folder"]), request["at"], request["how"])
        install(points)
        if "signal" in request:
            listen()  # before the first signal can come: what Python does until then is not ours
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
        if "signal" in request:  # as from a shell, with all that comes before and after
            sys.argv = ["pubc", *request["words"]]
            code = pubc.__main__.main()
        else:
            code = importlib.import_module(request["program"]).main(request["words"])
        points.at = None
        if sys.flags.dev_mode:
            gc.collect()  # files that nobody closed are told of now
        (notes / "points").write_text(json.dumps(points.seen))
        if points.struck:
            (notes / "struck").touch()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
