"""Environments by name: the registry, and the only way pubc ever makes one.

A name stands for an environment with every argument that changes what is observed or
rewarded, so a recipe that says `ant` says all of it. Nothing in a dataset can name code to
run: what a file claims about its environment is shown to people and used for nothing.
Beside the names below, a user may name any registered Gymnasium id, for example
`Pendulum-v1`, as long as it observes and acts in vectors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pubc.errors import UnknownNameError

if TYPE_CHECKING:
    from pubc.acting.environments.gym import GymEnvironment
    from pubc.acting.environments.trifinger import TriFingerEnvironment

__all__ = ["ENVIRONMENTS", "EnvironmentSpec", "make", "spec"]


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """Everything that fixes an environment."""

    id: str
    """The Gymnasium id, or the TriFinger task."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the environment, part of every recipe that uses it."""
    maker: str = "gym"
    """Which module of this package makes it: `gym`, `ant`, `humanoid` or `trifinger`."""


ENVIRONMENTS: dict[str, EnvironmentSpec] = {
    "ant": EnvironmentSpec("Ant-v5", {"include_cfrc_ext_in_observation": False}, maker="ant"),
    "humanoid": EnvironmentSpec("Humanoid-v5", {"reset_noise_scale": 1e-2}, maker="humanoid"),
    "halfcheetah": EnvironmentSpec("HalfCheetah-v5"),
    "hopper": EnvironmentSpec("Hopper-v5"),
    "walker2d": EnvironmentSpec("Walker2d-v5"),
    "trifinger-push": EnvironmentSpec("push", maker="trifinger"),
    "trifinger-lift": EnvironmentSpec("lift", maker="trifinger"),
}
"""Every environment of the paper by our own name."""


def spec(name: str) -> EnvironmentSpec:
    """What a name stands for; a Gymnasium id (it ends in -vN) stands for itself.

    Raises:
        UnknownNameError: Neither a name of ours nor of the form of a Gymnasium id.
    """
    if name in ENVIRONMENTS:
        return ENVIRONMENTS[name]
    head, _, version = name.rpartition("-v")
    if head and version.isdigit():
        return EnvironmentSpec(name)
    raise UnknownNameError("environment", name, ENVIRONMENTS)


def make(name: str) -> GymEnvironment | TriFingerEnvironment:
    """Make an environment by name.

    Raises:
        UnknownNameError: Nobody registered that name.
        MissingExtraError: Its simulator is not installed.
        UsageError: It does not observe and act in vectors.
    """
    found = spec(name)
    if found.maker == "trifinger":
        from pubc.acting.environments.trifinger import TriFingerEnvironment

        return TriFingerEnvironment(name, found.id)
    if found.maker == "ant":
        from pubc.acting.environments.ant import AntEnvironment

        return AntEnvironment(name, found.id, found.arguments)
    if found.maker == "humanoid":
        from pubc.acting.environments.humanoid import HumanoidEnvironment

        return HumanoidEnvironment(name, found.id, found.arguments)
    from pubc.acting.environments.gym import GymEnvironment

    return GymEnvironment(name, found.id, found.arguments, bare=name in ENVIRONMENTS)
