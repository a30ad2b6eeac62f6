"""The flag `--random-seeds`: several random seeds in one word."""

from __future__ import annotations

from pubc.errors import UsageError
from pubc.trajectory.numbered_ids import DIGITS

__all__ = ["parse_seeds"]

_MOST = 4096
"""Random seeds of one training at most; more are a slip of the keyboard."""


def parse_seeds(text: str) -> list[int]:
    """Random seeds such as `0-9` or `0,3,7`.

    Raises:
        UsageError: They are none or too many, or one comes twice.
    """
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise UsageError(f"Random seeds are given as 0-9 or as 0,3,7. Got {text!r}.")
        if max(len(first), len(last)) > DIGITS:
            raise UsageError(f"A random seed has at most {DIGITS} digits.")
        low, high = int(first), int(last or first)
        many = len(found) + high - low + 1
        if many > _MOST:
            raise UsageError(f"At most {_MOST:,} random seeds train at once. Got {many:,}.")
        found += range(low, high + 1)
    if not found or len(set(found)) != len(found):
        raise UsageError(f"Random seeds are at least one, each once. Got {text!r}.")
    return found
