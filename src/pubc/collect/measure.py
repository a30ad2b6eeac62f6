"""What a policy scores: its returns over many trajectories, on any number of processes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pubc import zoo
from pubc.collect.worker_pool import Answer, Crew, Task
from pubc.errors import UsageError

__all__ = ["Measured", "card_of", "measuring"]


@dataclass(frozen=True, slots=True)
class Measured:
    """The returns of one policy."""

    name: str
    """The policy."""
    returns: tuple[float, ...]
    """Total reward of each trajectory, in order of index."""
    lengths: tuple[int, ...]
    """Steps of each trajectory."""

    def facts(self) -> dict[str, float]:
        """Mean, standard deviation and range of the returns, and the mean length."""
        return {
            "trajectories": len(self.returns),
            "mean": round(float(np.mean(self.returns)), 1),
            "std": round(float(np.std(self.returns)), 1),
            "min": round(float(np.min(self.returns)), 1),
            "max": round(float(np.max(self.returns)), 1),
            "mean_length": round(float(np.mean(self.lengths)), 1),
        }


def measuring(
    names: Sequence[str], trajectories: int, *, random_seed: int = 0, processes: int = 2
) -> Iterator[Measured]:
    """Play policies in their own environments, one after another.

    Args:
        names: Zoo policies, or files in the zoo's format.
        trajectories: How many of each.
        random_seed: Same seed, same machine: same returns.
        processes: Workers. The result does not depend on it.

    Yields:
        One result per policy, in the order given.
    """
    if trajectories < 1 or processes < 1:
        raise UsageError("Trajectories and processes must be at least 1.")
    for name in names:
        setup = {
            "environment": card_of(name)["environment"],
            "random_seed": random_seed,
            "trusted": False,
            "sources": {name: {"policy": _reference(name), "action_noise": 0.0}},
        }
        tasks = iter([Task(name, index, 1) for index in range(trajectories)])
        with (
            tempfile.TemporaryDirectory(prefix="pubc-measure-") as folder,
            Crew(setup, processes, Path(folder)) as crew,
        ):
            crew.sizes()
            answers: list[Answer] = list(crew.work(lambda tasks=tasks: next(tasks, None)))  # type: ignore[misc]
        answers.sort(key=lambda answer: answer.first)
        yield Measured(
            name,
            tuple(answer.returns[0] for answer in answers),
            tuple(answer.lengths[0] for answer in answers),
        )


def card_of(name: str) -> dict[str, Any]:
    """The card of a zoo policy, or of a file in the zoo's format."""
    return zoo.read_card(Path(name)) if name.endswith(".safetensors") else zoo.card(name)


def _reference(name: str) -> str:
    return str(Path(name).resolve()) if name.endswith(".safetensors") else name
