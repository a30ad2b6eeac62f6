"""How many seed trajectories are enough: accuracy of recipe auto from one seed up."""

from __future__ import annotations

from pubc.experiments.cell import FilterSpec, Scale, SeedSpec, Table
from pubc.experiments.tables.grid import filter_cells
from pubc.experiments.tables.methods import DEVELOPED_ON, method
from pubc.experiments.tables.robots import HUMANOID_W, LOCOMOTION, REAL, ROBOT_DATA, SIMULATED, ZOO

__all__ = ["TABLE"]

_COUNTS = ("1", "2", "3", "5", "10")
_ROWS = (*LOCOMOTION, *SIMULATED, *REAL)


def _filter(row: str, column: str, scale: Scale) -> FilterSpec:
    return method("auto", scale, SeedSpec(trajectories=int(column)))


TABLE = Table(
    name="seeds",
    title="Accuracy against the number of seed trajectories, recipe auto",
    caption=(
        "Share of trajectories rightly kept or dropped with 1 to 10 seed trajectories, drawn at "
        "random from the expert inside the mixed set. The paper has no such table; it used 2,000 "
        f"steps in locomotion and 0.4 % of the trajectories on robots. {HUMANOID_W} {DEVELOPED_ON}"
    ),
    scaled_down={
        "small": f"100,000 steps of each source instead of 500,000. {ZOO}",
        "paper": f"Nothing but the policies. {ZOO}",
    },
    rows=_ROWS,
    columns=_COUNTS,
    cells=filter_cells(_ROWS, _COUNTS, _filter),
    data=ROBOT_DATA,
    extra={"figure": {"kind": "line", "x": "seed trajectories", "y": "accuracy, %"}},
)
