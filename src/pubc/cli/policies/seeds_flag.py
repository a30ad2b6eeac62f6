"""The flag `--random-seeds`: several random seeds in one word."""

from __future__ import annotations

from pubc.errors import UsageError

__all__ = ["parse_seeds"]


def parse_seeds(text: str) -> list[int]:
    """Random seeds such as `0-9` or `0,3,7`.

    Raises:
        UsageError: They are none, or one comes twice.
    """
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdecimal() or not (last or first).isdecimal():
            raise UsageError(f"Random seeds are given as 0-9 or as 0,3,7. Got {text!r}.")
        found += range(int(first), int(last or first) + 1)
    if not found or len(set(found)) != len(found):
        raise UsageError(f"Random seeds are at least one, each once. Got {text!r}.")
    return found
