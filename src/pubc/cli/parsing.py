"""From the words after `pubc COMMAND` to the command: flags, help and complaints in plain words.

The flags of a command come from its dataclass through tyro. What tyro would say in the words of
Python's types (`{None}|FLOAT`, `could not convert string to float`) is said here in the words of
a user, and a flag that does not exist is answered with the one that was probably meant.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import io
import types
import typing
from collections.abc import Iterator
from typing import Any, Union, get_args

import tyro
from tyro.constructors import (
    ConstructorRegistry,
    PrimitiveConstructorSpec,
    PrimitiveTypeInfo,
    UnsupportedTypeAnnotationError,
)

from pubc.cli.examples import EXAMPLES
from pubc.errors import UsageError

__all__ = ["Flag", "flags_of", "parse"]

_FLAGS = ConstructorRegistry()
_NUMBERS: dict[type, tuple[str, str]] = {
    int: ("INT", "a whole number"),
    float: ("FLOAT", "a number"),
}


@dataclasses.dataclass(frozen=True, slots=True)
class Flag:
    """One flag of a command, as a shell completes it."""

    name: str
    """With its two dashes."""
    choices: tuple[str, ...]
    """The words it takes, where they are few."""
    switch: bool
    """Whether it stands alone."""


def parse(command: type, name: str, words: list[str]) -> Any:
    """The command with its flags filled in from the words of the user.

    Args:
        command: The dataclass of the command.
        name: What the user typed after `pubc`.
        words: What follows the name.

    Raises:
        UsageError: The words mean nothing; the message is one sentence.
        SystemExit: Help was asked for, and printed.
    """
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            return tyro.cli(
                command,
                prog=f"pubc {name}",
                args=words,
                config=(tyro.conf.OmitArgPrefixes,),
                registry=_FLAGS,
            )
    except SystemExit as stop:
        if stop.code in (0, None):
            print(_examples(name))
            raise
        told = _sentence(complaint.getvalue())
        meant = _meant(command, words)
        raise UsageError(f"{told}.{meant} `pubc {name} --help` teaches the flags.") from None


def flags_of(command: type) -> list[Flag]:
    """Every flag of a command, in the order of its help."""
    return [flag for field in _fields(command) for flag in field]


def _fields(command: type) -> Iterator[list[Flag]]:
    kinds = typing.get_type_hints(command, include_extras=True)
    for field in dataclasses.fields(command):
        kind = kinds[field.name]
        if dataclasses.is_dataclass(kind) and isinstance(kind, type):
            yield from _fields(kind)
        elif tyro.conf.Positional not in getattr(kind, "__metadata__", ()):
            name = field.name.replace("_", "-")
            choices = get_args(kind) if typing.get_origin(kind) is typing.Literal else ()
            flags = [Flag(f"--{name}", tuple(map(str, choices)), kind is bool)]
            if kind is bool:
                flags.append(Flag(f"--no-{name}", (), True))
            yield flags


def _sentence(complaint: str) -> str:
    """The first paragraph of the parser's framed complaint, as one line."""
    said: list[str] = []
    for line in complaint.splitlines()[1:]:
        text = line.strip("│╭╮╰╯ ")
        if said and not text.strip("─"):
            break
        said.append(text)
    return " ".join(" ".join(said).split()).rstrip(".") or "these flags mean nothing to it"


def _meant(command: type, words: list[str]) -> str:
    known = [flag.name for flag in flags_of(command)] + ["--help"]
    for word in words:
        flag = word.partition("=")[0].replace("_", "-")
        if flag.startswith("--") and flag not in known:
            close = difflib.get_close_matches(flag, known, n=1, cutoff=0.6)
            return f" Did you mean {close[0]}?" if close else ""
    return ""


def _examples(name: str) -> str:
    lines = [f"  {line}" for line in EXAMPLES[name]]
    return "\n".join(["", "examples:", *lines])


@_FLAGS.primitive_rule
def _optional(info: PrimitiveTypeInfo) -> Any:
    """`X | None` is a flag that takes X and may be left out."""
    if info.type_origin not in (Union, types.UnionType):
        return None
    inner = [kind for kind in get_args(info.type) if kind is not type(None)]
    if len(inner) != 1 or len(get_args(info.type)) != 2:
        return None
    asked = PrimitiveTypeInfo.make(inner[0], parent_markers=info.markers)
    spec = ConstructorRegistry.get_primitive_spec(asked)
    if isinstance(spec, UnsupportedTypeAnnotationError):
        return spec
    return dataclasses.replace(
        spec,
        is_instance=lambda value: value is None or spec.is_instance(value),
        str_from_instance=lambda value: (
            ["not", "set"] if value is None else spec.str_from_instance(value)
        ),
    )


@_FLAGS.primitive_rule
def _number(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """A number, refused in words where the text is none."""
    kind: Any = info.type
    if kind not in (int, float):
        return None
    metavar, words = _NUMBERS[kind]

    def read(texts: list[str]) -> Any:
        try:
            if kind is float and texts[0].endswith("%"):
                return float(texts[0][:-1]) / 100  # 5% of the trajectories are a share of 0.05
            return kind(texts[0])
        except ValueError:
            raise ValueError(f"expected {words}, found {texts[0]!r}") from None

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: isinstance(value, kind) and not isinstance(value, bool),
        str_from_instance=lambda value: [str(value)],
    )
