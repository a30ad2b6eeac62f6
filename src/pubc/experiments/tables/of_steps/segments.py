"""Cloning from the good parts of trajectories of which none is clean, beside cloning whole ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pubc.experiments.cell import (
    Cell,
    DatasetSpec,
    FilterSpec,
    LearnerSpec,
    Scale,
    SeedSpec,
    StepFilterSpec,
    Table,
)
from pubc.experiments.stages.steps_to_learn import CLEAN, EXPERT, SEGMENTS, WEIGHTS
from pubc.experiments.tables.learners import learner
from pubc.experiments.tables.methods import method

__all__ = ["QUICK", "ROBOTS", "TABLE", "lapses", "step_filter"]

ROBOTS = {"Ant": "ant", "HalfCheetah": "halfcheetah", "Hopper": "hopper"}
"""Row to environment; every one has a recipe of lapses."""
_EVERYTHING, _BEST = "everything", "best 10 %"
_SEGMENTS, _WEIGHTS, _CLEAN = "segments", "weights", "clean steps"
_PARTS = {
    _SEGMENTS: SEGMENTS, _WEIGHTS: WEIGHTS, _EVERYTHING: None, _BEST: None,
    "expert steps": EXPERT, _CLEAN: CLEAN,
}  # fmt: skip
"""What a learner sees in each column; whole trajectories where there is none."""
_SEEDS = SeedSpec(steps=5000)
"""Five trajectories where none ends early."""
_EPISODES = 50
QUICK = Scale("quick", steps_per_source=6000, updates=500, evaluation_trajectories=3)
"""A first look."""


def lapses(row: str, scale: Scale) -> DatasetSpec:
    """The dataset of a row, with as many clean steps of the expert beside it."""
    steps = (scale.steps_per_source or 0) // 2
    size = (scale.trajectories_per_source, steps or None)
    # The clean steps hold the seeds too, and segments may be all of the pile.
    return DatasetSpec(f"{ROBOTS[row]}:lapses", *size, seed_steps=max(scale.seed_pool, steps))


def step_filter(scale: Scale) -> StepFilterSpec:
    """What `pubc filter --segments` does: recipe auto, then every step is judged."""
    whole = method("auto", scale, _SEEDS)
    return StepFilterSpec("pu", recipe=whole.recipe, seeds=_SEEDS)


def _cells(scale: Scale, random_seeds: int, data: Mapping[str, DatasetSpec]) -> list[Cell]:
    return [
        Cell(
            row,
            column,
            lapses(row, scale),
            _filter(column, scale),
            _cloning(ROBOTS[row], scale),
            random_seed=seed,
            part=_PARTS[column],
            measure="return",
        )
        for row in ROBOTS
        for column in _PARTS
        for seed in range(random_seeds)
    ]


def _filter(column: str, scale: Scale) -> FilterSpec | None:
    if column == _EVERYTHING:
        return None
    return FilterSpec("top_returns", share=0.1) if column == _BEST else step_filter(scale)


def _cloning(environment: str, scale: Scale) -> LearnerSpec:
    made = learner("bc", environment, scale)
    played = made.evaluation_trajectories if scale.name == QUICK.name else _EPISODES
    return replace(made, evaluation_trajectories=played)


TABLE = Table(
    name="segments",
    title="Cloning from segments where no trajectory is clean",
    caption=(
        "Mean return of cloned policies, and what that is of the last column. Every trajectory is "
        "an expert's with lapses: for about a third of its steps, in stretches of 10 to 45, "
        "another policy acts or the last action is repeated (`pubc collect ant:lapses` and so "
        "on). Five clean trajectories of the expert are the seeds. segments clones what `pubc "
        "filter --segments` keeps, and the seeds (`pubc train RUN`); weights all steps by their "
        "confidence, and the seeds (`pubc train --weights`); everything all steps alike, best 10 % "
        "the trajectories with the highest returns. Two columns know what a filter does not: "
        "expert steps clones the stretches in which the expert really acted, and the seeds; clean "
        "steps as many steps as segments and seeds together, of trajectories of the expert without "
        "lapses. Random seeds draw other seed trajectories, other clean steps, and train another "
        "policy, which plays 50 trajectories."
    ),
    scaled_down={
        "small": (
            "The paper has no such table. Here 50,000 steps of each robot, and cloning within "
            "20,000 updates of 128 steps."
        ),
        "paper": (
            "The paper has no such table. Here 250,000 steps of each robot, and cloning for the "
            "paper's 200 epochs."
        ),
        "quick": "3,000 steps of each robot, 1,000 updates, 3 trajectories played.",
    },
    rows=tuple(ROBOTS),
    columns=tuple(_PARTS),
    cells=_cells,
    unit="return",
    extra={
        "ours": [_SEGMENTS, _WEIGHTS],
        "not_ranked": ["expert steps", _CLEAN],
        "reference": _CLEAN,
    },
    quick=QUICK,
)
