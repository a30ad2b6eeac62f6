"""A process that has loaded pubc once and runs commands in forks of itself, with faults.

Reads one JSON request per line, {"words", "folder", "at", "how"}, and answers one per line:
{"code", "points", "struck", "out", "err"}. It has never started a thread or opened an HDF5 file
itself, so a fork of it is as good as a new interpreter and comes in milliseconds.
"""

import importlib
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path

from pubc.cli.main import main
from tests.reliability.fault_points import Points, install

PATIENCE = 240.0


def serve() -> None:
    for name in sys.argv[1:]:  # loaded once for all forks
        importlib.import_module(name)
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryDirectory() as notes:
            answer = _run(request, Path(notes))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


def _run(request: dict, notes: Path) -> dict:
    child = os.fork()
    if child == 0:
        _child(request, notes)
    code = _wait(child)
    seen = (notes / "points").read_text() if (notes / "points").exists() else "[]"
    return {
        "code": code,
        "points": json.loads(seen),
        "struck": (notes / "struck").exists() or code == -signal.SIGKILL,
        "out": (notes / "out").read_text(errors="replace"),
        "err": (notes / "err").read_text(errors="replace"),
    }


def _wait(child: int) -> int:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
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
        code = main(request["words"])
        points.at = None
        (notes / "points").write_text(json.dumps(points.seen))
        if points.struck:
            (notes / "struck").touch()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


if __name__ == "__main__":
    serve()
