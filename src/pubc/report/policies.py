"""Policies as the report sees them: how they learned, and what they earn.

Two things are read: policy folders (config.json with metrics.jsonl, and evaluations.jsonl where
`pubc train --evaluate-every` wrote one) and files of records as `pubc evaluate --record` and
`pubc compare` append them. Records that also say after how many `updates` a policy was evaluated
make learning curves of scores, the paper's Figure 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from pubc.errors import DataError
from pubc.metrics import interval
from pubc.results import Record, read
from pubc.storage import parse_json, read_json

__all__ = ["is_policy", "is_records", "policies"]

_METRICS = "metrics.jsonl"
_EVALUATIONS = "evaluations.jsonl"
_COUNTED = ("epoch", "updates")
_EARNED = ("score", "return")
_POINTS = 400
_PAIRS = 40


def is_policy(path: Path) -> bool:
    """Whether a path looks like a policy folder."""
    return (path / "config.json").is_file() and (path / "policy.safetensors").is_file()


def is_records(path: Path) -> bool:
    """Whether a path looks like a file of records."""
    return path.is_file() and path.suffix == ".jsonl"


def policies(folders: Sequence[Path], files: Sequence[Path]) -> dict[str, Any] | None:
    """Learning curves, scores and paired differences as JSON values; None without any.

    Raises:
        DataError: A file is not what it should be.
    """
    inside = [folder / _EVALUATIONS for folder in folders]
    records = [record for path in (*inside, *files) for record in read(path)]
    evaluated = [r for r in records if r.cell.get("kind") == "evaluate" and "return" in r.values]
    along = [record for record in evaluated if "updates" in record.cell]
    final = [record for record in evaluated if "updates" not in record.cell]
    told = {folder: _metrics(folder) for folder in folders}
    # One axis for all: policies of older versions count epochs alone.
    counted = all("updates" in row for rows in told.values() for row in rows)
    at = "updates" if counted else "epoch"
    lines = [line for folder, rows in told.items() for line in _learned(folder, rows, at)]
    lines += [line for record in along for line in _measured(record)]
    curves = _curves(lines)
    if not curves and not final:
        return None
    return {
        "curves": curves,
        "metrics": _earned_first(curve["metric"] for curve in curves),
        "xLabel": "updates" if along else at,
        "scores": [_score(record) for record in final],
        "differences": _differences(final),
    }


def _earned_first(metrics: Iterable[str]) -> list[str]:
    """What a policy earns comes before how well it fits: the first is what a page opens on."""
    names = list(dict.fromkeys(metrics))
    return sorted(names, key=lambda name: _EARNED.index(name) if name in _EARNED else len(_EARNED))


Line = tuple[str, str, str, list[float], list[float]]
"""Group, metric, one run of the group, x and y."""


def _metrics(folder: Path) -> list[dict[str, Any]]:
    """What training said, a JSON object per epoch."""
    path = folder / _METRICS
    try:
        rows = [parse_json(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if not all(_number(row["epoch"]) for row in rows):
            raise ValueError("an epoch is not a number")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise DataError(
            f"{path}: expected one JSON object with an epoch per line ({error}).",
            code="bad_metrics",
        ) from None
    return rows


def _learned(folder: Path, rows: Sequence[Mapping[str, Any]], at: str) -> list[Line]:
    group = _group(read_json(folder / "config.json"), folder)
    names = dict.fromkeys(name for row in rows for name in row if name not in _COUNTED)
    found = []
    for name in names:
        pairs = [(row[at], row[name]) for row in rows if _number(row.get(name))]
        x, y = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
        found.append((group, name, str(folder), x, y))
    return found


def _group(config: Mapping[str, Any], folder: Path) -> str:
    """What policies that differ in their random seed alone have in common."""
    data = config.get("data")
    name = data.get("name") if isinstance(data, dict) else None
    words = [config.get("learner"), None if name is None else f"on {name}"]
    return " ".join(str(word) for word in words if word) or folder.name


def _measured(record: Record) -> list[Line]:
    cell = dict(record.cell)
    at, seed = cell.pop("updates"), cell.pop("random_seed", None)
    score = record.values.get("score")
    name = "return" if score is None else "score"
    value = record.values["return"]["mean"] if score is None else score
    group = f"{cell.get('policy')} on {cell.get('environment')}"
    return [(group, name, str(seed), [float(at)], [float(value)])]


def _curves(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Mean, lowest and highest of each group at each x."""
    grouped: dict[tuple[str, str], dict[str, dict[float, float]]] = {}
    for group, metric, one, xs, ys in lines:
        member = grouped.setdefault((group, metric), {}).setdefault(one, {})
        member |= dict(zip(xs, ys, strict=True))
    curves = []
    for (group, metric), members in grouped.items():
        x = sorted({at for member in members.values() for at in member})
        if len(x) > _POINTS:
            x = [x[i] for i in np.linspace(0, len(x) - 1, _POINTS).astype(int)]
        columns = _at(x, list(members.values()))
        curves.append(
            {
                "name": group,
                "metric": metric,
                "seeds": len(members),
                "x": x,
                "mean": [float(np.mean(values)) for values in columns],
                "low": [min(values) for values in columns],
                "high": [max(values) for values in columns],
            }
        )
    return curves


def _at(x: Sequence[float], members: Sequence[Mapping[float, float]]) -> list[list[float]]:
    """The values of all members at each x that lies between the ends of theirs.

    Epochs of other random seeds can have other lengths, because they hold out other trajectories;
    between its own points a member runs straight.
    """
    columns: list[list[float]] = [[] for _ in x]
    for member in filter(None, members):
        at = sorted(member)
        values = np.interp(x, at, [member[place] for place in at])
        for column, place, value in zip(columns, x, values, strict=True):
            if at[0] <= place <= at[-1]:
                column.append(float(value))
    return columns


def _score(record: Record) -> dict[str, Any]:
    earned = record.values["return"]
    low, high = earned.get("interval") or (None, None)
    return {
        "name": str(record.cell.get("policy")),
        "environment": str(record.cell.get("environment")),
        "random_seed": record.cell.get("random_seed"),
        "episodes": record.cell.get("episodes"),
        "mean": earned["mean"],
        "deviation": earned.get("std"),
        "low": low,
        "high": high,
        "score": record.values.get("score"),
    }


def _differences(records: Sequence[Record]) -> list[dict[str, Any]]:
    """Pairs of policies that met the same starts."""
    rows: list[dict[str, Any]] = []
    for first, second in combinations(records, 2):
        same = all(
            first.cell.get(name) == second.cell.get(name)
            for name in ("environment", "random_seed", "episodes")
        )
        a, b = first.values.get("returns"), second.values.get("returns")
        if not same or not a or not b or len(a) != len(b) or len(rows) >= _PAIRS:
            continue
        apart = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
        low, high = interval(apart)
        rows.append(
            {
                "first": str(first.cell.get("policy")),
                "second": str(second.cell.get("policy")),
                "mean": float(apart.mean()),
                "low": low,
                "high": high,
                "count": len(apart),
            }
        )
    return rows


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value)
