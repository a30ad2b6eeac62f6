"""The TriFinger robot in simulation: the door to `trifinger_rl_datasets` and PyBullet.

Its environment draws the start of the cube from numpy's global generator and the goal from
one of the task module, and its own `reset(seed=...)` fails. So a reset seeds both, and puts
back what was there.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

from pubc.errors import MissingExtraError
from pubc.trajectory import Array

__all__ = ["TriFingerEnvironment"]


class TriFingerEnvironment:
    """Push or lift a cube; observations are flat: 97 numbers for push, 139 for lift."""

    def __init__(self, name: str, task: str) -> None:
        modules = _load(name)
        arguments = dict(modules.datasets.task_params[task]["trifinger_kwargs"])
        self.name = name
        self.time_limit = int(arguments.pop("episode_length"))
        # A reset takes one step of its own, which the environment counts and we do not.
        with warnings.catch_warnings():
            # Its spaces announce that their limits are rounded to float32.
            warnings.simplefilter("ignore")
            self._environment = modules.datasets.SimTriFingerCubeEnv(
                episode_length=self.time_limit + 1, **arguments
            )
        self._environment._append_desired_action = self._tick
        self._space = self._environment.observation_space
        self._modules = modules
        self._steps = 0
        self.observation_size = int(modules.spaces.flatdim(self._space))
        self.low = np.asarray(self._environment.action_space.low, dtype=np.float32)
        self.high = np.asarray(self._environment.action_space.high, dtype=np.float32)
        self.action_size = len(self.low)

    def reset(self, random_seed: int) -> Array:
        """Start a trajectory that depends on nothing but the seed; the first observation."""
        self._steps = 0
        # The last pose of the cube would leak from one trajectory into the next.
        self._environment._old_camera_obs = None
        with _seeded(self._modules.task, random_seed):
            observation, _ = self._environment.reset()
        return self._flat(observation)

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Act: the next observation, the reward, whether terminal, whether timed out."""
        self._steps += 1
        observation, reward, terminal, _, _ = self._environment.step(action)
        return self._flat(observation), float(reward), terminal, self._steps >= self.time_limit

    def _tick(self, action: Any) -> int:
        """What the platform does in a millisecond, without its log; the number of the tick.

        An action is a torque here. It observes at the last tick of a step only: looking changes
        nothing, so what is simulated stays the same to the last bit.
        """
        environment, bullet = self._environment, self._modules.bullet
        platform = environment.platform
        finger = platform.simfinger
        now, client = finger._t + 1, finger._pybullet_client_id
        pictured = platform._camera_update()
        joints = finger.pybullet_joint_indices
        states = bullet.getJointStates(finger.finger_id, joints, physicsClientId=client)
        torque = finger._sanitise_torques(
            action.torque,
            finger.max_motor_torque,
            finger.safety_kd,
            np.array([velocity for _, velocity, *_ in states]),
        )
        bullet.setJointMotorControlArray(
            finger.finger_id, joints, bullet.TORQUE_CONTROL, forces=torque, physicsClientId=client
        )
        if now >= environment.t_obs + environment._step_size:
            # Bullet does not tell which torque was applied, so the finger remembers it.
            finger._SimFinger__applied_torque = torque
            finger._observation_t = finger._get_latest_observation()
        finger._step_simulation()
        finger._t = now
        if pictured:
            for camera in platform._delayed_camera_observation.cameras:
                camera.timestamp = platform.get_timestamp_ms(now) / 1000
        return int(now)

    def picture(
        self,
        observation: Array,
        size: tuple[int, int],
        eye: tuple[float, float, float],
        at: tuple[float, float, float],
    ) -> Array:
        """What a recorded observation looks like, shape (height, width, 3).

        Args:
            observation: Flat, as `step` returns it.
            size: Width and height.
            eye: Where the camera is.
            at: Where it looks.
        """
        bullet = self._modules.bullet
        seen = self._modules.spaces.unflatten(self._space, observation)
        platform = self._environment.platform
        finger, camera = platform.simfinger, seen["camera_observation"]
        client = finger._pybullet_client_id
        joints = seen["robot_observation"]["position"]
        for joint, angle in zip(finger.pybullet_joint_indices, joints, strict=True):
            bullet.resetJointState(finger.finger_id, joint, angle, physicsClientId=client)
        platform.cube.set_state(camera["object_position"], camera["object_orientation"])
        view = bullet.computeViewMatrix(eye, at, (0, 0, 1))
        lens = bullet.computeProjectionMatrixFOV(50, size[0] / size[1], 0.05, 2)
        drawn = bullet.getCameraImage(
            *size, view, lens, renderer=bullet.ER_TINY_RENDERER, physicsClientId=client
        )
        pixels = np.asarray(drawn[2], dtype=np.uint8).reshape(size[1], size[0], 4)
        return np.ascontiguousarray(pixels[:, :, :3])

    def _flat(self, observation: dict[str, Any]) -> Array:
        return np.asarray(self._modules.spaces.flatten(self._space, observation), np.float32)


def _load(name: str) -> SimpleNamespace:
    try:
        with _silent_import():
            import pybullet
            import trifinger_rl_datasets
            from gymnasium import spaces
            from trifinger_simulation.tasks import move_cube
    except ImportError:
        raise MissingExtraError(f"The environment {name!r}", "trifinger") from None
    return SimpleNamespace(
        bullet=pybullet, datasets=trifinger_rl_datasets, spaces=spaces, task=move_cube
    )


@contextlib.contextmanager
def _seeded(task: Any, random_seed: int) -> Iterator[None]:
    before, goals = np.random.get_state(), task.random  # noqa: NPY002
    np.random.seed(random_seed)  # noqa: NPY002
    task.seed(random_seed)
    try:
        yield
    finally:
        np.random.set_state(before)  # noqa: NPY002
        task.random = goals


@contextlib.contextmanager
def _silent_import() -> Iterator[None]:
    """PyBullet and the old gym greet on both outputs when imported, below Python's own."""
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [(number, os.dup(number)) for number in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        for number, _ in kept:
            os.dup2(nowhere, number)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in kept:
            os.dup2(copy, number)
            os.close(copy)
        os.close(nowhere)
