"""How good a policy is: it acts in its environment, and the returns are counted.

Trajectory 17 is the same trajectory whichever process plays it, and the same start for every
policy that is evaluated with the same random seed, so policies can be compared in pairs.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pubc.acting import environments
from pubc.acting.environments.direct import nothing_but_playing
from pubc.acting.rollout import Environment, Policy, play
from pubc.errors import DataError, EnvironmentFailure, UsageError
from pubc.streams import stream

__all__ = ["REFERENCES", "Outcome", "Played", "evaluate", "interval", "score", "summary"]

Floats = NDArray[np.float64]
MakePolicy = Callable[[], Policy]
"""Gives the policy; called once in each process."""

REFERENCES: dict[str, tuple[float, float, str]] = {
    "halfcheetah": (-280.178953, 12135.0, "D4RL"),
    "hopper": (-20.272305, 3234.3, "D4RL"),
    "walker2d": (1.629008, 4592.3, "D4RL"),
    "ant": (-325.6, 3879.7, "D4RL"),
    "humanoid": (112.0, 6213.0, "fitted to the paper"),
    "trifinger-push": (0.0, 750.0, "TriFinger"),
    "trifinger-lift": (0.0, 1500.0, "TriFinger"),
}
"""Returns that count as scores 0 and 1, and who says so.

D4RL's are those of github.com/Farama-Foundation/D4RL, d4rl/infos.py (REF_MIN_SCORE and
REF_MAX_SCORE of the v0 sets; the later sets have the same); the minima were compared with that
file, the maxima with copies of it in other projects. D4RL has no humanoid, and the paper does not
print its own: its expert's 5,725 scores 0.92 (Tables 2 and 4) and its weak policy's
1,576 scores 0.24 (twice 0.58 less 0.92), which lie on this line.
"""

_SOURCE = "evaluation"
_RESAMPLES = 10_000


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
) -> Iterator[Played]:
    """Play, and yield each trajectory as it ends, in any order.

    Args:
        make_policy: Gives the policy; must be importable where there are several processes.
        environment: Name of the environment.
        episodes: How many trajectories.
        random_seed: Fixes every start and every draw of the policy.
        processes: How many trajectories are played at a time; it does not change them.

    Raises:
        UsageError: A number is out of range.
        MissingExtraError: The environment's simulator is not installed.
        DataError: The policy does not fit the environment.
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
            yield _play(world, policy, random_seed, index)
        return
    yield from _in_processes(make_policy, environment, episodes, random_seed, processes)


def _in_processes(
    make_policy: MakePolicy, environment: str, episodes: int, random_seed: int, processes: int
) -> Iterator[Played]:
    pool = ProcessPoolExecutor(
        min(processes, episodes),
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_start,
        initargs=(make_policy, environment, random_seed),
    )
    with pool:
        waiting = [pool.submit(_work, index) for index in range(episodes)]
        try:
            for done in as_completed(waiting):
                yield done.result()
        except BrokenProcessPool:
            raise EnvironmentFailure(
                "A process that played trajectories ended without a word, most likely for lack "
                "of memory. Try fewer --processes."
            ) from None
        finally:
            for one in waiting:
                one.cancel()


_WORKER: dict[str, Any] = {}
"""What a process of the pool plays with; filled once by `_start`."""


def _start(make_policy: MakePolicy, environment: str, random_seed: int) -> None:
    # An error here would only say that the pool broke, so it waits for the first trajectory.
    _WORKER.update(make_policy=make_policy, environment=environment, random_seed=random_seed)


def _work(index: int) -> Played:
    if "world" not in _WORKER:
        _WORKER["world"] = _open(_WORKER["make_policy"], _WORKER["environment"])
        nothing_but_playing()
    world, policy = _WORKER["world"]
    return _play(world, policy, _WORKER["random_seed"], index)


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


def _play(world: Environment, policy: Policy, random_seed: int, index: int) -> Played:
    one = play(world, policy, random_seed=random_seed, source=_SOURCE, index=index)
    return Played(index, one.total_reward, len(one))


def interval(values: ArrayLike, *, level: float = 0.95) -> tuple[float, float]:
    """Bootstrap confidence interval of the mean; a single value has no width."""
    sample = np.asarray(values, dtype=np.float64)
    rng = stream(0, "bootstrap", len(sample))
    drawn = rng.integers(len(sample), size=(_RESAMPLES, len(sample)))
    low, high = np.quantile(sample[drawn].mean(axis=1), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def score(total_reward: float, reference: tuple[float, float]) -> float:
    """The paper's normalised score: 0 at the lower reference return, 1 at the upper.

    Example:
        >>> score(750.0, (0.0, 1500.0))
        0.5

    Raises:
        UsageError: The references do not rise.
    """
    low, high = reference
    if not low < high:
        raise UsageError(f"The reference returns must rise from 0 to 1. Got {low} and {high}.")
    return (total_reward - low) / (high - low)


def summary(outcome: Outcome, reference: tuple[float, float, str] | None) -> Mapping[str, Any]:
    """An evaluation as JSON values; the score is null where no reference is known."""
    returns = outcome.returns
    low, high = interval(returns)
    document: dict[str, Any] = {
        "episodes": len(returns),
        "return": {
            "mean": float(returns.mean()),
            "std": float(returns.std(ddof=1)) if len(returns) > 1 else 0.0,
            "min": float(returns.min()),
            "max": float(returns.max()),
            "interval": [low, high],
        },
        "steps": {"mean": float(outcome.steps.mean()), "total": int(outcome.steps.sum())},
        "score": None,
        "reference": None,
    }
    if reference is not None:
        bounds = (reference[0], reference[1])
        document["score"] = score(float(returns.mean()), bounds)
        document["score_interval"] = [score(low, bounds), score(high, bounds)]
        document["reference"] = {"min": bounds[0], "max": bounds[1], "from": reference[2]}
    return document
