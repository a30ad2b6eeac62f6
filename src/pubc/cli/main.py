"""`pubc`: find the command, parse its flags, run it, and say honestly how it ended.

Help for all commands is a table of words, so that `pubc --help` answers before any
library has loaded; the flags of one command come from its dataclass through tyro.
"""

from __future__ import annotations

import importlib
import json
import signal
import sys
from collections.abc import Sequence
from typing import Any, Protocol

from pubc import __version__
from pubc.errors import PubcError, UnknownNameError

__all__ = ["COMMANDS", "main"]

COMMANDS: dict[str, str] = {
    "inspect": "say what a dataset holds and every problem found in it",
    "convert": "write a dataset in another format",
    "verify": "check files against their manifest",
    "formats": "list the dataset formats",
}
"""Every command with its one line of help; the module of the same name runs it."""

_HELP = """\
pubc {version}: find the expert inside a mixed-quality robot dataset, and clone it.

usage: pubc COMMAND [flags]        pubc COMMAND --help teaches one command

{commands}

Every command takes --json: one JSON document on standard output, nothing else there.
Exit codes: 0 ok, 2 usage, 3 bad input data, 4 environment (disk, memory, permission),
5 interrupted and resumable, 6 finished but statistically unsound (when asked to be told).
"""


class Command(Protocol):
    """A parsed command: a frozen dataclass whose fields are its flags."""

    json: bool

    def run(self) -> dict[str, Any]:
        """Do the work, print for people unless `json`, return the JSON document."""
        ...


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if words else 2
    if words[0] in ("-V", "--version"):
        print(f"pubc {__version__}")
        return 0
    as_json = "--json" in words
    _stop_politely()
    try:
        document = _parse(words).run()
    except PubcError as error:
        return _report(error, as_json)
    except KeyboardInterrupt:
        print("pubc: interrupted.", file=sys.stderr)
        return 5
    except MemoryError:
        print("pubc: not enough memory for this.", file=sys.stderr)
        return 4
    except BrokenPipeError:
        # The reader went away (`pubc inspect x | head`): nothing is wrong with the run.
        sys.stderr.close()
        return 0
    if as_json:
        print(json.dumps(document, indent=1))
    return 0


def _help() -> str:
    lines = [f"  {name:<10} {words}" for name, words in COMMANDS.items()]
    return _HELP.format(version=__version__, commands="\n".join(lines)).rstrip()


def _parse(words: list[str]) -> Command:
    name, flags = words[0], words[1:]
    if name not in COMMANDS:
        raise UnknownNameError("command", name, COMMANDS)
    import tyro

    module = importlib.import_module(f"pubc.cli.{name}")
    command: Command = tyro.cli(
        module.COMMAND,
        prog=f"pubc {name}",
        args=flags,
        config=(tyro.conf.OmitArgPrefixes,),
    )
    return command


def _report(error: PubcError, as_json: bool) -> int:
    from pubc.cli.console import clean

    print(f"pubc: {clean(str(error))}", file=sys.stderr)
    if as_json:
        facts = {
            "kind": type(error).__name__,
            "message": str(error),
            "exit_code": error.exit_code,
        }
        for name in ("code", "field", "index", "count"):
            value = getattr(error, name, None)
            if value is not None:
                facts[name] = value
        print(json.dumps({"error": facts}, indent=1))
    return error.exit_code


def _stop_politely() -> None:
    """A polite kill ends like Ctrl-C: files closed, temporaries removed, exit code 5."""

    def stop(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), stop)


if __name__ == "__main__":
    sys.exit(main())
