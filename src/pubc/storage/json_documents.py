"""Documents of JSON as a stranger could send them: limits before anything is made of them."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any, Literal

from pubc.errors import DataError, EnvironmentFailure

__all__ = ["check_settings", "parse_json", "read_json"]

_DIGITS = 300
"""A longer whole number is beyond floating point, and computing with it fails far from here."""


def parse_json(text: str | bytes) -> Any:
    """The value of a piece of JSON.

    Raises:
        ValueError: It is not JSON, or holds a whole number that no computation can take.
        RecursionError: It is too deep.
    """
    return json.loads(text, parse_int=_whole)


def read_json(path: Path, *, limit: int = 64 << 20) -> dict[str, Any]:
    """Read one JSON object, refusing what is too large, too deep or not an object."""
    try:
        size = path.stat().st_size
        if size > limit:
            raise DataError(
                f"{path}: {size:,} bytes of JSON, more than the limit of {limit:,}.",
                code="too_large",
            )
        if not path.is_file():
            raise DataError(f"{path}: not a file.", code="bad_path")
        document = parse_json(path.read_bytes())
    except FileNotFoundError:
        raise DataError(f"{path}: no such file.", code="missing_file") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path}: not readable as JSON ({error}).", code="bad_json") from None
    except OSError as error:
        raise EnvironmentFailure(f"{path}: {error.strerror}.") from error
    if not isinstance(document, dict):
        raise DataError(
            f"{path}: expected a JSON object, found {type(document).__name__}.",
            code="bad_json",
        )
    return document


def check_settings(settings: Any) -> None:
    """See that every field of a dataclass holds what its annotation says.

    Raises:
        TypeError: Naming the first field that does not.
    """
    hints = typing.get_type_hints(type(settings))
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if dataclasses.is_dataclass(value):
            check_settings(value)
        elif not _fits(value, hints[field.name]):
            raise TypeError(f"{field.name} cannot be {str(value)[:60]!r}")


def _fits(value: Any, hint: Any) -> bool:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal:
        return isinstance(value, str) and value in inner
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, inner[0]) for one in value)
    if hint in (int, float):
        return isinstance(value, (int, hint)) and not isinstance(value, bool)
    return isinstance(value, type(None) if hint is None else hint)


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a whole number of {len(digits):,} digits")
    return int(digits)
