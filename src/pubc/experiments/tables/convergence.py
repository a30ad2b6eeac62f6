"""Table 3 and Figure 3: how the rounds of the filter go, with threshold and histogram of each."""

from __future__ import annotations

from pubc.experiments.cell import Table
from pubc.experiments.tables.grid import filter_cells, named_filter
from pubc.experiments.tables.methods import DEVELOPED_ON
from pubc.experiments.tables.pu_accuracy import PAPER, SCALED_DOWN
from pubc.experiments.tables.robots import HUMANOID_W, LOCOMOTION, REAL, ROBOT_DATA, SIMULATED

__all__ = ["PAPER_ROUNDS", "TABLE"]

PAPER_ROUNDS: dict[str, list[dict[str, int]]] = {
    "lift": [
        {"round": 1, "TP": 200, "FP": 4, "FN": 998, "TN": 1193},
        {"round": 2, "TP": 1005, "FP": 97, "FN": 193, "TN": 1100},
        {"round": 3, "TP": 1195, "FP": 37, "FN": 3, "TN": 1160},
        {"round": 4, "TP": 1194, "FP": 9, "FN": 4, "TN": 1188},
    ],
    "push": [
        {"round": 1, "TP": 1421, "FP": 2, "FN": 429, "TN": 1918},
        {"round": 2, "TP": 1915, "FP": 0, "FN": 5, "TN": 1100},
        {"round": 3, "TP": 1920, "FP": 0, "FN": 0, "TN": 1920},
    ],
}
"""Table 3 of the paper as printed; the counts of its push rounds 1 and 2 do not add up to those
of round 3."""

_ROWS = (*SIMULATED, *REAL, *LOCOMOTION)
_COLUMNS = ("paper", "paper-guarded", "auto")


def _paper(row: str, column: str) -> float:
    return PAPER[row][2]


TABLE = Table(
    name="convergence",
    title="Round by round: right and wrong decisions, threshold, histogram (Table 3, Figure 3)",
    caption=(
        "Accuracy after the last round. Every record holds its rounds: right and wrong decisions, "
        "the threshold, and the histogram of confidences with the curve that the cut was read "
        "from. The first round of auto looks for a split to start from; its confidences are log "
        "ratios of residuals, not probabilities. "
        f"{HUMANOID_W} {DEVELOPED_ON}"
    ),
    scaled_down=SCALED_DOWN,
    rows=_ROWS,
    columns=_COLUMNS,
    cells=filter_cells(_ROWS, _COLUMNS, named_filter, paper=_paper, details=("trace",)),
    data=ROBOT_DATA,
    # The same figures as in Table 1, where they are compared.
    direction="neither",
    extra={
        "paper_rounds": PAPER_ROUNDS,
        "figure": {"kind": "rounds", "rows": [*SIMULATED, "Ant E+E", "Humanoid E+E"]},
    },
)
