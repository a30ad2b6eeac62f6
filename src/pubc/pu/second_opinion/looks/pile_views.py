"""How a pile is looked at: how many steps of it, and how many times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pubc.pu.second_opinion.looks.evidence import View, open_view
from pubc.pu.second_opinion.looks.rows import Rows, join, look
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

__all__ = ["OpinionSettings", "open_views", "rows_of"]

Work = Callable[[Callable[[int], View], Sequence[int]], list[View]]


CODE = 8
"""Numbers in the code of an actor."""


@dataclass(frozen=True, slots=True)
class OpinionSettings:
    """How a pile is looked at."""

    looks: int = 2
    """Independent looks; each has a network and random features of its own."""
    trajectories: int = 500
    """At most so many trajectories are looked at, the seeds and the known bad among them."""
    rows: int = 20_000
    """At most about so many steps, spread over the trajectories."""
    updates: int = 500
    """Gradient steps of a network."""
    features: int = 64
    """Random features of each scale."""
    rounds: int = 6
    """Rounds of growing positives."""


def rows_of(
    mixed: TrajectorySet,
    strangers: TrajectorySet | None,
    settings: OpinionSettings,
    device: torch.device,
) -> Rows:
    """The steps to look at, of trajectories of the pile and then of seeds from outside."""
    steps = int(np.clip(settings.rows // len(mixed), 40, 240))
    rows = look(mixed, steps, device)
    if strangers is None:
        return rows
    return join(rows, look(strangers, steps, device, rows.scale))


def open_views(rows: Rows, settings: OpinionSettings, key: Key, work: Work) -> list[View]:
    """Every look at the pile."""

    def look_at(number: int) -> View:
        return open_view(
            rows,
            features=settings.features,
            size=CODE,
            updates=settings.updates,
            rng=key.at("look", number).rng(),
        )

    # torch loads its linear algebra for GPUs at the first call, and fails if two threads make it.
    torch.linalg.inv(torch.eye(2, device=rows.device))
    return work(look_at, range(settings.looks))
