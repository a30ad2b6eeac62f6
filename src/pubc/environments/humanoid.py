"""Humanoid-v5 with less bookkeeping per step, and the same numbers to the last bit.

A Humanoid step in Gymnasium spends a sixth of its time on views, dictionaries and sums that
the next line throws away. Here the views are made once, the centre of mass is kept from
the step before, and nothing is computed that is not returned. Weights and limits are read
from Gymnasium's own environment, which still does the resets.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pubc.environments.gym import GymEnvironment
from pubc.trajectory import Array

__all__ = ["HumanoidEnvironment"]


class HumanoidEnvironment(GymEnvironment):
    """The Humanoid of Gymnasium, stepped directly."""

    def __init__(self, name: str, id: str, arguments: Mapping[str, Any]) -> None:
        super().__init__(name, id, arguments, bare=True)
        import mujoco

        inner = self._environment
        self._model, self._data, self._frames = inner.model, inner.data, inner.frame_skip
        self._simulate, self._forces = mujoco.mj_step, mujoco.mj_rnePostConstraint
        self._keep_views(self._data)
        self._mass = np.expand_dims(self._model.body_mass, axis=1).copy()
        self._total_mass = np.sum(self._mass)
        self._weighted = np.empty_like(self._positions)
        self._seconds = inner.dt
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
        self._control[:] = action
        self._simulate(self._model, self._data, self._frames)
        self._forces(self._model, self._data)
        self._steps += 1
        x = self._centre()
        speed, self._x = (x - self._x) / self._seconds, x
        low, high = self._healthy_height
        healthy = low < self._height[0] < high
        control = self._control_weight * np.square(self._control).sum()
        contact = self._contact_weight * np.square(self._contact).sum()
        contact = min(max(contact, self._contact_limits[0]), self._contact_limits[1])
        reward = self._forward_weight * speed + healthy * self._healthy_reward
        observation = np.concatenate(self._observed)
        timeout = self._steps >= self.time_limit
        return observation, float(reward - (control + contact)), not healthy, timeout

    def _keep_views(self, data: Any) -> None:
        """MuJoCo's arrays stay where they are for the life of the simulation."""
        self._control, self._positions, self._contact = data.ctrl, data.xipos, data.cfrc_ext
        self._height = data.qpos[2:3]
        self._observed = (
            data.qpos[2:],
            data.qvel,
            data.cinert[1:].reshape(-1),
            data.cvel[1:].reshape(-1),
            data.qfrc_actuator[6:],
            data.cfrc_ext[1:].reshape(-1),
        )

    def _centre(self) -> float:
        np.multiply(self._mass, self._positions, out=self._weighted)
        centre: float = (self._weighted.sum(axis=0) / self._total_mass)[0]
        return centre
