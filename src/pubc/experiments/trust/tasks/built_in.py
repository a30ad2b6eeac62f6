"""What a built-in task offers: scenes, sensors, controllers, and a menu of discrete actions."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from pubc.experiments.trust.tasks.behaviour import Style
from pubc.trajectory.arrays import Floats, Integers

__all__ = ["Task"]


class Task(Protocol):
    """A task; a scene holds one row per trajectory."""

    @property
    def name(self) -> str:
        """What the suite calls it."""
        ...

    @property
    def steps(self) -> int:
        """Steps of a trajectory."""
        ...

    @property
    def action_size(self) -> int:
        """Dimensions of an action; where there are four, the last one is a gripper."""
        ...

    @property
    def usual(self) -> float:
        """How large commands usually are; noise and faults are multiples of it."""
        ...

    @property
    def hand(self) -> slice:
        """Where the observation has the position that absolute actions refer to."""
        ...

    def reset(self, count: int, rng: np.random.Generator, places: Integers, kinds: int) -> Any:
        """Fresh scenes."""
        ...

    def sense(self, scene: Any, rng: np.random.Generator) -> Any:
        """What the sensors say."""
        ...

    def observe(self, scene: Any) -> Floats:
        """Observations of what was sensed."""
        ...

    def mistake(self, scene: Any, offset: Floats) -> Any:
        """The scene with the hand seen elsewhere."""
        ...

    def intend(self, scene: Any, style: Style) -> Floats:
        """What a controller of that style does."""
        ...

    def head_for(self, scene: Any, style: Style, place: Floats) -> Floats:
        """The way to another place."""
        ...

    def give_up(self, scene: Any, style: Style) -> Floats:
        """What somebody does who has stopped caring."""
        ...

    def under_way(self, scene: Any, step: int) -> Floats:
        """1 where giving up would be seen."""
        ...

    def advance(self, scene: Any, action: Floats) -> Any:
        """The scenes one step later."""
        ...

    def menu(self) -> Floats:
        """The actions of the discrete version."""
        ...
