"""The paper's tables, and ours: cells as data, made in stages that any number of machines share.

from pubc.engine import open_engine
from pubc.experiments import get_table
from pubc.experiments.run_table import Plan, reproduce
"""

from __future__ import annotations

import importlib
from typing import cast

from pubc.errors import UnknownNameError
from pubc.experiments.cell import Table

__all__ = ["SUITES", "TABLES", "get_table"]

TABLES: dict[str, str] = {
    "pu-accuracy": "Table 1: how often the filter is right, beside two PU baselines",
    "policy-scores": "Table 2: what policies earn that learned from mixed data, by learner",
    "convergence": "Table 3 and Figure 3: the rounds of the filter, with their histograms",
    "collection": "Table 4: returns and sizes of the sources",
    "ablation": "Table 5: what each part of the method is worth",
    "d4rl": "Table 6 and Figure 5: offline reinforcement learning with and without PU",
    "seeds": "ours: accuracy against the number of seed trajectories",
    "segments": "ours: cloning from segments where no trajectory is clean",
    "steps": "ours: which steps are the expert's there, and how far from the truth borders lie",
}
"""Every table with one line of help; the module of the same name (with _) lists its cells."""

SUITES: dict[str, str] = {
    "trust": "ours: piles whose answer is known, or known not to exist; how often is it wrong",
}
"""Every suite of questions with one line of help; the package of the same name asks them."""

_MODULES = {
    "d4rl": "d4rl_scores",
    "seeds": "seed_counts",
    "segments": "of_steps.segments",
    "steps": "of_steps.step_evidence",
}
"""Modules that are not named like their table."""


def get_table(name: str) -> Table:
    """A table by name.

    Raises:
        UnknownNameError: There is none; the message names the nearest.
    """
    if name not in TABLES:
        raise UnknownNameError("table", name, TABLES)
    home = _MODULES.get(name, name.replace("-", "_"))
    module = importlib.import_module(f"pubc.experiments.tables.{home}")
    return cast(Table, module.TABLE)
