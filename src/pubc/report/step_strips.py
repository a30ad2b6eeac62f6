"""A strip per trajectory, coloured by how likely each stretch of it is the expert's.

Strips are drawn here as shapes with words, so the page needs no script for them: a stretch says
its steps and its reason when the pointer rests on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pubc.errors import PubcError
from pubc.pu.steps.cut_segments import LEVEL, Segments, worst_of
from pubc.runs.folder.run_reading import Run
from pubc.runs.segments.steps_file import read_steps

__all__ = ["WIDTH", "Strip", "most_doubtful", "step_strips", "text_strip"]

Floats = NDArray[np.float32]

WIDTH = 600
"""Units of a strip from its first step to its last."""
_MOST = 40
"""Strips on a page, the worst first."""
_PIECES = 100
"""Stretches of a strip that have a colour of their own."""
_SHADES = 5


@dataclass(frozen=True, slots=True)
class Strip:
    """One trajectory."""

    name: str
    """What the dataset calls it."""
    verdict: str
    """Whether it was kept."""
    share: float
    """Share of its steps that are the expert's."""
    pieces: tuple[tuple[float, float, int], ...]
    """Where each coloured stretch begins, how wide it is, and its shade, 0 for the expert's."""
    segments: tuple[tuple[float, float, str], ...]
    """Where each segment begins, how wide it is, and what to say of it."""


def step_strips(run: Run) -> list[Strip]:
    """The strips of a run, those with most steps of somebody else first; none where unknown."""
    found = _steps(run)
    if found is None:
        return []
    confidence, segments = found
    wrong = worst_of(segments, len(run.scores))
    # Trajectories that are all wrong say less than those that are wrong in part.
    order = np.lexsort((-wrong, wrong > 1 - 1 / _PIECES, ~run.scores.keep & (wrong == 0)))
    ends = np.cumsum(run.scores.lengths)
    starts = np.searchsorted(segments["trajectory"], np.arange(len(ends) + 1))
    strips = []
    for at in order[:_MOST].tolist():
        values = confidence[ends[at] - run.scores.lengths[at] : ends[at]]
        rows = segments[starts[at] : starts[at + 1]]
        strips.append(
            Strip(
                run.scores.ids[at],
                "kept" if run.scores.keep[at] else "dropped",
                float(1 - wrong[at]),
                tuple(_pieces(values)),
                tuple(_words(rows, len(values))),
            )
        )
    return strips


def most_doubtful(confidence: Floats, segments: Segments, lengths: NDArray[np.int64]) -> list[int]:
    """Trajectories that are the expert's in part, the most evenly divided first."""
    wrong = worst_of(segments, len(lengths))
    order = np.argsort(np.abs(wrong - 0.5), kind="stable")
    return [int(at) for at in order[:5] if 0 < wrong[at] < 1]


def text_strip(confidence: Floats, width: int = 60) -> str:
    """A trajectory in one line: # where the expert acts, . where not, + in between."""
    means = _means(confidence, width)
    return "".join("#" if m >= 2 / 3 else "." if m < 1 / 3 else "+" for m in means.tolist())


def _steps(run: Run) -> tuple[Floats, Segments] | None:
    try:
        confidence, segments = read_steps(run.path, int(run.scores.lengths.sum()))
    except PubcError:
        return None
    at = segments["trajectory"]
    inside = len(at) and at.min() >= 0 and at.max() < len(run.scores)
    whole = inside and np.array_equal(
        np.bincount(at, weights=segments["end"] - segments["first"], minlength=len(run.scores)),
        run.scores.lengths,
    )
    # A table that does not cover the trajectories of this run is not drawn.
    return (confidence, segments) if whole and (np.diff(at) >= 0).all() else None


def _means(values: Floats, most: int) -> NDArray[np.float64]:
    pieces = min(len(values), most)
    edges = np.arange(pieces + 1) * len(values) // max(pieces, 1)
    sums = np.add.reduceat(values.astype(np.float64), edges[:-1]) if pieces else np.zeros(0)
    return np.asarray(sums / np.diff(edges))


def _pieces(values: Floats) -> list[tuple[float, float, int]]:
    """Neighbours of one shade are one piece."""
    means = _means(values, _PIECES)
    shades = np.clip(((1 - means) * _SHADES).astype(int), 0, _SHADES - 1)
    wide = WIDTH / max(1, len(means))
    borders = np.concatenate([[0], np.flatnonzero(np.diff(shades)) + 1, [len(shades)]]).tolist()
    return [
        (round(first * wide, 1), round((end - first) * wide, 1), int(shades[first]))
        for first, end in pairwise(borders)
    ]


def _words(rows: Segments, length: int) -> list[tuple[float, float, str]]:
    scale = WIDTH / max(1, length)
    return [
        (
            round(int(row["first"]) * scale, 1),
            round(int(row["end"] - row["first"]) * scale, 1),
            f"steps {int(row['first'])} to {int(row['end']) - 1}: "
            f"{'the expert' if row['confidence'] >= LEVEL else str(row['reason'])} "
            f"(confidence {float(row['confidence']):.2f})",
        )
        for row in rows
    ]
