"""Gymnasium environments: the door to MuJoCo.

Of our own environments the wrappers are taken off and the time limit is kept here: the
results are those of `gymnasium.make` to the last bit, and a step costs less.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pubc.acting.environments.known_environments import spec
from pubc.errors import EnvironmentFailure, MissingExtraError, UnknownNameError, UsageError
from pubc.trajectory import Array

__all__ = ["GymEnvironment", "make_wrapped"]

_NO_LIMIT = 1000
"""Time limit of environments that have none of their own; a recording has to end."""


class GymEnvironment:
    """A Gymnasium environment that observes and acts in vectors."""

    def __init__(self, name: str, id: str, arguments: Mapping[str, Any], *, bare: bool) -> None:
        wrapped = _make(name, id, arguments)
        self.name = name
        self.observation_size = int(wrapped.observation_space.shape[0])
        self.action_size = int(wrapped.action_space.shape[0])
        self.low = np.asarray(wrapped.action_space.low)
        self.high = np.asarray(wrapped.action_space.high)
        self.time_limit = int(wrapped.spec.max_episode_steps or _NO_LIMIT)
        self._environment = wrapped.unwrapped if bare else wrapped
        self._steps = 0

    def reset(self, random_seed: int) -> Array:
        """Start a trajectory that depends on nothing but the seed; the first observation."""
        self._steps = 0
        observation: Array = self._environment.reset(seed=random_seed)[0]
        return observation

    def step(self, action: Array) -> tuple[Array, float, bool, bool]:
        """Act: the next observation, the reward, whether terminal, whether timed out."""
        self._steps += 1
        observation, reward, terminal, stopped, _ = self._environment.step(action)
        return observation, float(reward), terminal, stopped or self._steps >= self.time_limit


def make_wrapped(name: str) -> Any:
    """The Gymnasium environment itself, with its wrappers, for code that trains in it.

    Raises:
        UsageError: It is not one of Gymnasium's.
    """
    found = spec(name)
    if found.maker == "trifinger":
        raise UsageError(f"{name} is not a Gymnasium environment, so it is not for training.")
    return _make(name, found.id, found.arguments)


def _make(name: str, id: str, arguments: Mapping[str, Any]) -> Any:
    try:
        import gymnasium
    except ImportError:
        raise MissingExtraError(f"The environment {name!r}", "mujoco") from None
    try:
        with warnings.catch_warnings(), _glfw_at_hand(), _quiet_mujoco():
            # Gymnasium announces newer versions of an environment that was named on purpose.
            warnings.simplefilter("ignore")
            made = gymnasium.make(id, disable_env_checker=True, **arguments)
    except gymnasium.error.DependencyNotInstalled:
        raise MissingExtraError(f"The environment {name!r}", "mujoco") from None
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv):
        raise UnknownNameError("Gymnasium environment", id, gymnasium.registry) from None
    seen, acts = made.observation_space, made.action_space
    if not all(isinstance(space, gymnasium.spaces.Box) for space in (seen, acts)) or (
        len(seen.shape) != 1 or len(acts.shape) != 1
    ):
        raise UsageError(
            "pubc needs an environment that observes and acts in vectors of numbers. "
            f"{id} observes {seen} and acts in {acts}."
        )
    return made


@contextlib.contextmanager
def _glfw_at_hand() -> Iterator[None]:
    """Say where glfw's library is, which MuJoCo loads even where nothing is drawn.

    Looking for it, glfw starts a process, and that prints a trace where we are killed meanwhile.
    """
    session = os.environ.get("XDG_SESSION_TYPE") == "wayland"
    screen = os.environ.get("PYGLFW_LIBRARY_VARIANT") or ("wayland" if session else "x11")
    home = None if "glfw" in sys.modules else importlib.util.find_spec("glfw")
    library = Path(str(home and home.origin)).parent / screen.lower() / "libglfw.so"
    if os.environ.get("PYGLFW_LIBRARY") or not library.exists():
        yield
        return
    os.environ["PYGLFW_LIBRARY"] = str(library)
    try:
        yield
    finally:
        os.environ.pop("PYGLFW_LIBRARY", None)


@contextlib.contextmanager
def _quiet_mujoco() -> Iterator[None]:
    """MuJoCo's remarks on Gymnasium's own models would become a file in the user's folder."""
    try:
        import mujoco
    except ImportError:
        yield
        return
    except Exception as error:
        # It loads what draws for it at once, and each such library fails in a way of its own.
        chosen = os.environ.get("MUJOCO_GL", "")
        raise EnvironmentFailure(
            f"MuJoCo does not start with MUJOCO_GL={chosen!r} ({error}). Unset that variable, or "
            "install the library that it asks for."
        ) from None
    mujoco.set_mju_user_warning(lambda text: None)
    try:
        yield
    finally:
        mujoco.set_mju_user_warning(None)
