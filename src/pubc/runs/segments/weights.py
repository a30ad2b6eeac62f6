"""Weights of steps for trainers: the confidence of a run, hard or soft, and a sampler over it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.pu.steps.cut_segments import LEVEL

if TYPE_CHECKING:
    from torch.utils.data import WeightedRandomSampler

__all__ = ["Weighting", "step_sampler", "weigh_steps"]

Floats = NDArray[np.float32]
Weighting = Literal["hard", "soft"]


def weigh_steps(confidence: Floats, how: Weighting = "soft") -> Floats:
    """A weight per step: the confidence itself, or 1 from one half on and 0 below.

    Raises:
        UsageError: No step would weigh anything.
    """
    weights = confidence if how == "soft" else (confidence >= LEVEL).astype(np.float32)
    if not weights.sum() > 0:
        raise UsageError("No step of the run looks like the expert's, so nothing would be learned.")
    return np.asarray(weights, dtype=np.float32)


def step_sampler(confidence: Floats, steps: int | None = None) -> WeightedRandomSampler:
    """Draws steps as often as they are the expert's.

    Args:
        confidence: Of every step.
        steps: Steps in one pass; as many as are expected to be the expert's if omitted.

    Raises:
        UsageError: No step looks like the expert's, or none is asked for.
    """
    from torch.utils.data import WeightedRandomSampler

    weights = weigh_steps(confidence)
    count = max(1, round(float(weights.sum()))) if steps is None else steps
    if count < 1:
        raise UsageError(f"A sampler draws at least one step. Got {steps}.")
    return WeightedRandomSampler(weights.tolist(), count)
