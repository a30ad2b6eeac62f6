"""Weights and biases of all layers in one flat vector, so that Adam is one call over it.

The last layer has few outputs, and products are fast along the long side of a matrix. So it
lies in the vector the other way round than the others, and so do the outputs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from pubc.errors import UsageError

__all__ = ["LAYOUT", "check_layout", "initial_parameters", "split"]

LAYOUT = "last layer turned"
"""How layers lie in a flat vector. Say something new here when that changes: a saved state of
another layout fits in size, and would be taken for this one."""


def initial_parameters(sizes: Sequence[int], rng: np.random.Generator) -> NDArray[np.float32]:
    """A flat vector of fresh weights and biases, uniform in 1/sqrt(inputs)."""
    parts = []
    for inputs, outputs in itertools.pairwise(sizes):
        bound = 1 / math.sqrt(inputs)
        parts.append(rng.uniform(-bound, bound, size=(inputs + 1, outputs)))
    parts[-1] = parts[-1].T
    return np.concatenate([part.ravel() for part in parts]).astype(np.float32)


def split(flat: Tensor, sizes: Sequence[int]) -> list[Tensor]:
    """The layers inside a flat vector: views of shape (inputs + 1, outputs), bias last."""
    layers, start = [], 0
    for inputs, outputs in itertools.pairwise(sizes):
        count, last = (inputs + 1) * outputs, start + (inputs + 1) * outputs == flat.shape[-1]
        part, lead = flat[..., start : start + count], flat.shape[:-1]
        if last:
            layers.append(part.view(*lead, outputs, inputs + 1).mT)
        else:
            layers.append(part.view(*lead, inputs + 1, outputs))
        start += count
    return layers


def check_layout(facts: Mapping[str, Any]) -> None:
    """Refuse a saved state whose flat vectors are cut in another way.

    Raises:
        UsageError: The state names another layout, or none.
    """
    found = facts.get("layout")
    if found != LAYOUT:
        raise UsageError(
            f"The unfinished run was saved by another version of pubc: its weights lie as "
            f"{found!r}, and {LAYOUT!r} was expected. Delete its .training folder to start "
            "afresh, or finish it with the version that began it."
        )
