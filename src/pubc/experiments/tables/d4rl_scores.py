"""Table 6 and Figure 5 of the paper: offline reinforcement learning with and without PU."""

from __future__ import annotations

from collections.abc import Mapping

from pubc.experiments.cell import Cell, DatasetSpec, Scale, SeedSpec, Table
from pubc.experiments.tables.learners import SCALED_DOWN, learner
from pubc.experiments.tables.methods import method

__all__ = ["PAPER", "TABLE"]

_COLUMNS = {"BC": "bc", "PLAS": "plas", "IQL": "iql", "TD3+BC": "td3bc"}
"""Column to learner."""
_WITH, _WITHOUT = "with PU", "without PU"
PAPER: dict[str, tuple[float, float, float, float]] = {
    f"halfcheetah {_WITH}": (0.93, 0.92, 0.93, 0.94),
    f"halfcheetah {_WITHOUT}": (0.56, 0.74, 0.69, 0.93),
    f"hopper {_WITH}": (1.11, 0.66, 0.64, 1.10),
    f"hopper {_WITHOUT}": (0.51, 0.32, 0.35, 0.89),
    f"walker2d {_WITH}": (1.08, 1.09, 1.10, 1.10),
    f"walker2d {_WITHOUT}": (0.76, 0.99, 1.06, 1.11),
}
"""Table 6 of the paper by row, in the order of the columns."""

_BODIES = ("halfcheetah", "hopper", "walker2d")
_SEEDS = SeedSpec(top=0.002)
"""The paper's 0.2 % with the highest returns; two of them where that is fewer."""
_POINTS = {"paper": 100}
_FEW_POINTS = 5


def _cells(scale: Scale, random_seeds: int, data: Mapping[str, DatasetSpec]) -> list[Cell]:
    return [
        Cell(
            row,
            column,
            data.get(_file(row), scale.dataset(f"{_body(row)}:medium-expert")),
            method("auto", scale, _SEEDS) if row.endswith(_WITH) else None,
            learner(
                _COLUMNS[column],
                _body(row),
                scale,
                curve_points=_POINTS.get(scale.name, _FEW_POINTS),
            ),
            random_seed=seed,
            paper=figure,
            measure="score",
        )
        for row, figures in PAPER.items()
        for column, figure in zip(_COLUMNS, figures, strict=True)
        for seed in range(random_seeds)
    ]


def _body(row: str) -> str:
    return row.partition(" ")[0]


def _file(row: str) -> str:
    return f"{_body(row)}-medium-expert"


TABLE = Table(
    name="d4rl",
    title="Offline reinforcement learning with and without PU (Table 6, Figure 5)",
    caption=(
        "D4RL's normalised score of learners that learned from all of a medium-expert set, or "
        "from what `pubc filter` kept of it, with the 0.2 % of its trajectories with the highest "
        "returns as seed positives (at least two). Without --data the sets are replicas that "
        "pubc's zoo plays: as many trajectories of an expert as of a medium policy. In the "
        "figure every point is the mean of 10 trajectories, and bands reach from the lowest to "
        "the highest random seed."
    ),
    scaled_down={
        "small": (
            "100,000 steps of each policy instead of D4RL's million. "
            f"{SCALED_DOWN} Curves have {_FEW_POINTS} points."
        ),
        "paper": (
            "Without --data, replicas of 500,000 steps of each policy instead of D4RL's million "
            "of each. Cloning trains for 200 epochs, as in the paper's Table 7."
        ),
    },
    rows=tuple(PAPER),
    columns=tuple(_COLUMNS),
    cells=_cells,
    unit="score",
    data={
        f"{body}-medium-expert": (
            f"{body}-medium-expert of D4RL or Minari in any format that `pubc formats` lists; a "
            "replica of pubc's own is collected without it"
        )
        for body in _BODIES
    },
    extra={
        "pairs": [[f"{name} {_WITH}", f"{name} {_WITHOUT}"] for name in (*_BODIES, "Total")],
        "totals": [{"name": "Total", "of": list(_COLUMNS), "how": "sum"}],
        "summaries": [
            {"name": f"Total {how}", "of": [f"{body} {how}" for body in _BODIES], "how": "sum"}
            for how in (_WITH, _WITHOUT)
        ],
        "figure": {"kind": "curves", "x": "updates", "y": "score"},
    },
)
