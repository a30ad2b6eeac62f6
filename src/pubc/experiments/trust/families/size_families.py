"""Families of the built-in tasks about numbers: rare experts, many, tiny piles and thousands."""

from __future__ import annotations

from collections.abc import Iterator

from pubc.experiments.trust.families.acting_families import FAULT_SETS
from pubc.experiments.trust.pile import Asked
from pubc.experiments.trust.question import Draft
from pubc.experiments.trust.tasks.mixture import TASKS, Mixture, crowd

__all__ = ["size_families"]

_RARE = ((6, 120, 3), (5, 195, 3), (4, 96, 2))
"""Experts, others, seeds."""
_MANY = ((90, 10), (45, 5))
"""Experts, others."""
_TINY = ((8, 2), (12, 2), (20, 3), (30, 3))
"""Trajectories, seeds."""
_THOUSANDS = (2000, 4000)
_SHORT = 20
"""Steps."""


def size_families() -> Iterator[Draft]:
    """Every kind of question with unusual numbers."""
    for task in TASKS:
        for experts, others, seeds in _RARE:
            mixture = Mixture(task, crowd(experts, others, FAULT_SETS[0]), Asked(seeds))
            name = f"{task} {experts} of {experts + others}, {seeds} seeds"
            yield Draft("rare expert", name, mixture)
        for experts, others in _MANY:
            mixture = Mixture(task, crowd(experts, others, FAULT_SETS[0]), Asked(5))
            yield Draft("many experts", f"{task} {experts} of {experts + others}", mixture)
        for count, seeds in _TINY:
            groups = crowd(count // 2, count // 2, ("slow", "shaky", "detour"))
            name = f"{task} {count} trajectories, {seeds} seeds"
            yield Draft("tiny piles", name, Mixture(task, groups, Asked(seeds)))
        for count in _THOUSANDS:
            groups = crowd(count // 2, count // 2, ("slow", "shaky", "aim", "repeat"))
            mixture = Mixture(task, groups, Asked(10), steps=_SHORT)
            yield Draft("thousands of short ones", f"{task} {count} of {_SHORT} steps", mixture)
