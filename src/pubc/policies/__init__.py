"""Learners: a `TrajectorySet` in, a policy out, each by the paper's name for it.

bc                    behaviour cloning (ours)
10%bc, 50%bc, N%bc    behaviour cloning of the trajectories with the highest returns
dwbc                  discriminator-weighted behaviour cloning, as its authors' code behaves (ours)
dwbc-paper            the same from the text of its paper alone (ours)
iql crr td3bc plas dt offline reinforcement learning through d3rlpy
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pubc.errors import UnknownNameError, UsageError
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pubc.policies.stacked.many_policies import Many, Stack
    from pubc.policies.stacked.stacked_rows import Member
    from pubc.policies.train_options import TrainOptions
    from pubc.policies.training_run import Trainer

__all__ = [
    "LEARNERS",
    "OFFLINE",
    "WEIGHTED",
    "check_name",
    "stack_members",
    "stack_shape",
    "stacked_trainer",
    "trainer",
]

LEARNERS: dict[str, str] = {
    "bc": "behaviour cloning",
    "10%bc": "behaviour cloning of the tenth with the highest returns; any N%bc works",
    "50%bc": "behaviour cloning of the half with the highest returns",
    "dwbc": "discriminator-weighted behaviour cloning; needs seed positives",
    "dwbc-paper": "dwbc from the text of its paper, without what its authors' code adds",
    "iql": "implicit Q-learning, through d3rlpy",
    "crr": "critic regularised regression, through d3rlpy",
    "td3bc": "TD3+BC, through d3rlpy",
    "plas": "policy in the latent action space, through d3rlpy",
    "dt": "decision transformer, through d3rlpy",
}
"""Every learner with its one line of help."""

OFFLINE = ("iql", "crr", "td3bc", "plas", "dt")
"""Those that need d3rlpy, and rewards."""

WEIGHTED = ("dwbc", "dwbc-paper")
"""Those that need seed positives."""

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
    weights: NDArray[np.float32] | None = None,
) -> Trainer:
    """A training run in memory.

    Args:
        name: Of the learner.
        trajectories: What to learn from.
        options: How.
        random_seed: Same seed, same data, same machine: same policy.
        device: `cpu`, `cuda` or `auto`.
        positives: Seed positives, for learners that take them.
        weights: How much each step counts, shape (steps,); bc only.

    Raises:
        UnknownNameError: No learner has that name.
        UsageError: The learner takes no weights.
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

    where = pick_device(device)
    _refuse_weights(name, weights)
    trajectories, name = _best_share(trajectories, name)
    if name == "bc":
        from pubc.policies.cloning.bc import Clone

        return Clone(trajectories, options, random_seed=random_seed, device=where, weights=weights)
    if name == "dwbc":
        from pubc.policies.stacked.many_policies import One
        from pubc.policies.stacked.stacked_dwbc import StackedDwbc
        from pubc.policies.stacked.stacked_rows import Member

        alone = [Member(trajectories, random_seed, _needed(positives))]
        return One(StackedDwbc(alone, options, device=where))
    if name == "dwbc-paper":
        from pubc.policies.cloning.dwbc import WeightedClone

        return WeightedClone(
            trajectories, _needed(positives), options, random_seed=random_seed, device=where
        )
    from pubc.policies.offline_rl.reinforce import OfflineRun

    return OfflineRun(name, trajectories, options, random_seed=random_seed, device=where)


def stacked_trainer(
    name: str,
    trajectories: TrajectorySet,
    options: TrainOptions,
    *,
    random_seeds: Sequence[int],
    device: str = "auto",
    positives: TrajectorySet | None = None,
) -> Many:
    """Training runs that differ in their random seeds alone, as one run in memory.

    Args:
        name: Of the learner.
        trajectories: What to learn from.
        options: How.
        random_seeds: One of each member.
        device: `cpu`, `cuda` or `auto`.
        positives: Seed positives, for learners that take them.

    Raises:
        UsageError: The learner cannot be stacked.

    Example:
        >>> from pubc.policies.train_options import TrainOptions
        >>> run = stacked_trainer("bc", mixed, TrainOptions(), random_seeds=range(10))
        ... # doctest: +SKIP
    """
    from pubc.policies.stacked.many_policies import Many
    from pubc.policies.stacked.stacked_rows import Member

    trajectories, name = _best_share(trajectories, name)
    known = positives if name in WEIGHTED else None
    members = [Member(trajectories, seed, known) for seed in random_seeds]
    return Many(stack_members(name, members, options, device=device))


def stack_members(
    name: str, members: Sequence[Member], options: TrainOptions, *, device: str = "auto"
) -> Stack:
    """Training runs that may differ in their data too, as one.

    Args:
        name: Of the learner; not N%bc, which chooses data.
        members: Those of one `stack_shape`.
        options: How.
        device: `cpu`, `cuda` or `auto`.

    Raises:
        UsageError: The learner cannot be stacked.
    """
    from pubc.nets import pick_device
    from pubc.policies.cloning.in_turn import InTurn
    from pubc.policies.stacked.stacked_bc import StackedBC
    from pubc.policies.stacked.stacked_dwbc import StackedDwbc
    from pubc.policies.stacked.stacked_offline import LEARNERS as STACKED
    from pubc.policies.stacked.stacked_offline import StackedOffline

    where = pick_device(device)
    if name == "bc" and where.type == "cpu":
        return InTurn(members, options)
    if name == "bc":
        return StackedBC(members, options, device=where)
    if name == "dwbc":
        for member in members:
            _needed(member.positives)
        return StackedDwbc(members, options, device=where)
    if name in STACKED:
        return StackedOffline(name, members, options, device=where)
    raise UsageError(
        f"{name} is trained with one random seed at a time. Many at once: bc, N%bc, dwbc, "
        f"{', '.join(STACKED)}."
    )


def stack_shape(
    name: str, trajectories: TrajectorySet, options: TrainOptions
) -> tuple[tuple[int, ...], int] | None:
    """What trainings of a learner must have in common to be members of one stack.

    Returns:
        The sizes that must be equal, and how many updates the training makes: members that make
        fewer wait for the others. None if the learner cannot be stacked.
    """
    from pubc.policies.cloning.bc import plan
    from pubc.policies.offline_rl.reinforce import plan_updates
    from pubc.policies.stacked.stacked_dwbc import plan_dwbc
    from pubc.policies.stacked.stacked_offline import LEARNERS as STACKED

    sizes = trajectories.observation_size, trajectories.action_size
    if name == "bc":
        chosen = plan(trajectories, options)
        return (*sizes, chosen.batch_size), chosen.epochs * chosen.updates_per_epoch
    if name == "dwbc":
        return sizes, plan_dwbc(options)
    if name in STACKED:
        return sizes, plan_updates(name, trajectories, options)[0]
    return None


def _best_share(trajectories: TrajectorySet, name: str) -> tuple[TrajectorySet, str]:
    """N%bc is bc of the trajectories with the highest returns; other learners take all."""
    from pubc.select import top_returns

    percent = _PERCENT.match(check_name(name))
    if percent is None:
        return trajectories, name
    return trajectories[top_returns(trajectories, float(percent.group(1)) / 100)], "bc"


def _needed(positives: TrajectorySet | None) -> TrajectorySet:
    if positives is None:
        raise UsageError(
            "dwbc learns from seed positives beside the mixed set. Give --positives FILE, or "
            "--top SHARE to take the trajectories with the highest returns."
        )
    return positives


def _refuse_weights(name: str, weights: NDArray[np.float32] | None) -> None:
    if weights is not None and name != "bc":
        raise UsageError(f"Weights of steps are for bc, not for {name}.")
