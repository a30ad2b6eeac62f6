"""Ant-v5 without contact forces among its observations, stepped directly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pubc.acting.environments.direct import DirectEnvironment
from pubc.trajectory import Array

__all__ = ["AntEnvironment"]


class AntEnvironment(DirectEnvironment):
    """The Ant of Gymnasium, stepped directly."""

    def __init__(self, name: str, id: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(name, id, arguments)
        inner, data = self._environment, self._data
        self._state = (data.qpos, data.qvel)
        self._place = data.body(inner._main_body).xpos
        self._contact, self._clipped = data.cfrc_ext, np.empty_like(data.cfrc_ext)
        self._contact_limits = tuple(np.full_like(data.cfrc_ext, x) for x in _range(inner))
        self._contact_weight = inner._contact_cost_weight
        self._control_weight = inner._ctrl_cost_weight
        self._forward_weight = inner._forward_reward_weight
        self._healthy_reward = inner._healthy_reward
        self._healthy_height = inner._healthy_z_range
        self._x = 0.0

    def reset(self, random_seed: int) -> Array:
        """Start a trajectory that depends on nothing but the seed; the first observation."""
        observation = super().reset(random_seed)
        self._x = self._place.item(0)
        return observation

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Act: the next observation, the reward, whether terminal, whether timed out."""
        timeout = self._advance(action)
        x = self._place.item(0)
        speed, self._x = (x - self._x) / self._seconds, x
        state = np.concatenate(self._state)
        low, high = self._healthy_height
        healthy = low <= state.item(2) <= high and bool(np.isfinite(state).all())
        # In the type of the action, as Gymnasium has it.
        control = float(self._control_weight * np.add.reduce(np.square(action)))
        clipped = np.maximum(self._contact, self._contact_limits[0], out=self._clipped)
        np.minimum(clipped, self._contact_limits[1], out=clipped)
        np.square(clipped, out=clipped)
        contact = self._contact_weight * float(np.add.reduce(clipped, axis=None))
        reward = speed * self._forward_weight + healthy * self._healthy_reward
        return state[2:], float(reward - (control + contact)), not healthy, timeout


def _range(inner: Any) -> tuple[float, float]:
    low, high = inner._contact_force_range
    return float(low), float(high)
