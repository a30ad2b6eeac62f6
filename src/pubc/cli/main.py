"""`pubc`: find the command, parse its flags, run it, and say honestly how it ended.

Help for all commands is a table of words, so that `pubc --help` answers before any
library has loaded; `pubc.cli.parsing` reads the flags of one command.
"""

from __future__ import annotations

import importlib
import io
import json
import math
import os
import shutil
import sys
import traceback
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TextIO

from pubc.cli.commands import COMMANDS, module_of
from pubc.cli.plain_text import one_line
from pubc.cli.startup import (
    begin_quietly,
    begin_work,
    check_limits,
    check_torch_limit,
    forget_odd_settings,
    tidy_torch,
    was_interrupted,
)
from pubc.errors import (
    EnvironmentFailure,
    InterruptedRun,
    PubcError,
    UnknownNameError,
)
from pubc.version import __version__

__all__ = ["COMMANDS", "main", "report_error"]

_HELP = """\
pubc {version}: find the expert inside a mixed-quality robot dataset, and clone it.

usage: pubc COMMAND [flags]        pubc COMMAND --help teaches one command

{commands}

Every command takes --json: one JSON document on standard output, nothing else there.
Exit codes: 0 ok, 2 usage, 3 bad input data, 4 environment (disk, memory, permission),
5 interrupted and resumable, 6 finished but statistically unsound (when asked to be told).
"""
_NARROWEST = 40
"""Columns that words are laid out in at least."""
_NO_MEMORY = (
    "cannot allocate memory",
    "can't allocate memory",
    "failed to map segment",
    "bad_alloc",
    "can't start new thread",
    "not enough memory",
    "out of memory",
)
"""How loaders and libraries put it that there is no memory."""


class Command(Protocol):
    """A parsed command: a frozen dataclass whose fields are its flags."""

    json: bool

    def run(self) -> dict[str, Any]:
        """Do the work, print for people unless `json`, return the JSON document."""
        ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _print_anything()
    try:
        code = _run(words)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader went away (`pubc inspect x | head`): nothing is wrong with the run.
        _forget_output()
        return 0
    except KeyboardInterrupt:  # while the result was printed
        _forget_output()
        print("pubc: interrupted.", file=sys.stderr)
        return InterruptedRun.exit_code
    except OSError as error:
        _forget_output()
        print(f"pubc: could not print the result: {error.strerror}.", file=sys.stderr)
        return EnvironmentFailure.exit_code


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        print(f"pubc {__version__}")
        return 0
    as_json = "--json" in words
    begin_quietly()
    try:
        forget_odd_settings()
        check_limits()
        command = _parse(words)
        check_torch_limit(words[0])
        tidy_torch()
        begin_work()
        if not os.environ.get("PUBC_DEBUG"):
            warnings.showwarning = _tell_warning
        document = command.run()
    except SystemExit as stop:  # --help
        return int(stop.code or 0)
    except BrokenPipeError:
        raise
    except (Exception, KeyboardInterrupt) as error:
        return report_error(_ours(error), as_json)
    if as_json:
        print(_dump(document))
    return 0


def _ours(error: BaseException) -> PubcError:
    """What went wrong as one of the errors that pubc has words for."""
    if was_interrupted() and not isinstance(error, InterruptedRun | EnvironmentFailure):
        return InterruptedRun("interrupted.")
    # What a worker says of a library that got no memory is a fault in its words.
    if isinstance(error, PubcError) and not (type(error) is PubcError and _means_no_memory(error)):
        return error
    # A library that was interrupted while it loaded says that it could not be loaded.
    stopped = error.__cause__ or error.__context__ if isinstance(error, ImportError) else error
    if isinstance(stopped, KeyboardInterrupt):
        return InterruptedRun("interrupted.")
    if isinstance(error, MemoryError) or _means_no_memory(error):
        return EnvironmentFailure("not enough memory for this.")
    if isinstance(error, OSError):
        return EnvironmentFailure(f"{error.filename or 'the system'}: {error.strerror or error}.")
    if os.environ.get("PUBC_DEBUG"):
        raise error
    return _bug(error)


def _means_no_memory(error: BaseException | None) -> bool:
    """Whether a library said in its own words that it got no memory."""
    while error is not None:
        told = str(error).lower()
        if isinstance(error, MemoryError) or any(words in told for words in _NO_MEMORY):
            return True
        error = error.__cause__ or error.__context__
    return False


def _forget_output() -> None:
    """Let what is left to print go nowhere, or Python would complain while it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _bug(error: BaseException) -> PubcError:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return PubcError(
        f"a fault in pubc itself ({type(error).__name__}: {error}, at "
        f"{os.path.basename(last.filename)}:{last.lineno}). Please report it; with "
        "PUBC_DEBUG=1 in the environment the whole trace is shown."
    )


def _help() -> str:
    lines = [f"  {name:<10} {words}" for name, words in COMMANDS.items()]
    return _HELP.format(version=__version__, commands="\n".join(lines)).rstrip()


def _parse(words: list[str]) -> Command:
    name, flags = words[0], words[1:]
    if name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS)
    from pubc.cli.parsing import parse

    command: Command = parse(importlib.import_module(module_of(name)).COMMAND, name, flags)
    return command


def _dump(document: dict[str, Any]) -> str:
    """JSON that every parser accepts: what is not a number becomes null."""
    return json.dumps(_plain(document), indent=1, allow_nan=False, default=str)


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return value


def report_error(error: PubcError, as_json: bool) -> int:
    """Say what went wrong, to people and with --json to programs; the exit code."""
    print(f"pubc: {one_line(str(error))}", file=sys.stderr)
    if as_json:
        facts: dict[str, Any] = {
            "kind": type(error).__name__,
            "message": str(error),
            "exit_code": error.exit_code,
        }
        for name in ("code", "field", "index", "count"):
            value = getattr(error, name, None)
            if value is not None:
                facts[name] = value
        print(_dump({"error": facts}))
    return error.exit_code


def _print_anything() -> None:
    """A character that cannot be shown becomes '?', and a line is seen at once, also in a log."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace", line_buffering=True)
    if shutil.get_terminal_size().columns < _NARROWEST:
        os.environ["COLUMNS"] = str(_NARROWEST)  # tables in fewer take minutes to lay out


def _tell_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning of a library as one line about the run, without a place in its code."""
    print(f"pubc: a library warns: {one_line(str(message))}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
