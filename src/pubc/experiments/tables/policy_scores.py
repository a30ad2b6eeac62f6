"""Table 2 of the paper: what policies earn that learned from mixed data, by learner."""

from __future__ import annotations

from collections.abc import Mapping

from pubc.experiments.cell import Cell, DatasetSpec, FilterSpec, Scale, Table
from pubc.experiments.stages.learn import DATA
from pubc.experiments.tables.learners import SCALED_DOWN, learner
from pubc.experiments.tables.methods import method
from pubc.experiments.tables.robots import (
    HUMANOID_W,
    LOCOMOTION,
    ROBOT_DATA,
    SIMULATED,
    ZOO,
    dataset,
    seeds_for,
)

__all__ = ["PAPER", "TABLE"]

_COLUMNS = ("Data", "10 % BC", "50 % BC", "BC", "DT", "IQL", "CRR", "DWBC", "PUBC")
_ALGOS = {"Data": DATA, "DT": "dt", "IQL": "iql", "CRR": "crr", "DWBC": "dwbc"}
"""Column to learner; behaviour cloning where it is not named."""
_SHARES = {"10 % BC": 0.1, "50 % BC": 0.5}

_NONE = None
PAPER: dict[str, tuple[float | None, ...]] = {
    "Ant E": (0.80, _NONE, _NONE, 0.84, 0.87, 0.82, 0.76, _NONE, _NONE),
    "Ant E+E": (0.78, 0.70, 0.68, 0.73, 0.84, 0.80, 0.68, 0.71, 0.79),
    "Ant E+W": (0.53, 0.82, 0.80, 0.53, 0.73, 0.79, 0.41, 0.80, 0.79),
    "Ant E+N": (0.42, 0.62, 0.54, 0.47, 0.52, 0.74, 0.73, 0.76, 0.79),
    "Ant E+E+W+N": (0.48, 0.70, 0.53, 0.31, 0.67, 0.67, 0.29, 0.69, 0.78),
    "Humanoid E": (0.92, _NONE, _NONE, 0.87, 0.91, 0.78, 0.23, _NONE, _NONE),
    "Humanoid E+E": (0.90, 0.34, 0.73, 0.69, 0.88, 0.72, 0.26, 0.69, 0.85),
    "Humanoid E+W": (0.58, 0.87, 0.92, 0.29, 0.83, 0.45, 0.46, 0.78, 0.86),
    "Humanoid E+N": (0.63, 0.45, 0.37, 0.25, 0.59, 0.11, 0.60, 0.81, 0.86),
    "Humanoid E+E+W+N": (0.65, 0.57, 0.45, 0.25, 0.72, 0.29, 0.53, 0.60, 0.82),
    "TriFinger-Sim push": (0.61, 0.64, 0.84, 0.59, 0.80, 0.71, 0.82, 0.80, 0.85),
    "TriFinger-Sim lift": (0.83, 0.39, 0.40, 0.56, 0.73, 0.63, 0.49, 0.71, 0.87),
}
"""Table 2 of the paper by row, in the order of the columns; None where it has a dash."""

_ALONE = {"Ant E": "ant:E", "Humanoid E": "humanoid:E"}
"""Rows of the expert alone, on which nothing is filtered."""


def _cells(scale: Scale, random_seeds: int, data: Mapping[str, DatasetSpec]) -> list[Cell]:
    return [
        _cell(row, column, figure, scale, data, seed)
        for row, figures in PAPER.items()
        for column, figure in zip(_COLUMNS, figures, strict=True)
        for seed in range(random_seeds)
        if figure is not None
    ]


def _cell(
    row: str,
    column: str,
    figure: float,
    scale: Scale,
    data: Mapping[str, DatasetSpec],
    seed: int,
) -> Cell:
    return Cell(
        row,
        column,
        scale.dataset(_ALONE[row]) if row in _ALONE else dataset(row, scale, data),
        _filter(row, column, scale),
        learner(_ALGOS.get(column, "bc"), _environment(row), scale),
        # What a dataset earned is the same for every random seed.
        random_seed=seed,
        paper=figure,
        measure="score",
    )


def _filter(row: str, column: str, scale: Scale) -> FilterSpec | None:
    if column == "PUBC":
        return method("auto", scale, seeds_for(row, scale))
    if column == "DWBC":
        return FilterSpec(seeds=seeds_for(row, scale))
    if column in _SHARES:
        return FilterSpec("top_returns", share=_SHARES[column])
    return None


def _environment(row: str) -> str:
    return SIMULATED.get(row) or row.partition(" ")[0].lower()


def _total(name: str, rows: tuple[str, ...]) -> dict[str, object]:
    return {"name": name, "of": list(rows), "how": "sum"}


_ANT, _HUMANOID = (tuple(r for r in LOCOMOTION if r.startswith(b)) for b in ("Ant", "Humanoid"))

TABLE = Table(
    name="policy-scores",
    title="Normalised scores of policies that learned from mixed data (Table 2)",
    caption=(
        "Score of a policy, (return - min) / (max - min), with D4RL's reference returns for Ant "
        "and those that the paper's own figures imply for Humanoid (112 and 6,213). Data is what "
        "the sources earned, each counting the same; 10 % BC and 50 % BC clone the trajectories "
        "with the highest returns; PUBC clones what `pubc filter` kept. DWBC and PUBC see the "
        "same seed positives. pubc's zoo has a better Ant than the paper (5,638 against 3,034 "
        "per trajectory), so scores of Ant reach 1.4 here and 0.8 there: compare columns, not "
        "tables. DT is asked for the highest return attainable: one per step of the TriFinger, the "
        f"best trajectory of the zoo's policies elsewhere. {HUMANOID_W} The rows of the real "
        "robots need the robots and are left out."
    ),
    scaled_down={
        "small": (
            "100,000 steps of each source instead of 500,000, with the paper's seed of 2,000 "
            f"steps (2 or 3 trajectories). {SCALED_DOWN} {ZOO}"
        ),
        "paper": f"Nothing but the policies. {ZOO}",
    },
    rows=tuple(PAPER),
    columns=_COLUMNS,
    cells=_cells,
    unit="score",
    data={name: what for name, what in ROBOT_DATA.items() if name in SIMULATED.values()},
    extra={
        "ours": ["PUBC"],
        "not_ranked": ["Data"],
        "summaries": [
            _total("Ant total", _ANT),
            _total("Humanoid total", _HUMANOID),
            _total("TriFinger-Sim total", tuple(SIMULATED)),
            _total("Overall", (*_ANT, *_HUMANOID, *SIMULATED)),
        ],
    },
)
