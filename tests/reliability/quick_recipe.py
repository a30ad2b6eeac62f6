"""A recipe of a few milliseconds: what is written matters to these tests, not what is found."""

from dataclasses import dataclass, field
from typing import ClassVar

from pubc.nets.fit import Schedule
from pubc.pu.guarded_rounds import Loop
from pubc.pu.paper.ensemble import Ensemble
from pubc.pu.recipes import RECIPES, Paper
from pubc.pu.steps.step_settings import StepSettings


@dataclass(frozen=True, slots=True)
class Quick(Paper):
    """The paper's method with one classifier, one epoch and one round."""

    ensemble: Ensemble = field(
        default_factory=lambda: Ensemble(classifiers=1, subset=64, schedule=Schedule(epochs=1))
    )
    loop: Loop = field(default_factory=lambda: Loop(max_rounds=1))
    step_settings: ClassVar[StepSettings] = StepSettings(
        waves=8, width=8, updates=5, lone_updates=5, rows=1000
    )


RECIPES["quick"] = Quick
