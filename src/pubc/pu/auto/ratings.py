"""Imitators on the shelf, and rating trajectories with them later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.nets import load_tensors
from pubc.pu.auto.imitators import Imitators
from pubc.pu.auto.telling_steps import Scale, look
from pubc.pu.judge import Bench
from pubc.pu.paper.scoring import score_steps
from pubc.trajectory import Columns, TrajectorySet

__all__ = ["Unit", "load_unit", "rate", "rate_steps", "units_of"]

Floats = NDArray[np.float64]
CHUNK = 32
"""Trajectories rated as one piece of work."""


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A file of imitators."""

    imitators: Imitators
    """The networks."""
    scale: Scale
    """The scale of their states and actions."""
    sides: tuple[int, ...]
    """1 for imitators of the positives, -1 of the rest."""
    averaged: int
    """Rounds whose log ratios are averaged in the round of this file."""
    loss: list[float]
    """Mean training losses."""


def load_unit(path: Path, device: torch.device) -> Unit:
    """Read a file of imitators.

    Raises:
        DataError: It is damaged, or something else.
    """
    tensors, about = load_tensors(path)
    try:
        layers: list[tuple[torch.Tensor, torch.Tensor]] = []
        while f"layer{len(layers)}.weight" in tensors:
            name = f"layer{len(layers)}"
            weight, bias = tensors[f"{name}.weight"], tensors[f"{name}.bias"]
            if weight.ndim != 3 or bias.shape != (len(weight), 1, weight.shape[2]):
                raise ValueError(f"{name} has shapes {tuple(weight.shape)}, {tuple(bias.shape)}")
            layers.append((weight.to(device), bias.to(device)))
        if not layers:
            raise ValueError("it has no layers")
        return Unit(
            Imitators(tuple(layers), float(about["floor"])),
            Scale.from_tensors(tensors),
            tuple(int(side) for side in about["sides"]),
            int(about["averaged"]),
            [float(value) for value in about["loss"]],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path}: not a file of imitators ({error}).", code="bad_weights") from None


def units_of(shelf: Path, number: int, device: torch.device) -> list[Unit]:
    """The imitators behind the confidences of a round, weighed alike.

    Raises:
        DataError: The round left none.
    """
    stage = "seeds" if number == 1 else "sides"
    units = _of_round(shelf, number, stage, device)
    for earlier in range(number - 1, number - units[0].averaged, -1):
        units += _of_round(shelf, earlier, stage, device)
    return units


def rate(units: Sequence[Unit], trajectories: TrajectorySet, steps: int, bench: Bench) -> Floats:
    """Confidence in each trajectory, from so many telling steps of each."""
    scale = units[0].scale

    def work(first: int) -> Floats:
        # Together: every product is as large as a full block, however few steps are in it.
        found = look(scale, steps, trajectories[first : first + CHUNK])
        states, actions = (np.concatenate(found[name]) for name in ("states", "actions"))
        values = _values(units, states, actions)
        return np.array([row.mean(dtype=np.float64) for row in values.reshape(-1, steps)])

    parts = bench.map(work, range(0, len(trajectories), CHUNK))
    return np.concatenate(parts) if parts else np.zeros(0)


def rate_steps(
    units: Sequence[Unit], trajectories: TrajectorySet, bench: Bench
) -> Iterator[NDArray[np.float32]]:
    """Stream the value of every step, block by block."""
    scale = units[0].scale

    def values(columns: Columns) -> NDArray[np.float32]:
        states, actions = scale.states(columns.observations), scale.actions(columns.actions)
        return _values(units, states, actions)

    for block in score_steps([values], trajectories, bench):
        yield block[0]


def _of_round(shelf: Path, number: int, stage: str, device: torch.device) -> list[Unit]:
    paths = sorted(shelf.glob(f"round-{number:03d}-{stage}-*.safetensors"))
    if not paths:
        raise DataError(
            f"{shelf}: no imitators of round {number}. The run is damaged or was not finished.",
            code="missing_file",
        )
    return [load_unit(path, device) for path in paths]


def _values(
    units: Sequence[Unit], states: NDArray[np.float32], actions: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Log ratio of each row: the rest's mean residual minus the positives'."""
    sums = {1: np.zeros(len(states)), -1: np.zeros(len(states))}
    counts = {1: 0, -1: 0}
    for unit in units:
        found = unit.imitators.residuals(states, actions)
        for side, row in zip(unit.sides, found, strict=True):
            sums[side] += row
            counts[side] += 1
    value = -sums[1] / counts[1]
    if counts[-1]:
        value += sums[-1] / counts[-1]
    return value.astype(np.float32)
