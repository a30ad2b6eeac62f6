"""How good a policy is: it acts in its environment, and the returns are counted.

Trajectory 17 is the same trajectory whichever process plays it, and the same start for every
policy that is evaluated with the same random seed, so policies can be compared in pairs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.acting import environments
from pubc.acting.environments.direct import nothing_but_playing
from pubc.acting.rollout import Environment, Policy, play
from pubc.engine import WORKER_DIED, as_error, open_engine
from pubc.errors import DataError, EnvironmentFailure, UsageError
from pubc.metrics import interval, mean_and_spread, normalised_score

__all__ = ["Outcome", "Played", "evaluate", "returns_in_short", "summary"]

Floats = NDArray[np.float64]
MakePolicy = Callable[[], Policy]
"""Gives the policy; called once in each process."""

SOURCE = "evaluation"
"""Under which name policies act, unless another is asked for."""


@dataclass(frozen=True, slots=True)
class Played:
    """One trajectory of an evaluation."""

    index: int
    """Which one, from 0."""
    total_reward: float
    """Its return."""
    steps: int
    """Its length."""


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """All trajectories of an evaluation."""

    returns: Floats
    """Return of each trajectory in order of its index."""
    steps: NDArray[np.int64]
    """Length of each."""

    @classmethod
    def of(cls, played: list[Played]) -> Outcome:
        """Put trajectories that came in any order in order."""
        ordered = sorted(played, key=lambda one: one.index)
        return cls(
            np.array([one.total_reward for one in ordered], dtype=np.float64),
            np.array([one.steps for one in ordered], dtype=np.int64),
        )


def evaluate(
    make_policy: MakePolicy,
    environment: str,
    *,
    episodes: int = 100,
    random_seed: int = 0,
    processes: int = 1,
    source: str = SOURCE,
) -> Iterator[Played]:
    """Play, and yield each trajectory as it ends, in any order.

    Args:
        make_policy: Gives the policy; must be importable where there are several processes.
        environment: Name of the environment.
        episodes: How many trajectories.
        random_seed: Fixes every start and every draw of the policy.
        processes: How many trajectories are played at a time; it does not change them.
        source: With the random seed it keys every start. The same for all policies that are to
            be compared; the name under which a policy is collected plays those trajectories.

    Raises:
        UsageError: A number is out of range.
        MissingExtraError: The environment's simulator is not installed.
        DataError: The policy does not fit the environment.
        EnvironmentFailure: Process after process died.
    """
    if episodes < 1 or processes < 1:
        raise UsageError(
            f"Evaluation takes at least one trajectory and one process. Got {episodes} and "
            f"{processes}."
        )
    environments.spec(environment)
    if processes == 1:
        world, policy = _open(make_policy, environment)
        for index in range(episodes):
            yield _play(world, policy, random_seed, source, index)
        return
    setup = {
        "make_policy": make_policy,
        "environment": environment,
        "random_seed": random_seed,
        "source": source,
    }
    yield from _in_processes(setup, episodes, processes)


def _in_processes(setup: dict[str, Any], episodes: int, processes: int) -> Iterator[Played]:
    with open_engine("processes", workers=min(processes, episodes)) as engine:
        for outcome in engine.map(functools.partial(_work, setup), range(episodes)):
            if outcome.error is None:
                yield outcome.value
            elif outcome.error.kind == WORKER_DIED:
                raise EnvironmentFailure(
                    "Processes that played a trajectory ended without a word, one after another, "
                    "most likely for lack of memory. Try fewer --processes."
                )
            else:
                raise as_error(outcome.error)


_OPEN: list[tuple[Environment, Policy]] = []
"""What a worker plays with, opened for its first trajectory."""


def _work(setup: dict[str, Any], index: int) -> Played:
    if not _OPEN:
        _OPEN.append(_open(setup["make_policy"], setup["environment"]))
        nothing_but_playing()
    world, policy = _OPEN[0]
    return _play(world, policy, setup["random_seed"], setup["source"], index)


def _open(make_policy: MakePolicy, environment: str) -> tuple[Environment, Policy]:
    policy, world = make_policy(), environments.make(environment)
    seen = getattr(policy, "observation_size", world.observation_size)
    acts = getattr(policy, "action_size", world.action_size)
    if (seen, acts) != (world.observation_size, world.action_size):
        raise DataError(
            f"The policy takes {seen} observation numbers to {acts} action numbers, {environment} "
            f"has {world.observation_size} and {world.action_size}. It was trained for another "
            "environment.",
            code="bad_shape",
            field="observations",
        )
    return world, policy


def _play(world: Environment, policy: Policy, random_seed: int, source: str, index: int) -> Played:
    one = play(world, policy, random_seed=random_seed, source=source, index=index)
    return Played(index, one.total_reward, len(one))


def summary(outcome: Outcome, reference: tuple[float, float, str] | None) -> Mapping[str, Any]:
    """An evaluation as JSON values; the score is null where no reference is known."""
    returns, spread = outcome.returns, mean_and_spread(outcome.returns)
    low, high = interval(returns)
    document: dict[str, Any] = {
        "episodes": len(returns),
        "return": {
            "mean": spread.mean,
            "std": spread.deviation,
            "min": spread.low,
            "max": spread.high,
            "interval": [low, high],
        },
        "steps": {"mean": float(outcome.steps.mean()), "total": int(outcome.steps.sum())},
        "score": None,
        "reference": None,
    }
    if reference is not None:
        bounds = (reference[0], reference[1])
        document["score"] = normalised_score(spread.mean, bounds)
        document["score_interval"] = [normalised_score(end, bounds) for end in (low, high)]
        document["reference"] = {"min": bounds[0], "max": bounds[1], "from": reference[2]}
    return document


def returns_in_short(outcome: Outcome) -> dict[str, float]:
    """The line of a zoo card: mean, sample deviation and range of returns, and the mean length."""
    spread = mean_and_spread(outcome.returns)
    return {
        "trajectories": spread.count,
        "mean": round(spread.mean, 1),
        "std": round(spread.deviation, 1),
        "min": round(spread.low, 1),
        "max": round(spread.high, 1),
        "mean_length": round(float(outcome.steps.mean()), 1),
    }
