"""Every environment by name, with all that fixes what it observes and rewards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pubc.errors import UnknownNameError

__all__ = ["ENVIRONMENTS", "EnvironmentSpec", "spec"]


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
