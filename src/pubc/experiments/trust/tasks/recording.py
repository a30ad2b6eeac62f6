"""Record a behaviour in a built-in task: all trajectories at once, with the steps that are faulty.

Beside what is done, the actor's intention without its fault is computed at every step. A fault
that does not show there is no fault: such trajectories are left out, others take their place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pubc.errors import DataError
from pubc.experiments.trust.question import Flags
from pubc.experiments.trust.tasks.behaviour import Behaviour
from pubc.experiments.trust.tasks.built_in import Task
from pubc.experiments.trust.tasks.faults import Moment, begin_fault
from pubc.trajectory import Columns, TrajectorySet, concatenate
from pubc.trajectory.arrays import Array, Floats, Integers

__all__ = ["OWN", "Setting", "record", "to_set"]

OWN = "expert_steps"
"""The extra column that says which steps are without fault."""

_VISIBLE = 3.0
"""A fault shows where it moves the action by this multiple of the actuators' noise."""
_TRIES = 20


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """What is the same for all behaviours of a pile."""

    task: Task
    """Where they act."""
    kinds: int = 1
    """How many kinds of task there are: regions that things and goals lie in."""
    only: tuple[int, ...] = ()
    """Of these kinds, which are played; all if empty."""
    steps: int | None = None
    """Steps of a trajectory; those of the task if omitted."""
    discrete: bool = False
    """Whether actions are numbers of the task's menu."""


def record(
    setting: Setting, behaviour: Behaviour, count: int, rng: np.random.Generator
) -> TrajectorySet:
    """Record so many trajectories of a behaviour.

    Raises:
        DataError: Its fault shows in too few trajectories.
    """
    kept: list[TrajectorySet] = []
    missing = count
    for _ in range(_TRIES):
        extra = 0 if behaviour.fault is None else missing // 2 + 2
        played, shown = _play(setting, behaviour, missing + extra, rng)
        chosen = np.flatnonzero(shown)[:missing]
        kept.append(played[chosen])
        missing -= len(chosen)
        if not missing:
            return concatenate(kept)
    raise DataError(
        f"{behaviour.name} in {setting.task.name} shows in too few trajectories.", code="no_fault"
    )


def _play(
    setting: Setting, behaviour: Behaviour, count: int, rng: np.random.Generator
) -> tuple[TrajectorySet, Flags]:
    """So many trajectories, and in which of them a fault shows."""
    task, steps = setting.task, setting.steps or setting.task.steps
    noise = behaviour.noise * task.usual
    style = behaviour.style(count, rng)
    fault = begin_fault(task, behaviour, count, steps, rng)
    places = rng.choice(setting.only or range(setting.kinds), count)
    scene = task.reset(count, rng, places, setting.kinds)
    seen: list[Floats] = []
    done: list[Array] = []
    own = np.ones((count, steps), dtype=np.bool_)
    moved = np.zeros((count, steps))
    for step in range(steps):
        sensed = task.sense(scene, rng)
        plain = task.intend(sensed, style)
        action, own[:, step] = fault.act(Moment(sensed, style, step, plain))
        moved[:, step] = _distance(setting, action, plain)
        action = np.clip(action + rng.normal(0.0, noise, action.shape), -1.0, 1.0)
        if setting.discrete:
            choice = _nearest(task.menu(), action)
            action = task.menu()[choice]
        seen.append(task.observe(sensed))
        done.append(choice[:, None] if setting.discrete else action)
        scene = task.advance(scene, action)
    shown = np.ones(count, dtype=np.bool_) if fault.kind is None else _shows(moved, ~own, noise)
    return to_set(np.stack(seen, 1), np.stack(done, 1), own, behaviour.name), shown


def _distance(setting: Setting, action: Floats, plain: Floats) -> Floats:
    """Mean squared difference of two actions as they are carried out."""
    if setting.discrete:
        menu = setting.task.menu()
        action, plain = menu[_nearest(menu, action)], menu[_nearest(menu, plain)]
    return np.asarray(((np.clip(action, -1.0, 1.0) - plain) ** 2).mean(axis=1))


def _shows(moved: Floats, lapse: Flags, noise: float) -> Flags:
    """Which trajectories have a fault that is plain to see, for eight steps at least."""
    count = lapse.sum(axis=1)
    size = np.sqrt((moved * lapse).sum(axis=1) / np.maximum(count, 1))
    return np.asarray((count >= 8) & (size > _VISIBLE * noise), dtype=np.bool_)


def _nearest(menu: Floats, action: Floats) -> Integers:
    far = ((action[:, None] - menu[None]) ** 2).sum(axis=2)
    return np.asarray(far.argmin(axis=1), dtype=np.int64)


def to_set(observations: Array, actions: Array, own: Flags, source: str) -> TrajectorySet:
    """Trajectories of equal length, shape (trajectories, steps, ...), as a set."""
    count, steps = own.shape
    timeouts = np.zeros((count, steps), dtype=np.bool_)
    timeouts[:, -1] = True
    kind = np.int64 if actions.dtype.kind in "iu" else np.float32
    columns = Columns(
        observations=observations.reshape(count * steps, -1).astype(np.float32),
        actions=actions.reshape(count * steps, -1).astype(kind),
        rewards=None,
        terminals=np.zeros(count * steps, dtype=np.bool_),
        timeouts=timeouts.reshape(-1),
        extras={OWN: own.reshape(-1)},
    )
    sources = np.full(count, source)
    return TrajectorySet.from_flat(columns, np.full(count, steps), sources=sources)
