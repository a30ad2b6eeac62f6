"""Judged steps as a part of the filter stage: how sure each one is, and how right that is.

What a filter of steps is measured by: the area under the ROC curve of single steps, what is kept
of them and how much of that is the expert's, and how far true borders lie from found ones.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pubc.collect.lapses import EXPERT_STEPS
from pubc.experiments.cell import StepFilterSpec
from pubc.metrics import confusion, roc_auc
from pubc.trajectory import TrajectorySet

if TYPE_CHECKING:
    from pubc.runs.find_expert import Result

__all__ = [
    "FAR",
    "MEASURES",
    "border_distance",
    "expert_steps",
    "kept_steps",
    "read_confidence",
    "segments_in",
    "write_judged",
]

Mask = NDArray[np.bool_]
Floats = NDArray[np.float32]
_FILE = "confidence.npy"
MEASURES = (
    "segments",
    "kept_share",
    "expert_share",
    "step_auc",
    "precision",
    "recall",
    "border",
    "judging_seconds",
)
"""What is said of judged steps; rightness only where the data says whose each step is."""
FAR = 50
"""No border counts as farther away than this, so that one that nobody found has a distance."""


def expert_steps(mixed: TrajectorySet) -> Mask | None:
    """Which steps are the expert's own, where the data says so, shape (steps,)."""
    column = mixed.columns.extras.get(EXPERT_STEPS)
    if column is None:
        return None
    return np.asarray(column).reshape(-1).astype(np.bool_)[mixed.rows()]


def write_judged(
    folder: Path,
    mixed: TrajectorySet,
    seeds: TrajectorySet,
    found: Result,
    spec: StepFilterSpec,
    random_seed: int,
) -> dict[str, Any]:
    """Judge every step, keep how sure each one is, and say how right that is.

    Args:
        folder: Where the confidences are kept.
        mixed: The data.
        seeds: The seed positives.
        found: What the recipe found of the trajectories.
        spec: How segments are cut.
        random_seed: Of the filter.
    """
    from pubc.runs.find_expert import prepare
    from pubc.runs.segments.run_steps import judge_steps
    from pubc.streams import Key

    ready = prepare(mixed, seeds)
    began = time.perf_counter()
    parts = list(judge_steps(ready, found, Key(random_seed)))
    seconds = round(time.perf_counter() - began, 2)
    confidence = np.concatenate([part.confidence for part in parts])
    with (folder / _FILE).open("wb") as file:
        np.save(file, confidence, allow_pickle=False)
    return {**_measures(mixed, confidence, spec), "judging_seconds": seconds}


def read_confidence(folder: Path) -> Floats:
    """How sure every step is, shape (steps,)."""
    confidence: Floats = np.load(folder / _FILE, allow_pickle=False)
    return confidence


def segments_in(
    mixed: TrajectorySet, confidence: Floats, *, shortest: int, margin: int
) -> TrajectorySet:
    """The expert's segments, as `pubc filter --segments` cuts them; no trajectory without any."""
    from pubc.runs.segments.segment_set import cut_segments

    nobody = np.zeros(len(mixed), dtype=np.bool_)
    made = cut_segments(mixed, confidence, nobody, shortest=shortest, margin=margin)
    return mixed[nobody] if made is None else made


def kept_steps(mixed: TrajectorySet, segments: TrajectorySet) -> Mask:
    """Which steps of the data some segments of it hold, shape (steps,)."""
    rows = np.zeros(len(mixed.columns.observations), dtype=np.bool_)
    if len(segments):
        rows[segments.rows()] = True
    return np.asarray(rows[mixed.rows()])


def border_distance(confidence: Floats, own: Mask, lengths: NDArray[np.int64]) -> float | None:
    """Median distance of a true border from the nearest one that was found, at most `FAR`.

    Args:
        confidence: Of every step.
        own: Which steps are the expert's.
        lengths: Steps of each trajectory.

    Returns:
        None where nobody but the expert ever acts.
    """
    away: list[int] = []
    start = 0
    for length in lengths.tolist():
        part = slice(start, start + length)
        true = np.flatnonzero(np.diff(own[part].astype(np.int8)))
        seen = np.flatnonzero(np.diff((confidence[part] >= 0.5).astype(np.int8)))
        away += [min(FAR, int(np.abs(seen - at).min())) if len(seen) else FAR for at in true]
        start += length
    return float(np.median(away)) if away else None


def _measures(mixed: TrajectorySet, confidence: Floats, spec: StepFilterSpec) -> dict[str, Any]:
    own = expert_steps(mixed)
    cut = segments_in(mixed, confidence, shortest=spec.shortest, margin=spec.margin)
    kept = kept_steps(mixed, cut)
    told: dict[str, Any] = {"segments": len(cut), "kept_share": float(kept.mean())}
    if own is None:
        return told
    counts = confusion(kept, own)
    return {
        **told,
        "expert_share": float(own.mean()),
        "step_auc": _known(roc_auc(confidence, own)),
        "precision": _known(counts.precision),
        "recall": _known(counts.recall),
        "border": border_distance(confidence, own, mixed.lengths),
    }


def _known(value: float) -> float | None:
    return value if np.isfinite(value) else None
