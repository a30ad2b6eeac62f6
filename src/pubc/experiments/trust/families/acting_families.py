"""Families of the built-in tasks about how the others act: faults, delays, style, quality."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pubc.experiments.trust.pile import Asked
from pubc.experiments.trust.question import Draft
from pubc.experiments.trust.tasks.behaviour import EXPERT, FAULTS, LAPSES, Behaviour, faulty
from pubc.experiments.trust.tasks.mixture import TASKS, Group, Mixture, crowd

__all__ = ["FAULT_SETS", "PERSON", "acting_families"]

FAULT_SETS = (
    ("detour", "slow", "shaky", "aim", "early"),
    ("pause", "lag", "weak", "drift"),
    ("repeat", "overshoot", "offset", "shaky"),
)
"""Who is in a pile together; every fault is in one of them."""

PERSON = Behaviour(
    "expert",
    gain=(0.8, 1.2),
    damping=(0.8, 1.2),
    height=(0.7, 1.3),
    side=(0.0, 0.3),
    pace=(0.8, 1.0),
)
"""An expert whose style varies from trajectory to trajectory, to the left and to the right."""


def acting_families() -> Iterator[Draft]:
    """Every kind of question in which the others act differently."""
    for task in TASKS:
        yield from _faults(task)
        yield from _lapses(task)
        yield from _delays(task)
        yield from _styles(task)
        yield from _qualities(task)


def _faults(task: str) -> Iterator[Draft]:
    for faults in FAULT_SETS:
        mixture = Mixture(task, crowd(40, 20 * len(faults), faults), Asked(5))
        yield Draft("built-in faults", f"{task} with {', '.join(faults)}", mixture)
    for fault in FAULTS:
        mixture = Mixture(task, crowd(30, 30, (fault,)), Asked(3))
        yield Draft("single faults", f"{task} with {fault}", mixture, once=True)


def _lapses(task: str) -> Iterator[Draft]:
    for lapse in LAPSES:
        mixture = Mixture(task, crowd(40, 40, (lapse,)), Asked(5))
        yield Draft("local lapses", f"{task} with {lapse}", mixture)
    mixture = Mixture(task, crowd(40, 45, LAPSES), Asked(5, bad=3))
    yield Draft("local lapses", f"{task} of all kinds, 3 known bad", mixture)


def _delays(task: str) -> Iterator[Draft]:
    for delay in (1, 2, 3, 4, 6, 8):
        late = replace(faulty("lag"), delay=delay)
        mixture = Mixture(task, (Group(EXPERT, 40), Group(late, 40)), Asked(3))
        yield Draft("delay", f"{task} of {delay} steps", mixture)


def _styles(task: str) -> Iterator[Draft]:
    for faults in FAULT_SETS:
        mixture = Mixture(task, crowd(40, 15 * len(faults), faults, PERSON), Asked(5))
        yield Draft("human style", f"{task} with {', '.join(faults)}", mixture)
    other = replace(PERSON, name="other", gain=(0.4, 0.6), side=(0.6, 0.9), pace=(0.4, 0.6))
    mixture = Mixture(task, (Group(PERSON, 40), Group(other, 40)), Asked(5))
    yield Draft("human style", f"{task} of two people", mixture)


def _qualities(task: str) -> Iterator[Draft]:
    worse = {
        "slow by a quarter and more": Behaviour("worse", fault="slow", strength=(0.5, 1.2)),
        "shaky from a third up": Behaviour("worse", fault="shaky", strength=(0.33, 1.5)),
    }
    for name, behaviour in worse.items():
        mixture = Mixture(task, (Group(EXPERT, 40), Group(behaviour, 60)), Asked(5))
        yield Draft("continuous quality", f"{task} {name}", mixture)
    # Quality without a gap: the best of the others are as good as the worst expert.
    lesser = Behaviour("worse", gain=(0.4, 0.95), pace=(0.4, 0.95))
    best = Behaviour("expert", gain=(0.95, 1.0), pace=(0.95, 1.0))
    groups = (Group(best, 20), Group(lesser, 80))
    mixture = Mixture(task, groups, Asked(5, answerable=False))
    yield Draft("continuous quality", f"{task} without a gap", mixture)
