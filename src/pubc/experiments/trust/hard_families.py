"""Families about seeds, and families without an answer: a filter has to say that it cannot tell."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pubc.experiments.trust.behaviour import EXPERT, Behaviour, faulty
from pubc.experiments.trust.built_in_families import crowd
from pubc.experiments.trust.mixture import TASKS, Group, Mixture, repeat
from pubc.experiments.trust.pile import Asked
from pubc.experiments.trust.question import QuestionSpec

__all__ = ["seed_families", "unanswerable_families"]

_FAULTS = ("slow", "shaky", "aim", "detour")


def seed_families(draws: int) -> Iterator[QuestionSpec]:
    """Wrong seeds, repeated ones, and one alone."""
    for task in TASKS:
        pile = crowd(40, 80, _FAULTS)
        two = crowd(40, 40, ("overshoot",))
        asked = {
            "1 of 5 wrong": (pile, Asked(5, wrong=1)),
            "1 of 5 wrong, two policies": (two, Asked(5, wrong=1)),
            "1 of 3 wrong, two policies": (two, Asked(3, wrong=1)),
            "2 of 5 wrong, of two others": (pile, Asked(5, wrong=2)),
            # Three against two of one policy: nothing but the vote says who is meant.
            "2 of 5 wrong, two policies": (two, Asked(5, wrong=2, answerable=False)),
        }
        for name, (groups, question) in asked.items():
            yield from repeat("wrong seeds", name, Mixture(task, groups, question), draws)
        for seeds, again in ((2, 1), (3, 2)):
            mixture = Mixture(task, pile, Asked(seeds, repeated=again))
            yield from repeat("repeated seeds", f"{seeds} and {again} again", mixture, draws)
        for groups, name in ((pile, "one of many"), (two, "one of two policies")):
            yield from repeat("one seed", name, Mixture(task, groups, Asked(1)), draws)


def unanswerable_families(draws: int) -> Iterator[QuestionSpec]:
    """One policy, tasks that no seed shows, nobody else, and others who act alike."""
    for task in TASKS:
        yield from _one_policy(task, draws)
        yield from _parts(task, draws)
        yield from _absent(task, draws)
        yield from _alike(task, draws)


def _one_policy(task: str, draws: int) -> Iterator[QuestionSpec]:
    asked = Asked(5, answerable=False)
    person = Behaviour("expert", gain=(0.7, 1.3), height=(0.7, 1.3), side=(0.0, 0.4), pace=(0.7, 1.0))
    varied = replace(EXPERT, noise=0.6)
    plain = {
        "alone": Mixture(task, (Group(EXPERT, 80),), asked),
        "of varied style": Mixture(task, (Group(person, 80),), asked),
        "with varied outcomes": Mixture(task, (Group(varied, 80),), asked),
    }
    for kinds in (2, 4, 8):
        plain[f"in {kinds} tasks"] = Mixture(task, (Group(EXPERT, 96),), asked, kinds=kinds)
    for name, mixture in plain.items():
        yield from repeat("one policy only", name, mixture, draws)


def _parts(task: str, draws: int) -> Iterator[QuestionSpec]:
    """One policy with seeds from part of the tasks, alone and among others."""
    for kinds in (2, 4, 8):
        shown = tuple(range(kinds // 2))
        hidden = tuple(range(kinds // 2, kinds))
        one = Group(replace(EXPERT, name="shown"), 40, only=shown)
        two = Group(replace(EXPERT, name="hidden"), 40, only=hidden)
        asked = Asked(5, ("shown", "hidden"), answerable=False, seeds_from=("shown",))
        mixture = Mixture(task, (one, two), asked, kinds=kinds)
        name = f"one policy in {kinds} tasks, seeds from {len(shown)}"
        yield from repeat("seeds from part of the tasks", name, mixture, draws)
        others = tuple(Group(faulty(fault), 20) for fault in ("slow", "shaky"))
        mixture = Mixture(task, (one, two, *others), asked, kinds=kinds)
        name = f"among others in {kinds} tasks, seeds from {len(shown)}"
        yield from repeat("seeds from part of the tasks", name, mixture, draws)


def _absent(task: str, draws: int) -> Iterator[QuestionSpec]:
    for seeds in (3, 5):
        groups = crowd(seeds, 80, _FAULTS)
        mixture = Mixture(task, groups, Asked(seeds, answerable=False))
        yield from repeat("expert absent", f"{seeds} seeds, four others", mixture, draws)
    mixture = Mixture(task, crowd(3, 60, ("overshoot",)), Asked(3, answerable=False))
    yield from repeat("expert absent", "3 seeds, one other", mixture, draws)


def _alike(task: str, draws: int) -> Iterator[QuestionSpec]:
    asked = Asked(5, answerable=False)
    for percent in (1, 2):
        twin = replace(EXPERT, name="twin", gain=(1 + percent / 100, 1 + percent / 100))
        mixture = Mixture(task, (Group(EXPERT, 40), Group(twin, 40)), asked)
        yield from repeat("near-equal policies", f"{percent} % more gain", mixture, draws)
    # Quality without a gap: whoever is better than the seeds is only a little better.
    slower = Behaviour("worse", gain=(0.4, 0.95), pace=(0.4, 0.95))
    best = Behaviour("expert", gain=(0.95, 1.0), pace=(0.95, 1.0))
    mixture = Mixture(task, (Group(best, 20), Group(slower, 80)), asked)
    yield from repeat("continuous quality", "without a gap", mixture, draws)
