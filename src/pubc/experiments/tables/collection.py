"""Table 4: what the sources of the locomotion mixtures earn, and how much there is of each."""

from __future__ import annotations

from collections.abc import Mapping

from pubc.experiments.cell import Cell, DatasetSpec, Scale, Table
from pubc.experiments.tables.robots import HUMANOID_W

__all__ = ["PAPER", "TABLE"]

PAPER: dict[str, float | None] = {
    "Ant E+": 3034,
    "Ant E-": 2910,
    "Ant W": 920,
    "Ant N": None,
    "Humanoid E+": 5725,
    "Humanoid E-": 5330,
    "Humanoid W": 1576,
    "Humanoid N": None,
}
"""Mean returns of Table 4; the paper gives none for noise."""

_STEPS = 500_000
_MEASURES = {
    "mean return": "mean_return",
    "spread of returns": "std_return",
    "steps": "steps",
    "trajectories": "trajectories",
    "mean length": "mean_length",
}


def _cells(scale: Scale, random_seeds: int, data: Mapping[str, DatasetSpec]) -> list[Cell]:
    cells = []
    for row, earned in PAPER.items():
        body, source = row.split()
        mixture = scale.dataset(f"{body.lower()}:E+E+W+N")
        paper = {"mean return": earned, "steps": _STEPS}
        cells += [
            Cell(row, column, mixture, part=source, paper=paper.get(column), measure=measure)
            for column, measure in _MEASURES.items()
        ]
    return cells


TABLE = Table(
    name="collection",
    title="The sources of the locomotion mixtures (Table 4)",
    caption=(
        "What each policy earned in the trajectories that were recorded for the mixture E+E+W+N, "
        "and how much of it there is. The paper trained its own policies; ours are those of "
        "`pubc zoo`. The environments are version 5 of Gymnasium, the paper's version 3. Noise "
        f"draws states, actions and rewards uniformly, so its returns mean nothing. {HUMANOID_W}"
    ),
    scaled_down={
        "small": "100,000 steps of each source instead of 500,000.",
        "paper": "Nothing but the policies.",
    },
    rows=tuple(PAPER),
    columns=tuple(_MEASURES),
    cells=_cells,
    unit="count",
    direction="neither",
)
