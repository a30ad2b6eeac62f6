"""A judge that takes its time, so that something can happen to its workers meanwhile."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pubc.pu.judge import Bench
from pubc.pu.paper.ensemble import Ensemble
from pubc.trajectory import TrajectorySet


@dataclass(frozen=True)
class Patient:
    """Rates like an ensemble, a while later."""

    ensemble: Ensemble
    seconds: float

    def apply(
        self, shelf: Path, number: int, trajectories: TrajectorySet, bench: Bench
    ) -> np.ndarray:
        time.sleep(self.seconds)
        return self.ensemble.apply(shelf, number, trajectories, bench)

    def steps(self, *_: object) -> Iterator[np.ndarray]:
        raise NotImplementedError
