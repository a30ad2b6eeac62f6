"""A finished run as a filter for other data: its networks and its threshold, nothing trained."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.pu.algorithm import majority
from pubc.pu.judge import Bench, StoredJudge, mean_confidence
from pubc.pu.recipes import recipe_from_json
from pubc.pu.shards import rate
from pubc.runs.folder.run_folder import RunFolder
from pubc.trajectory import TrajectorySet

__all__ = ["Ratings", "TrainedFilter", "open_filter"]


@dataclass(frozen=True, slots=True, eq=False)
class Ratings:
    """What a trained filter thinks of trajectories."""

    confidence: NDArray[np.float64]
    """Mean confidence in each, shape (trajectories,)."""
    votes: NDArray[np.int64]
    """Members at or above the threshold, shape (trajectories,)."""
    keep: NDArray[np.bool_]
    """Which look like the expert's, shape (trajectories,)."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedFilter:
    """The networks and the threshold of a run."""

    judge: StoredJudge
    """Applies the networks."""
    shelf: Path
    """Where they lie."""
    number: int
    """The round that holds the result."""
    threshold: float | None
    """Where its confidences were cut; None where no cut was found."""
    sizes: tuple[int, int]
    """Dimensions of an observation and of an action."""
    name: str
    """What to call the run in a message."""

    def confidence(self, trajectories: TrajectorySet, bench: Bench) -> NDArray[np.float64]:
        """Mean confidence in each trajectory, shape (trajectories,).

        Raises:
            DataError: The data has other dimensions than the filter was trained with.
        """
        return mean_confidence(self._rate(trajectories, bench))

    def apply(self, trajectories: TrajectorySet, bench: Bench) -> Ratings:
        """Rate trajectories and cut.

        Raises:
            DataError: The run found no threshold, or the data has other dimensions than the
                filter was trained with.
        """
        cut = self.check_threshold()
        confidence = self._rate(trajectories, bench)
        votes, keep = majority(confidence, cut)
        return Ratings(mean_confidence(confidence), votes, keep)

    def steps(self, trajectories: TrajectorySet, bench: Bench) -> Iterator[NDArray[np.float32]]:
        """Stream a value per step in order: what it adds to its trajectory's confidence."""
        self._check_sizes(trajectories)
        return self.judge.steps(self.shelf, self.number, trajectories, bench)

    def check_threshold(self) -> float:
        """The threshold.

        Raises:
            DataError: The run found none.
        """
        if self.threshold is None:
            raise DataError(
                f"{self.name}: the run found no threshold, so it cannot say which other "
                "trajectories are the expert's.",
                code="no_threshold",
            )
        return self.threshold

    def _rate(self, trajectories: TrajectorySet, bench: Bench) -> NDArray[np.float64]:
        self._check_sizes(trajectories)
        return rate(self.judge, self.shelf, self.number, trajectories, bench)

    def _check_sizes(self, trajectories: TrajectorySet) -> None:
        found = trajectories.observation_size, trajectories.action_size
        for name, before, now in zip(("observation", "action"), self.sizes, found, strict=True):
            if before != now:
                raise DataError(
                    f"The filter was trained with {name} size {before}, this data has {now}. "
                    "Both must come from the same robot and task.",
                    code="bad_shape",
                    field=f"{name}s",
                )


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


def open_filter(path: Path) -> tuple[TrainedFilter, dict[str, Any]]:
    """The filter that a finished run left, and its run.json.

    Raises:
        DataError: The run is not finished, or its networks are not as it left them.
    """
    folder = RunFolder(path)
    document = folder.check_finished()
    folder.check_networks()
    try:
        data = document["data"]
        trained = TrainedFilter(
            judge=recipe_from_json(document["recipe"]).judge,
            shelf=folder.shelf,
            number=int(document["round"]),
            threshold=_number(document["network_threshold"]),
            sizes=(int(data["observation_size"]), int(data["action_size"])),
            name=str(path),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(
            f"{path}: run.json cannot be read back ({error}).", code="bad_json"
        ) from None
    return trained, document
