"""Recordings of the zoo's policies: every source is played once, and mixtures are cut from it."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pubc import formats
from pubc.collect import Recipe, Request, Source, collect
from pubc.collect.noise import draw as draw_noise
from pubc.collect.noise import ranges
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stage_versions import versions
from pubc.experiments.trust.changes import Change
from pubc.experiments.trust.pile import Asked, ask, draw
from pubc.experiments.trust.question import Question
from pubc.results import key_of
from pubc.streams import stream
from pubc.trajectory import TrajectorySet

__all__ = ["ROBOTS", "RobotMixture", "can_simulate", "record_robot"]

_RECORDED = 60
_NOISE = "N"


def _sources(robot: str, second: str, weak: str, action_noise: float) -> tuple[Source, ...]:
    """E+, E- and W of a robot."""
    return (
        Source("E+", f"{robot}/expert"),
        Source("E-", f"{robot}/{second}"),
        Source("W", f"{robot}/{weak}", action_noise=action_noise),
    )


ROBOTS: dict[str, tuple[Source, ...]] = {
    # Where the zoo has two policies, the weak one is the expert with unsteady hands.
    "halfcheetah": _sources("halfcheetah", "medium", "expert", 0.4),
    "hopper": _sources("hopper", "medium", "expert", 0.4),
    "walker2d": _sources("walker2d", "medium", "expert", 0.4),
    "ant": _sources("ant", "other_expert", "weak", 0.0),
    "humanoid": _sources("humanoid", "other_expert", "weak", 0.0),
}
"""Who acts in each environment."""


def can_simulate() -> bool:
    """Whether MuJoCo is installed."""
    return all(importlib.util.find_spec(name) for name in ("gymnasium", "mujoco"))


def record_robot(cache: Path, robot: str, *, processes: int = 1) -> TrajectorySet:
    """All recordings of a robot; played where the cache does not hold them yet."""
    request = Request(Recipe(f"trust:{robot}", robot, ROBOTS[robot]), None, _RECORDED, seed_steps=0)
    made = Cache(cache, versions())

    def build(folder: Path) -> None:
        collect(request, folder / "data.store", processes=processes)

    key = key_of({**request.plan(), "code": made.code.dataset})
    return formats.read(made.make("datasets", key, build) / "data.store")


@dataclass(frozen=True, slots=True)
class RobotMixture:
    """A pile of a robot; calling it with family and name makes the question."""

    robot: str
    """One of `ROBOTS`."""
    counts: tuple[tuple[str, int], ...]
    """Source and how many of its trajectories."""
    asked: Asked
    """What is asked."""
    cache: Path
    """Where recordings lie."""
    change: Change | None = None
    """What is done to the whole pile before it is shuffled."""

    def __call__(self, family: str, name: str) -> Question:
        """Cut the pile from the recordings and ask."""
        whole = record_robot(self.cache, self.robot)
        rng = stream(0, family, name)
        played = [(s, n) for s, n in self.counts if s != _NOISE]
        parts = [draw(whole, source, count, rng) for source, count in played]
        parts += [_noise(parts, n, rng) for s, n in self.counts if s == _NOISE]
        if self.change is not None:
            parts = [self.change(part, rng) for part in parts]
        return ask((family, name), parts, self.asked, rng)


def _noise(others: Sequence[TrajectorySet], count: int, rng: np.random.Generator) -> TrajectorySet:
    """Noise within the ranges of the others, with their lengths."""
    within = ranges(part.flat() for part in others)
    lengths = np.concatenate([part.lengths for part in others])
    ends = np.concatenate([part.ends() for part in others])
    made = []
    for index, like in enumerate(rng.choice(len(lengths), count)):
        terminal = bool(ends[like] == "terminal")
        made.append(
            draw_noise(
                within, int(lengths[like]), terminal=terminal, source=_NOISE, index=index, rng=rng
            )
        )
    return _as_set(made)


def _as_set(trajectories: Sequence[object]) -> TrajectorySet:
    from pubc.trajectory import Trajectory, concatenate

    sets = []
    for one in trajectories:
        assert isinstance(one, Trajectory)
        sources = np.asarray([one.source], dtype=np.str_)
        sets.append(TrajectorySet.from_flat(one.steps, [len(one)], sources=sources))
    return concatenate(sets)
