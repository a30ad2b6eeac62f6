"""The picture of `pubc inspect --plot`: lengths, returns, and a few trajectories over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pubc.errors import UsageError
from pubc.report.drawing import KEPT, SERIES, canvas, encoded, label, style
from pubc.storage import claim, write_marked
from pubc.trajectory import TrajectorySet

__all__ = ["KIND", "check_place", "draw"]

KIND = "overview"
"""What the picture is, for the mark in it."""
_SHOWN = 4
"""Trajectories drawn over time."""
_DIMENSIONS = 3
"""States and actions drawn: those that vary most."""


def check_place(path: Path, *, force: bool) -> None:
    """See that a picture may be written, before the dataset is read.

    Raises:
        UsageError: The suffix is neither .png nor .svg, or the file is not ours to replace.
    """
    if path.suffix not in (".png", ".svg"):
        raise UsageError(f"A picture is .png or .svg. Got {path.name}.")
    claim(path, KIND, force=force)


def draw(trajectories: TrajectorySet, path: Path, *, force: bool = False) -> None:
    """Draw a dataset as .png or .svg."""
    with style():
        figure, axes = canvas(2, 2, width=3.6, height=2.2)
        _histogram(axes[0][0], trajectories.lengths, "steps of a trajectory")
        axes[0][0].xaxis.get_major_locator().set_params(integer=True, min_n_ticks=1)
        returns = trajectories.total_rewards()
        known = returns[np.isfinite(returns)]
        if trajectories.columns.rewards is None or not known.size:
            axes[0][1].text(0.5, 0.5, "no returns", ha="center", va="center")
            axes[0][1].set_axis_off()
        else:
            _histogram(axes[0][1], known, "return of a trajectory")
        chosen = _some(trajectories)
        for place, (name, column) in enumerate(
            (
                ("observation", trajectories.columns.observations),
                ("action", trajectories.columns.actions),
            )
        ):
            _over_time(axes[1][place], trajectories, chosen, column, name)
        lines, names = axes[1][0].get_legend_handles_labels()
        figure.legend(lines, names, fontsize=6, loc="outside lower center", ncols=_SHOWN)
    write_marked({path: encoded(figure, path.suffix[1:])}, KIND, force=force)


def _histogram(axes: Any, values: NDArray[Any], words: str) -> None:
    axes.hist(values, bins=min(40, max(5, len(np.unique(values)))), color=KEPT)
    axes.set_xlabel(words)
    axes.set_ylabel("trajectories")
    axes.yaxis.get_major_locator().set_params(integer=True)


def _some(trajectories: TrajectorySet) -> list[int]:
    """Trajectories that differ: spread over the order of returns, or of the file."""
    returns = trajectories.total_rewards()
    order = np.argsort(returns, kind="stable")
    if trajectories.columns.rewards is None or not np.isfinite(returns).all():
        order = np.arange(len(trajectories))
    places = np.linspace(0, len(order) - 1, min(_SHOWN, len(order))).round().astype(int)
    return [int(order[place]) for place in places]


def _over_time(
    axes: Any, trajectories: TrajectorySet, chosen: list[int], column: Any, name: str
) -> None:
    rows = [trajectories[number] for number in chosen]
    picked = [r.steps.observations if name == "observation" else r.steps.actions for r in rows]
    values = np.concatenate([np.asarray(one, dtype=np.float64) for one in picked])
    spread = np.nan_to_num(values.std(axis=0))
    widest = np.sort(np.argsort(-spread, kind="stable")[:_DIMENSIONS])
    for place, (number, one) in enumerate(zip(chosen, picked, strict=True)):
        for line, dimension in enumerate(widest):
            axes.plot(
                np.asarray(one)[:, dimension],
                color=SERIES[place % len(SERIES)],
                alpha=1.0 - 0.3 * line,
                linewidth=0.8,
                label=label(str(trajectories.ids[number])) if not line else None,
            )
    axes.set_xlabel("step")
    axes.set_ylabel(f"{name}, dimensions {', '.join(map(str, widest.tolist()))}")
