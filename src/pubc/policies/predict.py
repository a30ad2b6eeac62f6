"""Our policies where other people's code expects theirs.

`predict` has the signature of stable-baselines3, so `evaluate_policy` takes our policies as
they are. `policy_class` makes a class with the interface of `trifinger_rl_datasets`'
`PolicyBase`, which its evaluation builds by name with three arguments of its own.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from pubc.acting.rollout import Actor, Policy
from pubc.errors import UsageError
from pubc.streams import stream
from pubc.trajectory import Array

__all__ = ["POLICY_VARIABLE", "Predictor", "TriFingerPolicy", "policy_class"]

POLICY_VARIABLE = "PUBC_POLICY"
"""Environment variable with the policy folder that `TriFingerPolicy` acts with."""


class Predictor:
    """Gives a policy the method that stable-baselines3 calls."""

    __slots__ = ()

    def predict(
        self: Any,
        observation: Array,
        state: tuple[Actor, ...] | None = None,
        episode_start: Array | None = None,
        deterministic: bool = True,
    ) -> tuple[Array, tuple[Actor, ...]]:
        """Actions for one observation or a batch of them, as stable-baselines3 asks for them.

        Args:
            observation: Shape (dimensions,) or (environments, dimensions).
            state: What the last call returned: one actor per environment.
            episode_start: Where a trajectory begins; a fresh actor takes over there.
            deterministic: Whether the most likely action is wanted, or a sample.

        Returns:
            The actions, and the state for the next call. The caller has no reward to give,
            so a policy with a wish for a return keeps the wish it started with.
        """
        rows = np.asarray(observation, dtype=np.float32)
        many = np.atleast_2d(rows)
        policy: Policy = self
        if not deterministic and hasattr(self, "stochastic"):
            policy = dataclasses.replace(self, stochastic=True)
        begins = np.ones(len(many), dtype=np.bool_)
        if state is not None:
            begins[:] = False if episode_start is None else episode_start
        actors = tuple(
            policy.begin(stream(0, "predict", index)) if state is None or begin else state[index]
            for index, begin in enumerate(begins)
        )
        taken = [np.array(actor(row, 0.0)) for actor, row in zip(actors, many, strict=True)]
        return (np.stack(taken) if rows.ndim > 1 else taken[0]), actors


class TriFingerPolicy:
    r"""A policy folder with the interface of TriFinger's `PolicyBase`.

    The folder is named by the environment variable `PUBC_POLICY`, because TriFinger's
    evaluation gives a policy nothing but its spaces:

        PUBC_POLICY=push python -m trifinger_rl_datasets.evaluate_sim \
            push pubc.policies.predict.TriFingerPolicy
    """

    folder: Path | None = None
    """The policy folder, where a subclass fixes it."""

    def __init__(self, action_space: Any, observation_space: Any, episode_length: int) -> None:
        from pubc.policies.policy_folder import load

        named = os.environ.get(POLICY_VARIABLE)
        folder = self.folder or (Path(named) if named else None)
        if folder is None:
            raise UsageError(
                f"Which policy? Put its folder into the environment variable {POLICY_VARIABLE}, "
                "or make a class for it with pubc.policies.predict.policy_class(folder)."
            )
        self._policy = load(folder)
        self._low, self._high = action_space.low, action_space.high
        self.reset()

    @staticmethod
    def get_policy_config() -> Any:
        """What the policy wants to see: flat observations, no images."""
        return SimpleNamespace(flatten_obs=True, image_obs=False)

    def reset(self) -> None:
        """Begin a trajectory."""
        self._actor = self._policy.begin(stream(0, "trifinger"))

    def get_action(self, observation: Array) -> Array:
        """The action for an observation, within the limits of the robot."""
        action = self._actor(np.asarray(observation, dtype=np.float32), 0.0)
        return np.asarray(np.clip(action, self._low, self._high))


def policy_class(folder: Path | str) -> type[TriFingerPolicy]:
    """A class like TriFinger's `PolicyBase` that acts with the policy in `folder`."""
    return type("PubcPolicy", (TriFingerPolicy,), {"folder": Path(folder)})
