"""Humanoid-v5, stepped directly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pubc.acting.environments.direct import DirectEnvironment
from pubc.trajectory import Array

__all__ = ["HumanoidEnvironment"]


class HumanoidEnvironment(DirectEnvironment):
    """The Humanoid of Gymnasium, stepped directly."""

    def __init__(self, name: str, id: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(name, id, arguments)
        inner, data = self._environment, self._data
        self._positions, self._contact = data.xipos, data.cfrc_ext
        self._observed = (
            data.qpos[2:],
            data.qvel,
            data.cinert[1:].reshape(-1),
            data.cvel[1:].reshape(-1),
            data.qfrc_actuator[6:],
            data.cfrc_ext[1:].reshape(-1),
        )
        self._mass = np.expand_dims(self._model.body_mass, axis=1).copy()
        self._total_mass = float(np.sum(self._mass))
        self._weighted = np.empty_like(self._positions)
        self._middle = np.empty(3)
        self._forward_weight = inner._forward_reward_weight
        self._control_weight = inner._ctrl_cost_weight
        self._contact_weight = inner._contact_cost_weight
        self._contact_limits = inner._contact_cost_range
        self._healthy_reward = inner._healthy_reward
        self._healthy_height = inner._healthy_z_range
        self._x = 0.0

    def reset(self, random_seed: int) -> Array:
        """Start a trajectory that depends on nothing but the seed; the first observation."""
        observation = super().reset(random_seed)
        self._x = self._centre()
        return observation

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Act: the next observation, the reward, whether terminal, whether timed out."""
        timeout = self._advance(action)
        x = self._centre()
        speed, self._x = (x - self._x) / self._seconds, x
        observation = np.concatenate(self._observed)
        low, high = self._healthy_height
        healthy = low < observation.item(0) < high
        control = self._control_weight * float(np.add.reduce(np.square(self._control)))
        contact = self._contact_weight * float(np.add.reduce(np.square(self._contact), axis=None))
        contact = min(max(contact, self._contact_limits[0]), self._contact_limits[1])
        reward = self._forward_weight * speed + healthy * self._healthy_reward
        return observation, float(reward - (control + contact)), not healthy, timeout

    def _centre(self) -> float:
        """Where the centre of mass is along the way."""
        np.multiply(self._mass, self._positions, out=self._weighted)
        np.add.reduce(self._weighted, axis=0, out=self._middle)
        centre: float = self._middle.item(0) / self._total_mass
        return centre
