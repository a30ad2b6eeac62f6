"""Recipe `auto` with a tenth of its training, for tests of what happens around a filter.

Steps are judged with as little.

The stages, the files and the random streams are those of `auto`, so whatever stops, resumes,
spreads or reads a run meets the same of it. How well it judges is tested with `auto` as it is.

`python tests/brisk.py WORDS` is `pubc WORDS` with that recipe in the place of `auto`.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar

from pubc.__main__ import main

TRAINING = ("demo", "filter")
"""Commands that train by a recipe; the others need not load torch for it."""


@cache
def brisk() -> type:
    """The recipe; made when it is asked for, since it loads torch."""
    from pubc.pu.auto.residual import Residual
    from pubc.pu.guarded_rounds import PatientLoop
    from pubc.pu.recipes import Auto
    from pubc.pu.second_opinion.looks.pile_views import OpinionSettings
    from pubc.pu.steps.step_settings import StepSettings

    @dataclass(frozen=True, slots=True)
    class BriskLoop(PatientLoop):
        """At most three rounds."""

        max_rounds: int = 3
        doubtful_rounds: ClassVar[int] = 2

    @dataclass(frozen=True, slots=True)
    class Brisk(Auto):
        """Auto, with fewer updates, rows, features and rounds."""

        step_settings: ClassVar[StepSettings] = StepSettings(
            waves=24, width=32, updates=25, lone_updates=25, rows=4000
        )

        residual: Residual = field(default_factory=lambda: Residual(updates=25))
        loop: BriskLoop = field(default_factory=BriskLoop)
        opinion: OpinionSettings = field(
            default_factory=lambda: OpinionSettings(updates=25, rows=4000, features=32)
        )

    return Brisk


@contextmanager
def quickened() -> Iterator[None]:
    """Let `auto` be the brisk recipe for a while."""
    from pubc.pu.recipes import RECIPES

    usual = RECIPES["auto"]
    RECIPES["auto"] = brisk()
    try:
        yield
    finally:
        RECIPES["auto"] = usual


if __name__ == "__main__":
    if sys.argv[1:2] and sys.argv[1] in TRAINING:
        with quickened():
            sys.exit(main())
    sys.exit(main())
