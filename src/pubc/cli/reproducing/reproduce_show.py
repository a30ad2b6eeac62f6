"""What `pubc reproduce` says about cells: how far they are, and how long the rest takes."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

from pubc.cli.console import facts, say, warn
from pubc.errors import MissingExtraError

if TYPE_CHECKING:
    from pubc.experiments.run_table import Plan

__all__ = ["show_places", "state_of", "time_left", "warn_of_extras"]


def show_places(cells: list[dict[str, Any]]) -> None:
    """A line for each place in the table, with all its random seeds; each reason once."""
    places: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in cells:
        places.setdefault((one["row"], one["column"]), []).append(one)
    facts(
        [
            (f"{row}, {column}", _count_states([one["state"] for one in place]))
            for (row, column), place in places.items()
        ]
    )
    for reason in dict.fromkeys(one["reason"] for one in cells if one["reason"]):
        say(reason)
    finished = sum(one["state"] == "finished" for one in cells)
    say(f"{finished:,} of {len(cells):,} cells are finished.")


def state_of(values: dict[str, Any] | None, failed: dict[str, str] | None) -> str:
    """A word for how far a cell is."""
    if values is None:
        return "missing"
    if failed:
        return "without data" if failed["kind"] == "data_not_given" else "failed"
    return "finished"


def _count_states(states: list[str]) -> str:
    counted = {state: states.count(state) for state in dict.fromkeys(states)}
    return ", ".join(f"{count} {state}" for state, count in counted.items())


def time_left(seconds: float | None) -> str:
    """How long a table still takes; nothing where nobody knows."""
    if seconds is None:
        return ""
    return f", {seconds / 60:,.0f} min left," if seconds > 90 else f", {seconds:.0f} s left,"


def warn_of_extras(plan: Plan) -> None:
    """Say at once which columns nothing can be trained for, not after their data is collected."""
    from pubc.policies import OFFLINE

    columns = {
        cell.column
        for cell in plan.cells()
        if cell.learner
        and cell.learner.algo in OFFLINE
        and "failed" in (plan.values(cell) or {"failed": "not computed yet"})
    }
    if columns and importlib.util.find_spec("d3rlpy") is None:
        names = ", ".join(name for name in plan.table.columns if name in columns)
        why = MissingExtraError("Training them", "d3rlpy")
        warn(f"{names} will fail where no other machine has trained the policy. {why}")
