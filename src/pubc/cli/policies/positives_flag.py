"""`--positives FILE` and `--top SHARE` of `pubc train`: the seed positives of dwbc."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pubc import formats
from pubc.cli.console import warn
from pubc.errors import DataError, UsageError
from pubc.runs.folder.given_data import read_given

if TYPE_CHECKING:
    from pubc.trajectory import TrajectorySet

__all__ = ["read_positives"]


def read_positives(
    algo: str,
    trajectories: TrajectorySet,
    data: Path,
    positives: Path | None,
    top: float | None,
    reading: formats.ReadOptions,
) -> TrajectorySet | None:
    """The seed positives that were named; None for learners that take none.

    Raises:
        UsageError: The learner takes none.
        DataError: They are of another robot.
    """
    from pubc.policies import WEIGHTED
    from pubc.select import top_returns

    if algo not in WEIGHTED:
        if positives or top:
            raise UsageError(f"--positives and --top belong to dwbc, not to {algo}.")
        return None
    if top is not None:
        return trajectories[top_returns(trajectories, top)]
    if positives is None:
        return None
    seeds = read_given(positives, reading, warn)
    here = (trajectories.observation_size, trajectories.action_size)
    there = (seeds.observation_size, seeds.action_size)
    if here != there:
        raise DataError(
            f"{data} has {here[0]} observation and {here[1]} action dimensions, "
            f"{positives} has {there[0]} and {there[1]}. Both must come from the same "
            "robot and task.",
            code="bad_shape",
            field="observations",
        )
    return seeds
