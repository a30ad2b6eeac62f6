"""Seeds that look like another policy than the others."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pubc.pu.second_opinion.opinion import Opinion

__all__ = ["name_seeds", "seed_words"]

Mask = NDArray[np.bool_]

_SURE = 0.125
"""Share of divided votes up to which evidence is sure of a trajectory."""
_ENOUGH = 4
"""From so many seeds on, one that evidence does not find may be told from the others."""


def name_seeds(
    opinion: Opinion, selected: Mask, seeds: Mask, *, converged: bool
) -> tuple[int, ...]:
    """Positions of seeds that look like another policy.

    Those that every vote puts on the other side, that evidence and rounds that converged put there,
    or the one that evidence does not find while it is sure of all the others.

    Args:
        opinion: What the evidence says.
        selected: What the rounds selected.
        seeds: Which trajectories are seeds.
        converged: Whether the rounds did.
    """
    own, looked = seeds[opinion.looked], opinion.looked
    missed = own & ~opinion.kept
    sure_of_others = bool((opinion.doubt[own & ~missed] <= _SURE).all())
    odd_one_out = missed.sum() == 1 and own.sum() >= _ENOUGH and sure_of_others
    if converged:
        missed &= ~selected[looked]
    elif not odd_one_out:
        missed[:] = False
    return tuple(sorted({*opinion.lonely_seeds.tolist(), *looked[missed].tolist()}))


def seed_words(position: int) -> str:
    """What is said of such a seed."""
    return (
        f"The seed at position {position} looks like another policy: judged without itself it "
        "is on the other side. Leave it out if it is; if the expert acts in more than one way, "
        "add seeds like it."
    )
