"""Families of the built-in tasks about seeds: wrong ones, repeated ones, one alone."""

from __future__ import annotations

from collections.abc import Iterator

from pubc.experiments.trust.pile import Asked
from pubc.experiments.trust.question import Draft
from pubc.experiments.trust.tasks.mixture import TASKS, Mixture, crowd

__all__ = ["seed_families"]


def seed_families() -> Iterator[Draft]:
    """Every kind of question with unusual seeds."""
    many = crowd(40, 80, ("slow", "shaky", "aim", "detour"))
    two = crowd(40, 40, ("overshoot",))
    asked = {
        ("wrong seeds", "1 of 5 wrong"): (many, Asked(5, wrong=1)),
        ("wrong seeds", "1 of 5 wrong, two policies"): (two, Asked(5, wrong=1)),
        ("wrong seeds", "1 of 4 wrong, two policies"): (two, Asked(4, wrong=1)),
        ("wrong seeds", "2 of 5 wrong, of two others"): (many, Asked(5, wrong=2)),
        # Three against two of one policy: nothing but the vote says who is meant.
        ("wrong seeds", "2 of 5 wrong, two policies"): (
            two,
            Asked(5, wrong=2, answerable=False),
        ),
        ("repeated seeds", "2 and 1 again"): (many, Asked(2, repeated=1)),
        ("repeated seeds", "3 and 2 again"): (many, Asked(3, repeated=2)),
        ("one seed", "of many"): (many, Asked(1)),
        ("one seed", "of two policies"): (two, Asked(1)),
    }
    for task in TASKS:
        for (family, name), (groups, question) in asked.items():
            yield Draft(family, f"{task} {name}", Mixture(task, groups, question))
