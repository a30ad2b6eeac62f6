"""Which version of a stage computed a number: a count that is raised by hand.

A record is found again only if the stages that would compute it give what they gave then. Moving
files and rewriting code change no number, so the source says nothing about that; whoever changes
what a stage computes raises its count here, in the same commit. Golden checks hold it
(tests/experiments/golden.py): tiny cells with exact results, which fail until the count of their
stage is raised.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

__all__ = ["NUMBERS", "Versions", "versions"]

NUMBERS = MappingProxyType({"dataset": 1, "filter": 14, "learner": 2})
"""How often each stage has come to compute something else, from 1."""

_FIRST = {"dataset": "adb344ba2991adbc"}
"""What records call the first version: before there were counts, a digest of its source."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The version of each stage, as records name it."""

    dataset: str
    """Of what makes datasets."""
    filter: str
    """Of what selects trajectories."""
    learner: str
    """Of what learns and evaluates policies."""


def versions() -> Versions:
    """The versions of the stages that are installed."""
    names = {stage: _FIRST[stage] if n == 1 else str(n) for stage, n in NUMBERS.items()}
    return Versions(**names)
