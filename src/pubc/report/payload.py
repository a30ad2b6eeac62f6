"""What the page draws from, as compact JSON: columns of bytes instead of rows of text.

A hundred thousand trajectories are eight numbers each. As base64 of little-endian arrays they
take three megabytes and no parsing; every value arrives in the browser bit for bit.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.pu.rounds import Round
from pubc.runs.folder.run_reading import Run

__all__ = [
    "bars",
    "borderline_order",
    "known_ids",
    "pack",
    "packed_bits",
    "roc",
    "run_payload",
    "to_json",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]

SPARKS = 200
"""Borderline trajectories that get a picture of their confidence over time."""
_SPARK_POINTS = 80
_ROC_POINTS = 240
_LOSS_POINTS = 200
_BINS = 60


def pack(values: NDArray[Any], kind: str) -> dict[str, Any]:
    """An array as base64; `kind` is f8, f4, i4, u2 or u1."""
    raw = np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()
    return {"type": kind, "data": base64.b64encode(raw).decode("ascii")}


def packed_bits(mask: Mask) -> str:
    """A mask as base64 of bits, lowest bit first."""
    return base64.b64encode(np.packbits(mask, bitorder="little").tobytes()).decode("ascii")


def to_json(document: dict[str, Any]) -> str:
    """JSON that may stand inside a script element: no `<`, `>` or `&`, no line separators."""
    text = json.dumps(document, allow_nan=False, separators=(",", ":"), ensure_ascii=True)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def run_payload(run: Run) -> dict[str, Any]:
    """Everything that the page of one run draws."""
    scores = run.scores
    names, index = _names(run)
    flags = scores.keep * 1 + scores.seed * 2 + scores.borderline * 4
    return {
        "name": run.name,
        "count": len(scores),
        "threshold": run.document["threshold"],
        "ids": known_ids(scores.ids),
        "confidence": pack(scores.confidence, "f8"),
        "votes": pack(scores.votes, "i4"),
        "flags": pack(flags, "u1"),
        "returns": pack(scores.returns, "f8") if np.isfinite(scores.returns).any() else None,
        "lengths": pack(scores.lengths, "i4"),
        "source_names": names,
        "sources": None if index is None else pack(index, "i4"),
        "decisive": run.decisive,
        "rounds": [_round(run, number) for number in range(len(run.rounds))],
        "sparks": _sparks(run),
        "roc": None if run.truth is None else roc(scores.confidence, run.truth),
        "roc_cut": _taken(run),
    }


def roc(confidence: Floats, truth: Mask) -> dict[str, list[float]] | None:
    """Points of the ROC curve, thinned; None where one of the two kinds is absent."""
    known = np.isfinite(confidence)
    values, right = confidence[known], truth[known]
    positives, negatives = int(right.sum()), int((~right).sum())
    if not positives or not negatives:
        return None
    order = np.argsort(-values, kind="stable")
    hits, misses = np.cumsum(right[order]), np.cumsum(~right[order])
    # Equal confidences are told apart by no threshold: one corner for all of them.
    corner = np.flatnonzero(np.append(np.diff(values[order]) != 0, True))
    if len(corner) > _ROC_POINTS:
        corner = corner[np.linspace(0, len(corner) - 1, _ROC_POINTS).astype(np.int64)]
    return {
        "x": [0.0, *(misses[corner] / negatives).tolist()],
        "y": [0.0, *(hits[corner] / positives).tolist()],
    }


def _taken(run: Run) -> list[float] | None:
    """False and true positive rate of the selection itself."""
    if run.truth is None or run.truth.all() or not run.truth.any():
        return None
    kept = run.scores.keep
    return [float(kept[~run.truth].mean()), float(kept[run.truth].mean())]


def borderline_order(run: Run) -> Integers:
    """Borderline trajectories, the nearest to the cut first."""
    positions = np.flatnonzero(run.scores.borderline)
    threshold = run.document["threshold"]
    if threshold is None:
        return positions
    distance = np.abs(run.scores.confidence[positions] - threshold)
    return positions[np.argsort(distance, kind="stable")]


def _round(run: Run, index: int) -> dict[str, Any]:
    done = run.rounds[index]
    return {
        "number": done.number,
        "attempt": done.attempt,
        "threshold": done.threshold,
        "kept": done.kept,
        "changed": done.changed,
        "selected": packed_bits(done.selected),
        **bars(done),
        "losses": [[one.network, _thin(one.loss)] for one in done.verdict.training],
    }


def bars(done: Round) -> dict[str, Any]:
    """The histogram that the cut was read from, or one of our own where it needed none."""
    confidence = done.confidence
    known = np.isfinite(confidence)
    values, selected = confidence[known], done.selected[known]
    centres, counts, curve = done.cut.centres, done.cut.counts, done.cut.curve
    if len(centres) < 2:
        if not len(values):
            return {"centres": [], "counts": [], "kept_counts": [], "curve": []}
        counts, edges = np.histogram(values, bins=_BINS)
        centres, curve = (edges[:-1] + edges[1:]) / 2, np.zeros(0)
    else:
        half = np.diff(centres) / 2
        inner = centres[:-1] + half
        edges = np.concatenate(([centres[0] - half[0]], inner, [centres[-1] + half[-1]]))
    clipped = np.clip(values[selected], edges[0], edges[-1])
    kept = np.minimum(np.histogram(clipped, bins=edges)[0], counts)
    return {
        "centres": _finite(centres),
        "counts": _finite(counts),
        "kept_counts": _finite(kept),
        "curve": _finite(_on_bars(curve, counts)),
    }


def _on_bars(curve: Floats, counts: Floats) -> Floats:
    """A curve on the scale of the bars: both enclose the same area.

    A polynomial through the counts does so by itself; a density is smaller by the width of a bar
    and the number of trajectories, and would lie flat on the ground.
    """
    area = float(np.clip(curve[np.isfinite(curve)], 0, None).sum())
    scale = float(counts.sum()) / area if area > 0 else 1.0
    return curve if 0.8 <= scale <= 1.25 else np.asarray(curve * scale, dtype=np.float64)


def _sparks(run: Run) -> list[dict[str, Any]]:
    chosen = borderline_order(run)[:SPARKS]
    return [
        {"at": position, "values": pack(_means(values), "f4")}
        for position, values in run.steps_of(chosen)
    ]


def _means(values: NDArray[np.float32]) -> Floats:
    """Means over equal stretches of a trajectory, so that a long one fits a small picture."""
    pieces = min(len(values), _SPARK_POINTS)
    edges = np.arange(pieces + 1) * len(values) // max(pieces, 1)
    sums = np.add.reduceat(values.astype(np.float64), edges[:-1]) if pieces else np.zeros(0)
    return np.asarray(sums / np.diff(edges), dtype=np.float64)


def _names(run: Run) -> tuple[list[str], Integers | None]:
    """Names of the sources, the expert's first and then the most frequent, and who acted."""
    sources = run.scores.sources
    if sources is None:
        return [], None
    expert = (run.document.get("truth_report") or {}).get("expert")
    counts = Counter(sources)
    names = sorted(counts, key=lambda name: (name != expert, -counts[name], name))
    where = {name: at for at, name in enumerate(names)}
    return names, np.array([where[source] for source in sources], dtype=np.int64)


def known_ids(ids: list[str]) -> list[str] | None:
    """Ids, or None where each is its own position."""
    return None if all(name == str(at) for at, name in enumerate(ids)) else ids


def _finite(values: Floats) -> list[float | None]:
    return [float(value) if np.isfinite(value) else None for value in values]


def _thin(values: Sequence[float]) -> list[float | None]:
    array = np.asarray(values, dtype=np.float64)
    if len(array) > _LOSS_POINTS:
        array = array[np.linspace(0, len(array) - 1, _LOSS_POINTS).astype(np.int64)]
    return _finite(array)
