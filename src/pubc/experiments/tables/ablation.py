"""Table 5: what each part of the method is worth, of the paper's and of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pubc.experiments.cell import FilterSpec, Scale, SeedSpec, Table
from pubc.experiments.tables.grid import filter_cells
from pubc.experiments.tables.methods import DEVELOPED_ON, method
from pubc.experiments.tables.pu_accuracy import SCALED_DOWN
from pubc.experiments.tables.robots import (
    HUMANOID_W,
    LOCOMOTION,
    REAL,
    ROBOT_DATA,
    SIMULATED,
    seeds_for,
)

__all__ = ["PAPER", "TABLE"]

_COLLAPSED = "✗"
PAPER: dict[str, tuple[float | str, ...]] = {
    "TriFinger-Real lift": (0.992, _COLLAPSED, _COLLAPSED, 0.928, _COLLAPSED, 0.992, 0.992),
    "TriFinger-Real push": (1.0, 0.778, _COLLAPSED, 1.0, 0.898, 1.0, 1.0),
    "Humanoid E+E": (0.997, 0.893, 0.997, 0.948, _COLLAPSED, 0.997, 0.997),
    "Humanoid E+W": (1.0, 0.948, 1.0, 1.0, 0.697, 1.0, 1.0),
    "Humanoid E+N": (1.0, 0.987, 1.0, 1.0, 1.0, 1.0, 1.0),
    "Humanoid E+E+W+N": (0.990, 0.832, 0.990, 0.910, _COLLAPSED, 0.990, 0.990),
}
"""Table 5 of the paper in the order of its columns."""

_PAPER_PARTS: dict[str, Mapping[str, Any]] = {
    "paper": {},
    "single steps": {},
    "threshold 0.5": {"cut": 0.5},
    "K = 1": {"ensemble.classifiers": 1},
}
_SHARES = {"seed 0.1 %": 0.001, "seed 0.4 %": 0.004, "seed 1 %": 0.01}
_SUM_OF_LOGS, _GUARDED = "sum of logs", "paper-guarded"
"""Columns about the paper's recipe that its Table 5 does not have."""
_AUTO_PARTS: dict[str, Mapping[str, Any]] = {
    "auto": {},
    "one look": {"opinion.looks": 1},
    "no growth": {"opinion.rounds": 2},
    "one round": {"loop.max_rounds": 1},
    "no average": {"residual.average_rounds": 1},
    "no trim": {"residual.trim": 0.0},
    "uneven sides": {"residual.side_ratio": 1_000_000},
    "seeds ignored": {"cut.keep_seeds": 0.0},
    "no advantage": {"cut.advantage": 0.0},
}
_ROWS = (*(row for row in LOCOMOTION if row.startswith("Humanoid")), *SIMULATED, *REAL)
_COLUMNS = (*_PAPER_PARTS, *_SHARES, _SUM_OF_LOGS, _GUARDED, *_AUTO_PARTS)


def _filter(row: str, column: str, scale: Scale) -> FilterSpec:
    seeds = seeds_for(row, scale)
    if column in _AUTO_PARTS:
        return method("auto", scale, seeds, settings=_AUTO_PARTS[column])
    if column in _SHARES:
        return method("paper", scale, SeedSpec(share=_SHARES[column]))
    if column == _GUARDED:
        return method("paper-guarded", scale, seeds)
    if column == _SUM_OF_LOGS:
        return method("paper", scale, seeds, settings={"ensemble.rule": "sum_log"})
    decision: Any = "step" if column == "single steps" else "trajectory"
    settings = _PAPER_PARTS[column]
    return method("paper", scale, seeds, settings=settings, decision=decision)


def _paper(row: str, column: str) -> float | str | None:
    place = _COLUMNS.index(column)
    known = PAPER.get(row, ())
    return known[place] if place < len(known) else None


TABLE = Table(
    name="ablation",
    title="What each part of the method is worth (Table 5, and the parts of auto)",
    caption=(
        "Accuracy with one part changed. Of the paper's recipe: every step decided on its own "
        "(accuracy over steps), a fixed threshold of 0.5, one classifier, seed positives of "
        "0.1, 0.4 and 1 % of the steps of the mixed set, the last trajectory cut, the sum of the "
        "logarithms of F instead of the mean of F, and the guards of paper-guarded. Of auto: one "
        "look instead of two, two rounds of growing positives instead of six, one round of "
        "imitators, no average over rounds, nothing trimmed next to the cut, sides of any size, "
        "a cut that need not keep the seeds, and no advantage asked of both sides. ✗ is the "
        f"paper's mark for a training that collapsed. {HUMANOID_W} {DEVELOPED_ON}"
    ),
    scaled_down=SCALED_DOWN,
    rows=_ROWS,
    columns=_COLUMNS,
    cells=filter_cells(_ROWS, _COLUMNS, _filter, paper=_paper),
    data=ROBOT_DATA,
    extra={"ours": ["auto"]},
)
