"""Which trajectories of a dataset on the disk are to be copied as they lie there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pubc.formats.core.findings import Findings
from pubc.formats.core.options import ReadOptions
from pubc.trajectory import TrajectorySet

__all__ = ["Selection"]


@dataclass(frozen=True, slots=True)
class Selection:
    """Some trajectories of a dataset; what `subset` of a format copies."""

    source: Path
    """The dataset; it is not modified."""
    kept: NDArray[np.int64]
    """Positions in the set as reading `source` with `options` gives it."""
    options: ReadOptions
    """How the set was read."""

    def read(self, reader: Callable[[Path, ReadOptions, Findings], TrajectorySet]) -> TrajectorySet:
        """The selected trajectories, over columns with the rows of the source.

        Args:
            reader: `read` of the format.
        """
        return reader(self.source, self.options, Findings(self.source))[self.kept]
