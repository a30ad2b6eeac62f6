"""A run before it begins: data and seeds read and checked, nothing trained or written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.labels import Labels, read_labels
from pubc.pu.recipes import Recipe
from pubc.runs.filter_config import FilterConfig
from pubc.runs.find_expert import Prepared, prepare
from pubc.runs.folder.given_data import read_given
from pubc.runs.folder.run_document import begin_document
from pubc.runs.kept_files import check_format
from pubc.runs.named_trajectories import Named, bad_in, seeds_in
from pubc.runs.seeds import (
    Seeds,
    bad_stretches,
    choose_bad,
    choose_seeds,
    foretold,
    truth_mask,
)
from pubc.trajectory import TrajectorySet

__all__ = ["Plan", "plan", "plan_in_memory"]

Mask = NDArray[np.bool_]
_WAYS = ("top", "episodes", "from", "source", "steps_column", "count")


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """A run before it begins: everything read and checked, nothing trained or written."""

    config: FilterConfig
    """What was asked for."""
    data: Path | None
    """Where the data is; None where it was made in memory."""
    mixed: TrajectorySet
    """The data."""
    ready: Prepared
    """Data and seeds as a recipe may see them."""
    recipe: Recipe
    """How to filter."""
    truth: Mask | None
    """Which trajectories are the expert's, where a name was given."""
    document: dict[str, Any]
    """run.json as the run begins."""
    marks: Labels | None = None
    """What people said of its trajectories, where a file of that was given."""


def plan(
    config: FilterConfig, data: Path, tell: Callable[[str], None] = lambda sentence: None
) -> Plan:
    """Read the data, choose the seeds, and check everything that can be checked beforehand.

    Args:
        config: What was asked for.
        data: Where the data is.
        tell: Told what the user should know of the data.

    Raises:
        UsageError: The configuration contradicts itself or the data.
        DataError: The data is not fit for it.
    """
    recipe = config.make_recipe()
    config.make_bench()  # so that one which cannot be is refused now
    check_format(config, data)
    mixed = read_given(data, config.reading, tell)
    seeds = choose_seeds(config, mixed, tell)
    ready = prepare(mixed, seeds.trajectories, choose_bad(config, mixed), recipe)
    ready = replace(
        ready,
        seed_steps=seeds.steps,
        foretold=foretold(config),
        bad_stretches=bad_stretches(config, mixed),
    )
    truth = truth_mask(mixed, config.truth)
    marks = None if config.labels is None else read_labels(config.labels)
    document = begin_document(config, data, mixed, ready, seeds, recipe)
    document["marks"] = None if marks is None else marks.digest
    return Plan(config, data, mixed, ready, recipe, truth, document, marks)


def plan_in_memory(
    config: FilterConfig, mixed: TrajectorySet, seeds: Named, bad: Named | None, recipe: Recipe
) -> Plan:
    """The same for data in memory, whose seeds were named in Python.

    Args:
        config: Random seed, device and workers; how seeds and recipe are named in it is not
            looked at.
        mixed: The data.
        seeds: Trajectories of the expert.
        bad: Trajectories that are known not to be.
        recipe: How to filter.

    Raises:
        UsageError: Seeds are named in a way that means nothing.
        DataError: The data is not fit for it.
    """
    chosen = Seeds(seeds_in(mixed, seeds), {"how": "given", **dict.fromkeys(_WAYS)})
    ready = prepare(mixed, chosen.trajectories, bad_in(mixed, bad), recipe)
    document = begin_document(config, None, mixed, ready, chosen, recipe)
    return Plan(config, None, mixed, ready, recipe, None, document)
