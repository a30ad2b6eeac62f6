"""One policy in one environment for one trajectory: the loop that everything else uses.

A policy begins an actor, and the actor lives for one trajectory: `(observation, last
reward) -> action`. Policies without memory may return the same function every time; a
policy with memory starts afresh. Both the environment and the actor draw from streams that
are keyed by (random seed, source, index), so trajectory 17 of a source is the same
trajectory whichever process plays it, and in whatever order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from pubc.errors import DataError
from pubc.streams import stream
from pubc.trajectory import Array, Columns, Trajectory

__all__ = ["Actor", "Environment", "Policy", "play"]

Actor = Callable[[Array, float], Array]
"""Observation (float32) and the reward of the last action (0 at first) to an action."""


class Policy(Protocol):
    """Anything that can act."""

    def begin(self, rng: np.random.Generator) -> Actor:
        """A fresh actor for one trajectory, with its own source of randomness."""
        ...


class Environment(Protocol):
    """What a policy acts in; `pubc.acting.environments.make` gives one by name."""

    name: str
    observation_size: int
    action_size: int
    low: Array
    """Smallest action, shape (action dimensions,)."""
    high: Array
    """Largest action, shape (action dimensions,)."""
    time_limit: int
    """Steps after which a trajectory times out."""

    def reset(self, random_seed: int) -> Array:
        """Start a trajectory that depends on nothing but the seed; the first observation."""
        ...

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Act: the next observation, the reward, whether terminal, whether timed out."""
        ...


def play(
    environment: Environment,
    policy: Policy,
    *,
    random_seed: int,
    source: str,
    index: int = 0,
    most: Callable[[], int] | None = None,
) -> Trajectory:
    """Record one trajectory.

    Args:
        environment: Where to act.
        policy: Who acts; its actions are clipped to the environment's limits.
        random_seed: What the user gave.
        source: Name of the policy; with `index` it keys all randomness.
        index: Which trajectory of that source.
        most: Steps after which to stop early, marked as a timeout; asked after every step,
            because whoever wants the trajectory may learn only later how much of it is needed.

    Returns:
        The trajectory in float32, with the observation after its last action, and with the
        `expert_steps` of the actor as a column where it has them.

    Raises:
        DataError: The policy gave an action of the wrong size, or not finite.
    """
    limit = environment.time_limit
    observations = np.empty((limit + 1, environment.observation_size), dtype=np.float32)
    actions = np.empty((limit, environment.action_size), dtype=np.float32)
    rewards = np.empty(limit, dtype=np.float32)
    low = environment.low.astype(np.float32)
    high = environment.high.astype(np.float32)
    start = int(stream(random_seed, source, index, "environment").integers(2**31))
    actor = policy.begin(stream(random_seed, source, index, "policy"))

    observations[0] = environment.reset(start)
    step, reward, terminal, timeout = 0, 0.0, False, False
    while not (terminal or timeout or step == limit or (step and most and step >= most())):
        action = actor(observations[step], reward)
        if action.shape != low.shape:
            raise _bad_action(environment, source, action.shape)
        taken = actions[step]
        np.minimum(np.maximum(action, low, out=taken), high, out=taken)
        observations[step + 1], reward, terminal, timeout = environment.step(taken)
        rewards[step] = reward
        step += 1
    if not np.isfinite(actions[:step]).all():
        raise DataError(
            f"The policy {source!r} gave an action that is not finite in {environment.name}, "
            f"trajectory {index}.",
            code="nonfinite",
            field="actions",
        )
    return Trajectory(
        id=f"{source}-{index}",
        steps=_columns(observations, actions, rewards, step, terminal, _own_steps(actor)),
        final_observation=observations[step].copy(),
        source=source,
    )


def _columns(
    observations: Array,
    actions: Array,
    rewards: Array,
    steps: int,
    terminal: bool,
    extras: dict[str, Array],
) -> Columns:
    terminals, timeouts = np.zeros((2, steps), dtype=np.bool_)
    terminals[-1], timeouts[-1] = terminal, not terminal
    return Columns(
        observations[:steps], actions[:steps], rewards[:steps], terminals, timeouts, extras
    )


def _own_steps(actor: Actor) -> dict[str, Array]:
    flags = getattr(actor, "expert_steps", None)
    return {} if flags is None else {"expert_steps": np.array(flags, dtype=np.bool_)}


def _bad_action(environment: Environment, source: str, shape: tuple[int, ...]) -> DataError:
    return DataError(
        f"The policy {source!r} gave an action of shape {shape}, but {environment.name} takes "
        f"{environment.action_size} numbers. It was trained for another environment.",
        code="bad_shape",
        field="actions",
    )
