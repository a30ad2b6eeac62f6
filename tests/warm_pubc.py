"""`pubc` from a process that has loaded torch already: tests start it a hundred times.

A server loads the libraries once and forks for every call, so each command has a process, a
folder, an environment and streams of its own, as from a shell. A signal to its caller reaches it,
and where its caller is killed, so is it. In it `auto` trains little (tests/brisk.py). README.md and
the tests of the commands start `pubc` in earnest.

python -m tests.warm_pubc SOCKET            serves until it, or who started it, is killed
python tests/warm_pubc.py SOCKET pubc ...   runs `pubc ...` there
python tests/warm_pubc.py SOCKET python CODE ...
"""

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable
from typing import NoReturn

NEVER_STARTED = 125


def serve(path: str) -> Callable[[], int | None]:
    """Answer calls; returns in the processes that were forked for one, with what to do there."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    caller = os.getppid()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        listening.settimeout(5)
        while True:
            try:
                connection, _ = listening.accept()
            except TimeoutError:
                if os.getppid() != caller:  # the tests were killed
                    return lambda: 0
                continue
            if not os.fork():
                break
            connection.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    text, streams, *_ = socket.recv_fds(connection, 1 << 20, 3)
    while not text.endswith(b"\n"):
        more = connection.recv(1 << 20)
        if not more:  # the caller was killed before it had said all
            os._exit(NEVER_STARTED)
        text += more
    child = os.fork()
    if child:
        watch(connection, child)
    connection.close()
    return become(json.loads(text), streams)


def watch(connection: socket.socket, child: int) -> NoReturn:
    """Hand signals on to a command until it ends, then tell its exit code."""
    ended = os.pidfd_open(child)
    while ended not in (ready := select.select([connection, ended], [], [])[0]):
        assert connection in ready
        numbers = connection.recv(16) or bytes([signal.SIGKILL])  # nobody is there any more
        for number in numbers:
            os.kill(child, number)
        if signal.SIGKILL in numbers:
            break
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
    os._exit(0)


def become(call: dict, streams: list[int]) -> Callable[[], int | None]:
    """Take over the caller's folder, environment and streams."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    # Ours knew what the server's were: a file that can be sought in, a terminal.
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    os.chdir(call["folder"])
    os.environ.clear()
    os.environ.update(call["environment"])
    program, *words = call["words"]
    if program == "python":
        sys.argv = ["-c", *words[1:]]
        sys.path.insert(0, "")
        return lambda: exec(words[0], {"__name__": "__main__"})
    sys.argv = [program, *words]
    return run_pubc


def carry_out(work: Callable[[], int | None]) -> NoReturn:
    """Work and end as Python does, but let the system clear away the libraries.

    Python would unload them one by one, which takes longer than most commands.
    """
    try:
        code = work() or 0
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    if not isinstance(code, int):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def run_pubc() -> int:
    from pubc.__main__ import main

    return main()


def call(path: str, words: list[str]) -> int:
    """Have a command run by the server; its exit code, as a shell would see it."""
    asked = {"words": words, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        text = json.dumps(asked).encode() + b"\n"
        sent = socket.send_fds(connection, [text], [0, 1, 2])
        connection.sendall(text[sent:])
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda number, _: connection.sendall(bytes([number])))
        code = int(connection.recv(16) or NEVER_STARTED)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit(call(sys.argv[1], sys.argv[2:]))
    import pubc.cli.main
    import pubc.cli.parsing
    import pubc.runs.filter_run  # noqa: F401  # loads torch
    from tests.brisk import quickened

    gc.freeze()  # what is here stays: no search for garbage in it, which would copy its pages
    with quickened():
        carry_out(serve(sys.argv[1]))
