"""Environments by name: the registry, and the only way pubc ever makes one.

A name stands for an environment with every argument that changes what is observed or
rewarded, so a recipe that says `ant` says all of it. Nothing in a dataset can name code to
run: what a file claims about its environment is shown to people and used for nothing.
Beside the names below, a user may name any registered Gymnasium id, for example
`Pendulum-v1`, as long as it observes and acts in vectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pubc.acting.environments.known_environments import ENVIRONMENTS, EnvironmentSpec, spec

if TYPE_CHECKING:
    from pubc.acting.environments.gym import GymEnvironment
    from pubc.acting.environments.trifinger import TriFingerEnvironment

__all__ = ["ENVIRONMENTS", "EnvironmentSpec", "make", "spec"]


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
