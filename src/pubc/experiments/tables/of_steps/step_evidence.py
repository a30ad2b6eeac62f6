"""How well single steps are told apart where no trajectory is clean: the filters of `segments`."""

from __future__ import annotations

from collections.abc import Mapping

from pubc.experiments.cell import Cell, DatasetSpec, Scale, Table
from pubc.experiments.tables.of_steps.segments import QUICK, ROBOTS, lapses, step_filter

__all__ = ["TABLE"]

_MEASURES = {
    "step AUC": "step_auc",
    "expert's": "expert_share",
    "kept": "kept_share",
    "precision": "precision",
    "recall": "recall",
    "border": "border",
}


def _cells(scale: Scale, random_seeds: int, data: Mapping[str, DatasetSpec]) -> list[Cell]:
    return [
        Cell(row, column, lapses(row, scale), step_filter(scale), random_seed=seed, measure=measure)
        for row in ROBOTS
        for column, measure in _MEASURES.items()
        for seed in range(random_seeds)
    ]


TABLE = Table(
    name="steps",
    title="Which steps are the expert's where no trajectory is clean",
    caption=(
        "The filters behind the table above, held against the steps in which the expert really "
        "acted: area under the ROC curve of single steps, share of all steps that are the "
        "expert's, share that lies in segments of at least ten steps, share of those that are "
        "the expert's (precision), share of the expert's steps that they hold (recall), and the "
        "median distance of a true border from the nearest found one, in steps, at most 50."
    ),
    scaled_down={
        "small": "The paper has no such table. Here 50,000 steps of each robot.",
        "paper": "The paper has no such table. Here 250,000 steps of each robot.",
        "quick": "3,000 steps of each robot.",
    },
    rows=tuple(ROBOTS),
    columns=tuple(_MEASURES),
    cells=_cells,
    unit="score",
    direction="neither",
    quick=QUICK,
)
