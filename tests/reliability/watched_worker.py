"""A reader that is watched: an audit hook reports what a dataset must never make it do.

Each line on standard input is `[path, root]`; each line on standard output says how the read
ended, with every file opened outside `root` and Python's own, every process started, every
network socket made and every pickle opened on the way.
"""

import json
import os
import platform
import socket
import sys
from pathlib import Path

VIOLATIONS: list[str] = []
STATE = {"root": "", "watching": False}
FORBIDDEN = ("subprocess.", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn",
             "pickle.find_class", "marshal.loads", "os.remove", "os.rename", "os.mkdir",
             "shutil.", "ctypes.dlopen", "webbrowser", "urllib.")  # fmt: skip
PYTHON = tuple(
    {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2] / "src"), "/usr", "/lib", "/proc",
     "/sys", "/dev/null", "/dev/urandom", "/etc/ld.so", "/etc/localtime"}
)  # fmt: skip


def watch(event: str, arguments: tuple) -> None:
    if not STATE["watching"]:
        return
    STATE["watching"] = False
    try:
        if event == "open" and isinstance(arguments[0], str | bytes):
            path = os.path.realpath(os.fsdecode(arguments[0]))
            if not path.startswith((str(STATE["root"]), *PYTHON)):
                VIOLATIONS.append(f"open {path}")
        elif is_forbidden(event, arguments):
            VIOLATIONS.append(f"{event} {arguments}")
    finally:
        STATE["watching"] = True


def is_forbidden(event: str, arguments: tuple) -> bool:
    if event == "socket.__new__":
        return arguments[1] != socket.AF_UNIX  # event loops talk to themselves
    if event.startswith("socket."):
        return True
    return event.startswith(FORBIDDEN) and not imported(event)


def imported(event: str) -> bool:
    """Whether Python itself does it while it loads a module."""
    frame = sys._getframe(2)
    while frame is not None:
        if "importlib" in frame.f_code.co_filename or "ctypes" in frame.f_code.co_filename:
            return event in ("marshal.loads", "ctypes.dlopen")
        frame = frame.f_back
    return False


sys.addaudithook(watch)


def main() -> None:
    import h5py  # noqa: F401
    import lmdb  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import zarr  # noqa: F401

    from tests.reliability.reader_worker import attempt

    platform.processor()  # asks `uname` once
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        path, root = json.loads(line)
        VIOLATIONS.clear()
        STATE.update(root=os.path.realpath(root), watching=True)
        answer = attempt(Path(path))
        STATE["watching"] = False
        print(json.dumps(answer | {"violations": list(VIOLATIONS)}), file=answers, flush=True)


if __name__ == "__main__":
    main()
