"""Documents of JSON as a stranger could send them: limits before anything is made of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pubc.errors import DataError, EnvironmentFailure

__all__ = ["parse_json", "read_json"]

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


def _whole(digits: str) -> int:
    if len(digits) > _DIGITS:
        raise ValueError(f"a whole number of {len(digits):,} digits")
    return int(digits)
