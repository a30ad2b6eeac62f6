"""Ids that end in a number, such as demo_12 or 7, and how long such a number may be.

Python makes no whole number of more than 4,300 digits, and a dataset may call its trajectories
anything: an id with more digits than `DIGITS` is a name like any other.
"""

from __future__ import annotations

import re

from pubc.errors import UsageError

__all__ = ["DIGITS", "numbered", "range_ends"]

DIGITS = 100
"""Digits of a number at most. Times in nanoseconds have 19, the longest hashes 78."""
_NUMBERED = re.compile(rf"(.*?)(?<!\d)(\d{{1,{DIGITS}}})", re.DOTALL)
_RANGE = re.compile(r"(?P<start>.*?)(?P<low>\d+)-(?P<again>.*?)(?P<high>\d+)", re.DOTALL)


def numbered(name: str) -> tuple[str, int] | None:
    """What stands before the number that a name ends in, and the number, if there is one.

    Example:
        >>> numbered("demo_12")
        ('demo_', 12)
        >>> numbered("demo")
    """
    found = _NUMBERED.fullmatch(name)
    return None if found is None else (found[1], int(found[2]))


def range_ends(word: str) -> tuple[str, int, int] | None:
    """What the ids of a range begin with, and its first and last number; None if it is no range.

    Example:
        >>> range_ends("demo_4-demo_9"), range_ends("demo_4-9")
        (('demo_', 4, 9), ('demo_', 4, 9))

    Raises:
        UsageError: A number is too long to be one.
    """
    ends = _RANGE.fullmatch(word)
    if ends is None or ends["again"] not in ("", ends["start"]):
        return None
    digits = max(len(ends["low"]), len(ends["high"]))
    if digits > DIGITS:
        raise UsageError(f"The numbers of a range have at most {DIGITS} digits. Got {digits:,}.")
    return ends["start"], int(ends["low"]), int(ends["high"])
