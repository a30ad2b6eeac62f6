"""From the confidence of steps to segments: who acted from where to where, and why it is thought.

A trajectory is cut where the confidence crosses one half. What is kept of it are the expert's
segments less a margin next to faults, where they are long enough.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:  # it loads torch, and reports are drawn without
    from pubc.pu.steps.step_model import JudgedSteps

__all__ = ["LEVEL", "SEGMENT", "Segments", "cut_trajectory", "expert_stretches", "worst_of"]

SEGMENT = np.dtype(
    [
        ("trajectory", "<i8"),
        ("first", "<i8"),
        ("end", "<i8"),
        ("confidence", "<f4"),
        ("reason", "<U64"),
    ]
)
"""One row: trajectory, first step, last step + 1, mean confidence, and why it is no expert's."""
LEVEL = 0.5
"""Confidence from which a step is taken for the expert's."""

Segments = NDArray[np.void]
Floats = NDArray[np.float32]
Mask = NDArray[np.bool_]

_UNKNOWN = 0.5
"""Situations known less than this on average are new to the expert."""
_ONE_SIDED = 0.6
"""Share of the evidence against a segment that one action dimension has to have to be named."""


def cut_trajectory(parts: Sequence[JudgedSteps]) -> Segments:
    """The segments of one trajectory, whose parts come in order; they cover all of it."""
    confidence = np.concatenate([part.confidence for part in parts])
    columns = np.concatenate([part.columns for part in parts])
    known = np.concatenate([part.known for part in parts])
    own = confidence >= LEVEL
    borders = np.concatenate([[0], np.flatnonzero(own[1:] != own[:-1]) + 1, [len(own)]])
    rows = np.empty(len(borders) - 1, dtype=SEGMENT)
    for number, (first, end) in enumerate(pairwise(borders.tolist())):
        reason = "" if own[first] else _reason(columns[first:end], known[first:end])
        mean = confidence[first:end].mean()
        rows[number] = (parts[0].trajectory, first, end, mean, reason)
    return rows


def _reason(columns: Floats, known: Floats) -> str:
    """Why a segment is not the expert's, in words."""
    if known.mean() < _UNKNOWN:
        return "in situations that no step of the expert covers"
    against = -columns.mean(axis=0)
    worst = int(against.argmax())
    if columns.shape[1] > 1 and against[worst] > _ONE_SIDED * np.maximum(against, 0).sum() > 0:
        return f"action dimension {worst} is unlike the expert's"
    return "acts unlike the expert"


def expert_stretches(
    confidence: Floats, *, shortest: int, margin: int, without: Mask | None = None
) -> list[tuple[int, int]]:
    """First step and last step + 1 of what is kept of a trajectory.

    Args:
        confidence: Of its steps.
        shortest: Fewest steps of a stretch.
        margin: Steps left out next to a fault; the ends of the trajectory need none.
        without: Steps that go although the expert acted; they need no margin.
    """
    own = confidence >= LEVEL
    kept = np.zeros(len(own), dtype=np.bool_)
    for first, end in _runs(own):
        first += margin if first else 0
        end -= margin if end < len(own) else 0
        kept[first:end] = True
    if without is not None:
        kept &= ~without
    return [(first, end) for first, end in _runs(kept) if end - first >= shortest]


def _runs(flags: Mask) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def worst_of(segments: Segments, trajectories: int) -> NDArray[np.float64]:
    """Share of the steps of each trajectory that are not the expert's, shape (trajectories,)."""
    lengths = segments["end"] - segments["first"]
    wrong = np.where(segments["confidence"] < LEVEL, lengths, 0)
    at = segments["trajectory"]
    whole = np.bincount(at, weights=lengths, minlength=trajectories)
    return np.asarray(np.bincount(at, weights=wrong, minlength=trajectories) / np.maximum(whole, 1))
