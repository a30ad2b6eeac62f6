"""The process that filters behind the page; it ends with the server that started it.

The server writes one line of JSON to its standard input and keeps the pipe open. When the pipe
closes, because the server was stopped or killed, the run stops politely: what it did is kept, and
the next server goes on with it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from pubc.errors import InterruptedRun, PubcError

__all__ = ["main"]

_FAULT = 4
"""Exit code of what pubc has no words for."""


def main() -> int:
    """Do what the line on standard input asks for, and return the exit code."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    request: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_stop_with_the_server, daemon=True).start()
    try:
        _filter(request)
    except KeyboardInterrupt:
        return InterruptedRun.exit_code
    except PubcError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    except Exception as error:
        sys.stderr.write(f"A fault in pubc itself ({type(error).__name__}: {error}).\n")
        return _FAULT
    return 0


def _stop_with_the_server() -> None:
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _filter(request: dict[str, Any]) -> None:
    from pubc.formats import ReadOptions
    from pubc.report import draw_report
    from pubc.runs.filter_config import FilterConfig
    from pubc.runs.filter_run import Listener, carry_out, resume
    from pubc.runs.folder.run_folder import RunFolder
    from pubc.storage import unlock_dead

    reading: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in request["reading"].items()
    }
    listener = Listener(draw=draw_report)
    out = Path(request["out"])
    config = FilterConfig(labels=Path(request["labels"]), reading=ReadOptions(**reading))
    if RunFolder(out).finished:  # by a child that was killed after its last word
        unlock_dead(out)
        return
    if (out / "run.json").is_file():
        resume(out, FilterConfig(), listener=listener)
    else:
        carry_out(config, Path(request["data"]), out, listener=listener)


if __name__ == "__main__":
    sys.exit(main())
