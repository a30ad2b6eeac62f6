"""Families of the built-in tasks about how it was recorded: targets, offsets, still dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from pubc.experiments.trust.changes import (
    absolute_actions,
    add_action_dimension,
    add_still_dimensions,
    sensor_offset,
)
from pubc.experiments.trust.families.acting_families import FAULT_SETS
from pubc.experiments.trust.pile import Asked
from pubc.experiments.trust.question import Draft
from pubc.experiments.trust.tasks.behaviour import EXPERT, faulty
from pubc.experiments.trust.tasks.grid_errand import GridMixture
from pubc.experiments.trust.tasks.mixture import TASKS, Group, Mixture, crowd

__all__ = ["recording_families"]

_HAND = {"pick-place": ((0, 1, 2), 0.025), "arm tracing": ((6, 7), 0.05)}
"""Which states absolute actions refer to, and how far an action of 1 reaches."""


def recording_families() -> Iterator[Draft]:
    """Every kind of question in which the recording is out of the ordinary."""
    for task in TASKS:
        yield from _absolute(task)
        yield from _offsets(task)
        yield from _still(task)
        for faults in (("slow", "shaky", "aim"), ("lag", "repeat", "detour")):
            mixture = Mixture(task, crowd(40, 60, faults), Asked(5), discrete=True)
            yield Draft("discrete actions", f"{task} with {', '.join(faults)}", mixture)
    yield from _errands()


def _absolute(task: str) -> Iterator[Draft]:
    state, reach = _HAND[task]
    change = partial(absolute_actions, state=state, reach=reach)
    for faults in FAULT_SETS:
        groups = crowd(40, 20 * len(faults), faults)
        mixture = Mixture(task, groups, Asked(5), change=change)
        yield Draft("absolute actions", f"{task} with {', '.join(faults)}", mixture)


def _offsets(task: str) -> Iterator[Draft]:
    for fault, name in (("offset", "in the actions of others"), ("aim", "in what others see")):
        mixture = Mixture(task, crowd(40, 40, (fault,)), Asked(3))
        yield Draft("offsets", f"{task} {name}", mixture)
    # The sensors of a second session are off, for everybody: seeds come from both sessions.
    session = partial(sensor_offset, state=_HAND[task][0], size=0.03)
    groups = [
        replace(group, behaviour=replace(group.behaviour, name=name), change=change)
        for group in crowd(20, 30, ("slow", "shaky", "detour"))
        for name, change in (
            (group.behaviour.name, None),
            (f"{group.behaviour.name}, second session", session),
        )
    ]
    asked = Asked(6, ("expert", "expert, second session"))
    yield Draft("offsets", f"{task} in a second session", Mixture(task, tuple(groups), asked))


def _still(task: str) -> Iterator[Draft]:
    still = Group(EXPERT, 40, change=add_action_dimension)
    restless = replace(EXPERT, name="restless")
    moving = Group(restless, 40, change=partial(add_action_dimension, spread=0.3))
    mixture = Mixture(task, (still, moving), Asked(3))
    yield Draft("constant dimensions", f"{task} of the expert's actions", mixture)
    groups = [Group(EXPERT, 40, change=add_still_dimensions)]
    for fault in ("repeat", "overshoot", "offset"):
        change = partial(add_still_dimensions, spread=0.3)
        groups.append(Group(faulty(fault), 20, change=change))
    mixture = Mixture(task, tuple(groups), Asked(3))
    yield Draft("constant dimensions", f"{task} of the expert's states", mixture)


def _errands() -> Iterator[Draft]:
    piles = {
        "two ways": (("expert", 40), ("other way", 40)),
        "all kinds": (
            ("expert", 40),
            *((who, 15) for who in ("zigzag", "hesitates", "wanders", "forgets")),
        ),
        "detours": (("expert", 40), ("detour", 40)),
    }
    for name, counts in piles.items():
        mixture = GridMixture(counts, Asked(5))
        yield Draft("discrete actions", f"grid errand, {name}", mixture)
    alone = GridMixture((("expert", 80),), Asked(5, answerable=False))
    yield Draft("one policy only", "grid errand", alone)
