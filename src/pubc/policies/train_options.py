"""How to train: the choices a user can make, said once for every learner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pubc.errors import UsageError

__all__ = ["TrainOptions", "check_rate"]

_FASTEST = 1000.0
"""Learning rate that is too much in any case; torch refuses one that float32 does not hold."""


@dataclass(frozen=True, slots=True)
class TrainOptions:
    """Choices that change what is learned. What is left out comes from the recipe."""

    recipe: Literal["auto", "paper"] = "auto"
    """`paper` trains as the paper did (BC: Adam 1e-3, batch 100, 200 epochs; the others as in
    its Table 7, for a million updates). `auto` is faster at the same return: fewer
    updates, a falling learning rate, and an early stop on held-out trajectories."""
    head: Literal["deterministic", "gaussian"] = "deterministic"
    """BC: predict the action, or a Gaussian over it. Both maximise the likelihood; the first
    with a fixed spread."""
    hidden: tuple[int, ...] = (256, 256)
    """Width of each hidden layer."""
    batch_size: int | None = None
    """Steps per update."""
    learning_rate: float | None = None
    """Step size of Adam."""
    epochs: int | None = None
    """BC: passes over the data."""
    updates: int | None = None
    """Updates in all; for BC instead of --epochs."""
    held_out: float | None = None
    """BC: share of the trajectories to hold out for the early stop; 0 trains on all."""
    target_return: float | None = None
    """DT: the return that the policy is asked for; the highest of the dataset if omitted."""


def check_rate(options: TrainOptions) -> None:
    """Refuse a learning rate with which nothing can be learned.

    Raises:
        UsageError: It is not a number above zero, or beyond all use.
    """
    rate = options.learning_rate
    if rate is not None and not 0 < rate < _FASTEST:
        raise UsageError(
            f"The learning rate must be above zero and below {_FASTEST:,.0f}. Got {rate}."
        )
