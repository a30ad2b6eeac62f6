"""What each fault does to an action, while all trajectories of a recording are played."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pubc.experiments.trust.question import Flags
from pubc.experiments.trust.tasks.behaviour import LAPSES, Behaviour, Style
from pubc.experiments.trust.tasks.built_in import Task
from pubc.trajectory.arrays import Floats, Integers

__all__ = ["Fault", "Moment", "begin_fault"]


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """One step of all trajectories, as their actor finds it."""

    scene: Any
    """What is sensed."""
    style: Style
    """Of the actor."""
    step: int
    """Counts from 0."""
    plain: Floats
    """What the actor does without its fault, shape (trajectories, action dimensions)."""


@dataclass(slots=True, eq=False)
class Fault:
    """A fault, and what it remembers from step to step; one row per trajectory."""

    task: Task
    """Where it happens."""
    kind: str | None
    """One of `FAULTS`; None for nothing."""
    strength: Floats
    """How much of it, shape (trajectories,)."""
    delay: int
    """Of a lag, in steps."""
    start: Integers
    """First step of it, shape (trajectories,)."""
    length: Integers
    """Steps that it lasts, shape (trajectories,)."""
    place: Floats
    """Directions of length 1, shape (trajectories, 4), whatever the kind makes of them."""
    rng: np.random.Generator
    """Source of tremor."""
    tremor: Floats
    """The last tremor."""
    last: Floats
    """The action that is repeated."""
    given_up: Flags
    """Who has given up."""
    late: list[Floats] = field(default_factory=list)
    """Actions that were meant so far."""

    def act(self, now: Moment) -> tuple[Floats, Flags]:
        """What is done before noise, and where that is the actor without its fault."""
        if self.kind is None:
            return now.plain, np.ones(len(now.plain), dtype=np.bool_)
        active = (now.step >= self.start) & (now.step < self.start + self.length)
        if self.kind == "early":
            self.given_up |= (self.task.under_way(now.scene, now.step) > 0) & active
            active = self.given_up
        other = _KINDS[self.kind](self, now)
        return np.where(active[:, None], other, now.plain), ~active


def begin_fault(
    task: Task, behaviour: Behaviour, count: int, steps: int, rng: np.random.Generator
) -> Fault:
    """The fault of a behaviour at the beginning of so many trajectories."""
    kind, strength = behaviour.fault, rng.uniform(*behaviour.strength, count)
    place = rng.normal(size=(count, 4))
    place /= np.linalg.norm(place[:, : min(task.action_size, 3)], axis=1, keepdims=True)
    start, length = np.zeros(count, np.int64), np.full(count, steps)
    if kind in LAPSES:
        start = rng.integers(steps // 16, steps // 3, count)
    if kind in ("detour", "pause"):
        length = np.rint(steps * {"detour": 0.25, "pause": 0.2}[kind] * strength).astype(np.int64)
    still = np.zeros((count, task.action_size))
    nobody = np.zeros(count, dtype=np.bool_)
    return Fault(
        task, kind, strength, behaviour.delay, start, length, place, rng, still, still, nobody
    )


def _detour(fault: Fault, now: Moment) -> Floats:
    return fault.task.head_for(now.scene, now.style, fault.place)


def _pause(fault: Fault, now: Moment) -> Floats:
    # A hand that stands still does not let go.
    still = np.zeros_like(now.plain)
    still[:, 3:] = now.plain[:, 3:]
    return still


def _early(fault: Fault, now: Moment) -> Floats:
    return fault.task.give_up(now.scene, now.style)


def _slow(fault: Fault, now: Moment) -> Floats:
    return now.plain * (1.0 - 0.5 * fault.strength[:, None])


def _shaky(fault: Fault, now: Moment) -> Floats:
    fault.tremor = 0.7 * fault.tremor + 0.7 * fault.rng.normal(size=now.plain.shape)
    return now.plain + 0.6 * fault.task.usual * fault.strength[:, None] * fault.tremor


def _aim(fault: Fault, now: Moment) -> Floats:
    elsewhere = fault.task.mistake(now.scene, fault.strength[:, None] * fault.place)
    return fault.task.intend(elsewhere, now.style)


def _lag(fault: Fault, now: Moment) -> Floats:
    fault.late.append(now.plain)
    return fault.late[max(0, len(fault.late) - 1 - fault.delay)]


def _weak(fault: Fault, now: Moment) -> Floats:
    most = fault.task.usual * (1.0 - 0.65 * fault.strength[:, None])
    return np.clip(now.plain, -most, most)


def _drift(fault: Fault, now: Moment) -> Floats:
    push = 1.5 * fault.task.usual * fault.strength[:, None] * now.step / fault.task.steps
    return now.plain + push * fault.place[:, : now.plain.shape[1]]


def _repeat(fault: Fault, now: Moment) -> Floats:
    every = 1 + np.rint(4 * fault.strength).astype(np.int64)
    fault.last = np.where((now.step % every == 0)[:, None], now.plain, fault.last)
    return fault.last


def _overshoot(fault: Fault, now: Moment) -> Floats:
    gain = now.style.gain * (1.0 + 3.0 * fault.strength)
    damping = now.style.damping * (1.0 - fault.strength)
    pace = now.style.pace + fault.strength * (1.5 - now.style.pace)
    eager = replace(now.style, gain=gain, damping=damping, pace=pace)
    return fault.task.intend(now.scene, eager)


def _offset(fault: Fault, now: Moment) -> Floats:
    pushed = now.plain.copy()
    pushed[:, :3] += 0.5 * fault.task.usual * fault.strength[:, None]
    return pushed


_KINDS: dict[str, Callable[[Fault, Moment], Floats]] = {
    "detour": _detour,
    "pause": _pause,
    "early": _early,
    "slow": _slow,
    "shaky": _shaky,
    "aim": _aim,
    "lag": _lag,
    "weak": _weak,
    "drift": _drift,
    "repeat": _repeat,
    "overshoot": _overshoot,
    "offset": _offset,
}
