"""Families of the zoo's walking robots, where MuJoCo is installed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pubc.experiments.trust.changes import absolute_actions
from pubc.experiments.trust.families.robot_recordings import ROBOTS, RobotMixture
from pubc.experiments.trust.pile import Asked
from pubc.experiments.trust.question import Draft

__all__ = ["robot_families"]

_LETTERS = {
    "E+E": ("E+", "E-"),
    "E+W": ("E+", "W"),
    "E+N": ("E+", "N"),
    "E+E+W+N": ("E+", "E-", "W", "N"),
}
_SIZES = {1: 30, 2: 20, 5: 40}
"""Trajectories of each source, by the number of seeds."""
_JOINTS = {
    "halfcheetah": (2, 3, 4, 5, 6, 7),
    "walker2d": (2, 3, 4, 5, 6, 7),
    "ant": (11, 12, 5, 6, 7, 8, 9, 10),
}
"""The state that holds the position of each joint, in the order of the actions."""
_EXPERT = ("E+",)


def robot_families(cache: Path) -> Iterator[Draft]:
    """Every question about the zoo's policies."""
    for robot in ROBOTS:
        for letters, sources in _LETTERS.items():
            for seeds, size in _SIZES.items():
                counts = tuple((source, size) for source in sources)
                mixture = RobotMixture(robot, counts, Asked(seeds, _EXPERT), cache)
                name = f"{letters}, {seeds} seed{'s' * (seeds > 1)}"
                yield Draft("locomotion", f"{robot} {name}", mixture)
    for robot, joints in _JOINTS.items():
        change = partial(absolute_actions, state=joints, reach=0.3)
        mixture = RobotMixture(
            robot, (("E+", 30), ("E-", 30)), Asked(2, _EXPERT), cache, change=change
        )
        yield Draft("absolute actions", f"{robot} as targets of the joints", mixture)
    for robot in ("halfcheetah", "walker2d", "ant"):
        yield from _seeds(robot, cache)
        yield from _without_answer(robot, cache)


def _seeds(robot: str, cache: Path) -> Iterator[Draft]:
    pair = (("E+", 30), ("E-", 30))
    asked = {
        ("wrong seeds", "1 of 5 wrong"): (pair, Asked(5, _EXPERT, wrong=1)),
        ("wrong seeds", "2 of 5 wrong"): (pair, Asked(5, _EXPERT, wrong=2, answerable=False)),
        ("repeated seeds", "2 and 1 again"): (pair, Asked(2, _EXPERT, repeated=1)),
        ("rare expert", "3 of 93, 2 seeds"): (
            (("E+", 3), ("E-", 45), ("W", 45)),
            Asked(2, _EXPERT),
        ),
        ("many experts", "54 of 60"): ((("E+", 54), ("E-", 3), ("W", 3)), Asked(3, _EXPERT)),
        ("tiny piles", "of 10, 2 seeds"): ((("E+", 5), ("E-", 5)), Asked(2, _EXPERT)),
    }
    for (family, name), (counts, question) in asked.items():
        mixture = RobotMixture(robot, counts, question, cache)
        yield Draft(family, f"{robot} {name}", mixture)


def _without_answer(robot: str, cache: Path) -> Iterator[Draft]:
    for source, name in (("E+", "the expert"), ("E-", "the second one, of varied outcomes")):
        asked = Asked(3, (source,), answerable=False)
        mixture = RobotMixture(robot, ((source, 50),), asked, cache)
        yield Draft("one policy only", f"{robot} {name}", mixture)
    counts = (("E+", 3), ("E-", 30), ("W", 30))
    mixture = RobotMixture(robot, counts, Asked(3, _EXPERT, answerable=False), cache)
    yield Draft("expert absent", f"{robot} 3 seeds, two others", mixture)
