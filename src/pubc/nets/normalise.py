"""What rows look like before a network sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CLIP", "Normaliser"]

Floats = NDArray[np.float32]

CLIP = 10.0
"""Normalised inputs beyond this are cut off: an outlier must not drown a network."""
FLOOR = 1e-6
"""Dimensions that vary less than this are shifted but not scaled."""
NARROW = 1e-3
"""Scales are at least this share of the largest absolute value, so that rounding noise of
a near-constant dimension is not blown up into a signal."""


@dataclass(frozen=True, slots=True, eq=False)
class Normaliser:
    """Shifts and scales rows; stored with a network and the same wherever it is used."""

    mean: Floats
    """Subtracted from each dimension."""
    scale: Floats
    """Each dimension is divided by this."""

    def fits(self) -> bool:
        """Whether each dimension has a finite mean and a scale that can be divided by."""
        alike = self.mean.ndim == 1 and self.mean.shape == self.scale.shape
        finite = np.isfinite(self.mean).all() and np.isfinite(self.scale).all()
        return alike and bool(finite and (self.scale > 0).all())

    @classmethod
    def from_moments(cls, mean: NDArray[Any], deviation: NDArray[Any]) -> Normaliser:
        """From mean and standard deviation of each dimension, with a floor on the latter."""
        floor = np.maximum(FLOOR, NARROW * np.abs(mean))
        scale = np.where(deviation < FLOOR, 1.0, np.maximum(deviation, floor))
        return cls(mean.astype(np.float32), scale.astype(np.float32))

    def __call__(self, rows: NDArray[Any]) -> Floats:
        """Normalised float32 rows, cut off at plus and minus 10."""
        scaled = (np.asarray(rows, dtype=np.float32) - self.mean) / self.scale
        return np.asarray(np.clip(scaled, -CLIP, CLIP), dtype=np.float32)
