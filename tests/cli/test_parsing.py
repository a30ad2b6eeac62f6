"""No wrong value of any flag of any command ends in a traceback.

Goal R18 of docs/dev/check-full.md.
"""

import importlib
import random

import pytest

from pubc.cli.commands import COMMANDS, module_of
from pubc.cli.parsing import flags_of, parse
from pubc.errors import PubcError

ODD = ("", "two", "-1", "1e400", "nan", "9" * 30, "\x00", "\udcff", "a=b=c", "--", "[1, 2]", "None")


def answer(command: str, words: list[str]) -> str:
    """How reading a command line ends: with a command, a refusal in words, or help."""
    try:
        parse(importlib.import_module(module_of(command)).COMMAND, command, words)
    except PubcError as error:
        told, code, ended = str(error), error.exit_code, "refused"
    except SystemExit as end:
        told, code, ended = "help", end.code or 2, "help"
    else:
        return "parsed"
    assert told
    assert code == 2, told
    return ended


def lines(command: str) -> list[list[str]]:
    kind = importlib.import_module(module_of(command)).COMMAND
    flags = [flag.name for flag in flags_of(kind) if flag.name not in ("-h", "--help")]
    found = [[flag, odd] for flag in flags for odd in ODD]
    return [*found, *([flag] for flag in flags), ["--no-such-flag"], ["--json=maybe"], ["x"] * 30]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_few_odd_values_are_refused_in_words(command, capsys):
    every = lines(command)
    for words in random.Random(command).sample(every, min(6, len(every))):
        answer(command, words)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_odd_value_of_every_flag_is_refused_in_words(command, capsys):
    ended = [answer(command, words) for words in lines(command)]
    assert "refused" in ended
