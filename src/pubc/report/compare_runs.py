"""Several runs side by side: what was asked of each, what came out, where they disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pubc.report.payload import bars, known_ids, pack, packed_bits
from pubc.report.summary import flat
from pubc.runs.folder.run_reading import Run

__all__ = ["comparison", "comparison_payload"]

_ROWS: tuple[tuple[str, str, str], ...] = (
    ("status", "Status", "auto"),
    ("kept", "Kept", "auto"),
    ("kept_steps", "Kept steps", "auto"),
    ("threshold", "Threshold", "auto"),
    ("rounds", "Rounds", "auto"),
    ("second_opinion.agreement", "Evidence agrees", "share"),
    ("controls.start", "Told apart by the start", "auto"),
    ("quality.seeds_kept", "Seeds above the cut", "share"),
    ("quality.gap", "Gap at the cut", "share"),
    ("quality.borderline", "Borderline", "auto"),
    ("truth_report.accuracy", "Accuracy", "share"),
    ("truth_report.auc", "AUC", "auto"),
    ("times.seconds.total", "Seconds", "auto"),
)
_SETTINGS = ("data", "seed", "recipe", "settings", "random_seed", "device", "reading", "pubc")


def comparison(runs: Sequence[Run]) -> dict[str, Any]:
    """The facts of a comparison, as JSON values."""
    same = len({run.document["data"]["fingerprint"] for run in runs}) == 1
    rows = []
    for key, words, kind in _ROWS:
        values = [_find(run.document, key) for run in runs]
        if any(value is not None for value in values):
            differs = any(value != values[0] for value in values)
            rows.append(
                {"key": key, "words": words, "kind": kind, "values": values, "differs": differs}
            )
    facts: dict[str, Any] = {
        "names": _names(runs),
        "same": same,
        "rows": rows,
        "settings": _settings(runs),
    }
    if same:
        kept = np.stack([run.scores.keep for run in runs])
        differ = np.flatnonzero((kept != kept[0]).any(axis=0))
        facts |= {
            "count": kept.shape[1],
            "disagree": len(differ),
            "patterns": _patterns(kept),
            "disagreements": [runs[0].scores.ids[at] for at in differ.tolist()],
        }
    return facts


def comparison_payload(runs: Sequence[Run], facts: dict[str, Any]) -> dict[str, Any]:
    """What the page of a comparison draws from."""
    first = runs[0].scores
    drawn: dict[str, Any] = {
        "same": facts["same"],
        "runs": [
            {
                "name": name,
                "threshold": run.document["threshold"],
                "last": _last(run),
                "confidence": pack(run.scores.confidence, "f8"),
                "kept": packed_bits(run.scores.keep),
            }
            for name, run in zip(facts["names"], runs, strict=True)
        ],
    }
    if facts["same"]:
        known = np.isfinite(first.returns).any()
        drawn |= {
            "count": len(first),
            "ids": known_ids(first.ids),
            "returns": pack(first.returns, "f8") if known else None,
            "lengths": pack(first.lengths, "i4"),
        }
    return drawn


def _last(run: Run) -> dict[str, Any]:
    """The round that decided, with the cut of its own confidences.

    The run may have decided by other evidence, whose threshold is on another scale.
    """
    last = run.rounds[run.decisive]
    return {**bars(last), "threshold": last.threshold}


def _patterns(kept: Any) -> list[dict[str, Any]]:
    """How many trajectories each combination of labels has, agreement first."""
    found, counts = np.unique(kept.T, axis=0, return_counts=True)
    rows = [
        {"kept": row.tolist(), "count": int(count)}
        for row, count in zip(found, counts, strict=True)
    ]
    return sorted(rows, key=lambda row: (len(set(row["kept"])), [not k for k in row["kept"]]))


def _settings(runs: Sequence[Run]) -> list[dict[str, Any]]:
    every = [
        dict(pair for part in _SETTINGS for pair in flat(part, run.document.get(part)))
        for run in runs
    ]
    keys = list(dict.fromkeys(key for settings in every for key in settings))
    rows = [{"key": key, "values": [settings.get(key) for settings in every]} for key in keys]
    return [row for row in rows if any(value != row["values"][0] for value in row["values"])]


def _names(runs: Sequence[Run]) -> list[str]:
    names = [run.name for run in runs]
    if len(set(names)) == len(names):
        return names
    return [str(run.path) for run in runs]


def _find(document: dict[str, Any], key: str) -> Any:
    value: Any = document
    for word in key.split("."):
        value = value.get(word) if isinstance(value, dict) else None
    return value
