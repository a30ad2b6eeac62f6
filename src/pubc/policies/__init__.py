"""Learners: a `TrajectorySet` in, a policy out, each by the paper's name for it.

bc                    behaviour cloning (ours)
10%bc, 50%bc, N%bc    behaviour cloning of the trajectories with the highest returns
dwbc                  discriminator-weighted behaviour cloning (ours)
iql crr td3bc plas dt offline reinforcement learning through d3rlpy
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pubc.errors import UnknownNameError, UsageError
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from pubc.policies.train_options import TrainOptions
    from pubc.policies.training_run import Trainer

__all__ = ["LEARNERS", "OFFLINE", "check_name", "trainer"]

LEARNERS: dict[str, str] = {
    "bc": "behaviour cloning",
    "10%bc": "behaviour cloning of the tenth with the highest returns; any N%bc works",
    "50%bc": "behaviour cloning of the half with the highest returns",
    "dwbc": "discriminator-weighted behaviour cloning; needs seed positives",
    "iql": "implicit Q-learning, through d3rlpy",
    "crr": "critic regularised regression, through d3rlpy",
    "td3bc": "TD3+BC, through d3rlpy",
    "plas": "policy in the latent action space, through d3rlpy",
    "dt": "decision transformer, through d3rlpy",
}
"""Every learner with its one line of help."""

OFFLINE = ("iql", "crr", "td3bc", "plas", "dt")
"""Those that need d3rlpy, and rewards."""

_PERCENT = re.compile(r"^(\d+(?:\.\d+)?)%bc$")


def check_name(name: str) -> str:
    """The name, if some learner has it.

    Raises:
        UnknownNameError: None has.
    """
    if name not in LEARNERS and not _PERCENT.match(name):
        raise UnknownNameError("learner", name, LEARNERS)
    return name


def trainer(
    name: str,
    trajectories: TrajectorySet,
    options: TrainOptions,
    *,
    random_seed: int = 0,
    device: str = "auto",
    positives: TrajectorySet | None = None,
) -> Trainer:
    """A training run in memory.

    Args:
        name: Of the learner.
        trajectories: What to learn from.
        options: How.
        random_seed: Same seed, same data, same machine: same policy.
        device: `cpu`, `cuda` or `auto`.
        positives: Seed positives, for learners that take them.

    Raises:
        UnknownNameError: No learner has that name.
        MissingExtraError: It needs a library that is not installed.
        DataError: It needs rewards and there are none.

    Example:
        >>> from pubc.policies.train_options import TrainOptions
        >>> run = trainer("bc", mixed, TrainOptions(epochs=2))  # doctest: +SKIP
        >>> [run.advance(epoch)["loss"] for epoch in range(run.epochs)]  # doctest: +SKIP
        [0.31, 0.12]
        >>> run.policy().act(observations)  # doctest: +SKIP
    """
    from pubc.nets import pick_device
    from pubc.select import top_returns

    where = pick_device(device)
    if percent := _PERCENT.match(check_name(name)):
        share = float(percent.group(1)) / 100
        trajectories, name = trajectories[top_returns(trajectories, share)], "bc"
    if name == "bc":
        from pubc.policies.cloning.bc import Clone

        return Clone(trajectories, options, random_seed=random_seed, device=where)
    if name == "dwbc":
        from pubc.policies.cloning.dwbc import WeightedClone

        if positives is None:
            raise UsageError(
                "dwbc learns from seed positives beside the mixed set. Give --positives FILE, or "
                "--top SHARE to take the trajectories with the highest returns."
            )
        return WeightedClone(
            trajectories, positives, options, random_seed=random_seed, device=where
        )
    from pubc.policies.offline_rl.reinforce import OfflineRun

    return OfflineRun(name, trajectories, options, random_seed=random_seed, device=where)
