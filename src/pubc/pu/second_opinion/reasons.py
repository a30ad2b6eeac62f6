"""Why a trajectory is not kept: the kind of evidence in which it falls short most, in words."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pubc.pu.second_opinion.looks.evidence import EVIDENCE
from pubc.pu.second_opinion.opinion import Opinion

__all__ = ["reasons_for"]

Mask = NDArray[np.bool_]

_NAMES = tuple(EVIDENCE)
_SITUATIONS = ("situations", "situations_worst")


def reasons_for(kept: Mask, unsure: Mask, differs: Mask, opinion: Opinion) -> tuple[str, ...]:
    """Why each trajectory is unsure or dropped; empty for kept ones.

    Args:
        kept: What is kept.
        unsure: What could be either.
        differs: Where rounds and evidence differ.
        opinion: What the evidence says.
    """
    named = {
        int(position): _NAMES[int(kind)]
        for position, kind in zip(opinion.looked, opinion.shortfall, strict=True)
    }
    said = []
    for position in range(len(kept)):
        kind = named.get(position)
        if kept[position]:
            said.append("")
        elif unsure[position]:
            said.append(_unsure_reason(kind, bool(differs[position])))
        else:
            said.append("unlike the seeds" if kind is None else EVIDENCE[kind])
    return tuple(said)


def _unsure_reason(kind: str | None, differs: bool) -> str:
    if kind in _SITUATIONS:
        return "in situations that no seed covers"
    if kind is not None and kind.endswith("_worst"):
        return "only part of it is like the seeds"
    return "kinds of evidence disagree" if differs else "near the cut"
