"""How somebody acts in a built-in task: a style that may vary, noise, and at most one fault."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pubc.trajectory.arrays import Floats

__all__ = ["EXPERT", "FAULTS", "LAPSES", "Behaviour", "Persona", "Range", "Style", "faulty"]

Range = tuple[float, float]
"""Smallest and largest value; each trajectory draws its own between them."""

LAPSES = ("detour", "pause", "early")
"""Faults of some steps: the rest of the trajectory is the expert's own."""

FAULTS = (
    *LAPSES,
    "slow",
    "shaky",
    "aim",
    "lag",
    "weak",
    "drift",
    "repeat",
    "overshoot",
    "offset",
)
"""Every fault: wrong place first, stands still, gives up half way; half the speed, trembles, sees
its hand elsewhere, acts on what was, lacks force, is pushed more and more to one side, acts every
fifth step only, too eager and undamped, pushed to one side all the time."""


@dataclass(frozen=True, slots=True, eq=False)
class Style:
    """Parameters of a controller, one value per trajectory."""

    gain: Floats
    """Multiple of the usual reaction to an error."""
    damping: Floats
    """Multiple of the usual reaction to speed."""
    height: Floats
    """Multiple of the usual clearance (hand), or stiffness of the posture (arm)."""
    side: Floats
    """How far it swings to the left (above 0) or right of the straight way."""
    pace: Floats
    """Largest command that it gives, as a share of the possible."""


@dataclass(frozen=True, slots=True)
class Persona:
    """Whose hand it is in one question: multiples of the style of everybody in the pile."""

    gain: float
    """See `Style`."""
    damping: float
    """See `Style`."""
    height: float
    """See `Style`."""
    noise: float
    """Of the noise of the actuators."""

    @classmethod
    def draw(cls, rng: np.random.Generator) -> Persona:
        """Somebody at random."""
        gain, damping, height, noise = rng.uniform([0.8, 0.8, 0.8, 0.6], [1.3, 1.2, 1.3, 1.4])
        return cls(float(gain), float(damping), float(height), float(noise))


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A policy of a built-in task."""

    name: str
    """What `sources` calls it."""
    gain: Range = (1.0, 1.0)
    """See `Style`."""
    damping: Range = (1.0, 1.0)
    """See `Style`."""
    height: Range = (1.0, 1.0)
    """See `Style`."""
    side: Range = (0.0, 0.0)
    """See `Style`; its sign is drawn too."""
    pace: Range = (1.0, 1.0)
    """See `Style`."""
    noise: float = 0.05
    """Standard deviation of what its actuators add; the largest action is 1."""
    fault: str | None = None
    """One of `FAULTS`."""
    strength: Range = (1.0, 1.0)
    """How much of the fault; 1 is plain to see."""
    delay: int = 4
    """Steps that the fault `lag` is late."""

    def of(self, person: Persona) -> Behaviour:
        """The same behaviour of somebody else."""
        return replace(
            self,
            gain=_times(self.gain, person.gain),
            damping=_times(self.damping, person.damping),
            height=_times(self.height, person.height),
            noise=self.noise * person.noise,
        )

    def style(self, count: int, rng: np.random.Generator) -> Style:
        """A style for each of so many trajectories."""
        ranges = (self.gain, self.damping, self.height, self.side, self.pace)
        gain, damping, height, side, pace = (rng.uniform(*span, count) for span in ranges)
        sign = rng.choice([-1.0, 1.0], count)
        return Style(gain, damping, height, side * sign, pace)


EXPERT = Behaviour("expert")
"""Who is to be found, unless a family says otherwise."""


def faulty(fault: str, like: Behaviour = EXPERT, strength: float = 1.0) -> Behaviour:
    """Somebody with the style of another and one fault."""
    return replace(like, name=fault, fault=fault, strength=(strength, strength))


def _times(span: Range, factor: float) -> Range:
    return span[0] * factor, span[1] * factor
