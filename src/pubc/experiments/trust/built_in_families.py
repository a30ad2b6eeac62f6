"""Families made in the built-in tasks whose expert acts differently from the rest."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from pubc.experiments.trust.behaviour import EXPERT, FAULTS, LAPSES, Behaviour, faulty
from pubc.experiments.trust.changes import (
    absolute_actions,
    add_action_dimension,
    add_still_dimensions,
    sensor_offset,
)
from pubc.experiments.trust.mixture import TASKS, Group, Mixture, repeat
from pubc.experiments.trust.pile import Asked
from pubc.experiments.trust.question import QuestionSpec

__all__ = ["built_in_families", "crowd"]

_SETS = (
    ("detour", "slow", "shaky", "aim", "early"),
    ("pause", "lag", "weak", "drift"),
    ("repeat", "overshoot", "offset", "shaky"),
)
"""Who is in a pile together; every fault is in one of them."""
_HAND = {"pick-place": ((0, 1, 2), 0.025), "arm tracing": ((6, 7), 0.1)}
"""Which states absolute actions refer to, and how far an action of 1 reaches."""


def crowd(
    experts: int, others: int, faults: tuple[str, ...], expert: Behaviour = EXPERT
) -> tuple[Group, ...]:
    """So many trajectories of the expert and, in all, so many with one of the faults each."""
    each, more = divmod(others, len(faults))
    rest = [
        Group(faulty(fault, expert), each + (number < more))
        for number, fault in enumerate(faults)
    ]
    return (Group(expert, experts), *(group for group in rest if group.count))


def built_in_families(draws: int) -> Iterator[QuestionSpec]:
    """Every answerable question that needs no file and no simulator."""
    for task in TASKS:
        yield from _faults(task, draws)
        yield from _shares(task, draws)
        yield from _recordings(task, draws)
        yield from _styles(task, draws)
        yield from _sizes(task, draws)


def _faults(task: str, draws: int) -> Iterator[QuestionSpec]:
    for faults in _SETS:
        mixture = Mixture(task, crowd(40, 20 * len(faults), faults), Asked(5))
        yield from repeat("built-in faults", f"with {', '.join(faults)}", mixture, draws)
    for fault in FAULTS:
        mixture = Mixture(task, crowd(30, 30, (fault,)), Asked(3))
        yield from repeat("single faults", f"with {fault}", mixture, 1)
    for lapse in LAPSES:
        mixture = Mixture(task, crowd(40, 40, (lapse,)), Asked(5))
        yield from repeat("local lapses", f"with {lapse}", mixture, draws)
    mixture = Mixture(task, crowd(40, 45, LAPSES), Asked(5, bad=3))
    yield from repeat("local lapses", "of all kinds, 3 known bad", mixture, draws)
    for delay in (2, 3, 4, 6, 8):
        late = replace(faulty("lag"), delay=delay)
        mixture = Mixture(task, (Group(EXPERT, 40), Group(late, 40)), Asked(3))
        yield from repeat("delay", f"of {delay} steps", mixture, draws)


def _shares(task: str, draws: int) -> Iterator[QuestionSpec]:
    for experts, others, seeds in ((6, 120, 3), (5, 195, 3), (4, 96, 2)):
        mixture = Mixture(task, crowd(experts, others, _SETS[0]), Asked(seeds))
        name = f"{experts} of {experts + others}, {seeds} seeds"
        yield from repeat("rare expert", name, mixture, draws)
    for experts, others in ((90, 10), (45, 5)):
        mixture = Mixture(task, crowd(experts, others, _SETS[0]), Asked(5))
        yield from repeat("many experts", f"{experts} of {experts + others}", mixture, draws)


def _recordings(task: str, draws: int) -> Iterator[QuestionSpec]:
    state, reach = _HAND[task]
    mixture = Mixture(
        task,
        crowd(40, 100, _SETS[0]),
        Asked(5),
        change=partial(absolute_actions, state=state, reach=reach),
    )
    yield from repeat("absolute actions", "as targets of the hand", mixture, draws)
    mixture = Mixture(task, crowd(40, 40, ("offset",)), Asked(3))
    yield from repeat("offsets", "of the actions of others", mixture, draws)
    mixture = Mixture(task, crowd(40, 40, ("aim",)), Asked(3))
    yield from repeat("offsets", "in what others see", mixture, draws)
    other_session = partial(sensor_offset, state=state, size=0.03, share=0.5)
    mixture = Mixture(task, crowd(40, 60, _SETS[0]), Asked(6), change=other_session)
    yield from repeat("offsets", "of the sensors in half of all recordings", mixture, draws)
    wandering = Group(
        replace(EXPERT, name="wandering"), 40, change=partial(add_action_dimension, spread=0.3)
    )
    still = Group(EXPERT, 40, change=add_action_dimension)
    yield from repeat(
        "constant dimensions", "of the expert's actions", Mixture(task, (still, wandering), Asked(3)), draws
    )
    groups = tuple(
        replace(group, change=partial(add_still_dimensions, spread=0.0 if first else 0.3))
        for first, group in zip((True, False, False, False), crowd(40, 60, _SETS[2][:3]), strict=True)
    )
    yield from repeat(
        "constant dimensions", "of the expert's states", Mixture(task, groups, Asked(3)), draws
    )


def _styles(task: str, draws: int) -> Iterator[QuestionSpec]:
    person = Behaviour(
        "expert", gain=(0.8, 1.2), damping=(0.8, 1.2), height=(0.7, 1.3), side=(0.0, 0.3), pace=(0.8, 1.0)
    )
    for faults in _SETS:
        mixture = Mixture(task, crowd(40, 15 * len(faults), faults, person), Asked(5))
        name = f"that varies, with {', '.join(faults)}"
        yield from repeat("human style", name, mixture, draws)
    other = replace(person, name="other", gain=(0.4, 0.6), side=(0.6, 0.9), pace=(0.4, 0.6))
    mixture = Mixture(task, (Group(person, 40), Group(other, 40)), Asked(5))
    yield from repeat("human style", "of two people", mixture, draws)


def _sizes(task: str, draws: int) -> Iterator[QuestionSpec]:
    for count, seeds in ((8, 2), (12, 2), (20, 3), (30, 3)):
        mixture = Mixture(task, crowd(count // 2, count // 2, ("slow", "shaky", "detour")), Asked(seeds))
        yield from repeat("tiny piles", f"of {count}, {seeds} seeds", mixture, draws)
    for count in (2000, 4000):
        groups = crowd(count // 2, count // 2, ("slow", "shaky", "aim", "repeat"))
        mixture = Mixture(task, groups, Asked(10), steps=20)
        yield from repeat("thousands of short ones", f"{count:,} of 20 steps", mixture, draws)
    good = replace(EXPERT, name="expert")
    rest = Behaviour("worse", fault="slow", strength=(0.5, 1.2))
    mixture = Mixture(task, (Group(good, 40), Group(rest, 60)), Asked(5))
    yield from repeat("continuous quality", "slow by a quarter to 60 %", mixture, draws)
    rest = Behaviour("worse", fault="shaky", strength=(0.3, 1.5))
    mixture = Mixture(task, (Group(good, 40), Group(rest, 60)), Asked(5))
    yield from repeat("continuous quality", "shaky from a third up", mixture, draws)
    for faults in (("slow", "shaky", "aim"), ("lag", "repeat", "detour")):
        mixture = Mixture(task, crowd(40, 60, faults), Asked(5), discrete=True)
        yield from repeat("discrete actions", f"with {', '.join(faults)}", mixture, draws)
