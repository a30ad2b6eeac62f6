"""Families of the built-in tasks without an answer: a filter has to say that it cannot tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pubc.experiments.trust.families.acting_families import PERSON
from pubc.experiments.trust.pile import Asked
from pubc.experiments.trust.question import Draft
from pubc.experiments.trust.tasks.behaviour import EXPERT, faulty
from pubc.experiments.trust.tasks.mixture import TASKS, Group, Mixture, crowd

__all__ = ["unanswerable_families"]

_KINDS = (2, 4, 8)
"""Numbers of tasks."""


def unanswerable_families() -> Iterator[Draft]:
    """One policy, tasks that no seed shows, nobody else, and others who act alike."""
    for task in TASKS:
        yield from _one_policy(task)
        yield from _parts(task)
        yield from _absent(task)
        yield from _alike(task)


def _one_policy(task: str) -> Iterator[Draft]:
    asked = Asked(5, answerable=False)
    behaviours = {
        "alone": EXPERT,
        "of varied style": PERSON,
        "with varied outcomes": replace(EXPERT, noise=0.6),
    }
    for name, behaviour in behaviours.items():
        mixture = Mixture(task, (Group(behaviour, 80),), asked)
        yield Draft("one policy only", f"{task} {name}", mixture)
    for kinds in _KINDS:
        mixture = Mixture(task, (Group(EXPERT, 96),), asked, kinds=kinds)
        yield Draft("one policy only", f"{task} in {kinds} tasks", mixture)


def _parts(task: str) -> Iterator[Draft]:
    """One policy with seeds from part of the tasks, alone and among others."""
    asked = Asked(5, ("shown", "hidden"), answerable=False, seeds_from=("shown",))
    others = tuple(Group(faulty(fault), 20) for fault in ("slow", "shaky"))
    for kinds in _KINDS:
        half = kinds // 2
        one = (
            Group(replace(EXPERT, name="shown"), 40, only=tuple(range(half))),
            Group(replace(EXPERT, name="hidden"), 40, only=tuple(range(half, kinds))),
        )
        for groups, name in ((one, "one policy"), ((*one, *others), "among others")):
            mixture = Mixture(task, groups, asked, kinds=kinds)
            words = f"{task} {name} in {kinds} tasks, seeds from {half}"
            yield Draft("seeds from part of the tasks", words, mixture)


def _absent(task: str) -> Iterator[Draft]:
    many = ("slow", "shaky", "aim", "detour")
    for seeds, faults in ((3, many), (5, many), (3, ("overshoot",))):
        groups = crowd(seeds, 80, faults)
        mixture = Mixture(task, groups, Asked(seeds, answerable=False))
        yield Draft("expert absent", f"{task} {seeds} seeds, others {len(faults)}", mixture)


def _alike(task: str) -> Iterator[Draft]:
    for percent in (1, 2):
        gain = 1 + percent / 100
        twin = Group(replace(EXPERT, name="twin", gain=(gain, gain)), 40)
        mixture = Mixture(task, (Group(EXPERT, 40), twin), Asked(5, answerable=False))
        yield Draft("near-equal policies", f"{task} {percent} % more gain", mixture)
