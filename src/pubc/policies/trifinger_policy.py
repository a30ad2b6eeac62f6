"""Our policies in TriFinger's own evaluation, which makes a policy by name from three arguments.

`policy_class` makes a class with the interface of `trifinger_rl_datasets`' `PolicyBase`.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from pubc.errors import UsageError
from pubc.policies.policy_folder import load
from pubc.streams import stream
from pubc.trajectory import Array

__all__ = ["POLICY_VARIABLE", "TriFingerPolicy", "policy_class"]

POLICY_VARIABLE = "PUBC_POLICY"
"""Environment variable with the policy folder that `TriFingerPolicy` acts with."""


class TriFingerPolicy:
    r"""A policy folder with the interface of TriFinger's `PolicyBase`.

    The folder is named by the environment variable `PUBC_POLICY`, because TriFinger's
    evaluation gives a policy nothing but its spaces:

        PUBC_POLICY=push python -m trifinger_rl_datasets.evaluate_sim \
            push pubc.policies.trifinger_policy.TriFingerPolicy
    """

    folder: Path | None = None
    """The policy folder, where a subclass fixes it."""

    def __init__(self, action_space: Any, observation_space: Any, episode_length: int) -> None:
        named = os.environ.get(POLICY_VARIABLE)
        folder = self.folder or (Path(named) if named else None)
        if folder is None:
            raise UsageError(
                f"Which policy? Put its folder into the environment variable {POLICY_VARIABLE}, "
                "or make a class for it with pubc.policies.trifinger_policy.policy_class(folder)."
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
