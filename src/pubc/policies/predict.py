"""The method by which stable-baselines3 asks a policy for actions.

With it `evaluate_policy` takes our policies as they are.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from pubc.acting.rollout import Actor, Policy
from pubc.streams import stream
from pubc.trajectory import Array

__all__ = ["Predictor"]


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
