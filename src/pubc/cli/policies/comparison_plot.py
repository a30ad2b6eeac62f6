"""The picture of `pubc compare`: every return as a dot, the mean with its interval."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pubc.storage import write_marked

__all__ = ["KIND", "draw", "picture"]

KIND = "comparison"
"""What the picture is, for the mark in it."""


def picture(policies: Sequence[dict[str, Any]], environment: str) -> Any:
    """The returns of several policies beside one another, as a figure of matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(max(4.2, 1.6 + 1.3 * len(policies)), 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    spread = np.random.default_rng(0)
    for place, one in enumerate(policies):
        returns = np.asarray(one["returns"])
        shift = spread.uniform(-0.18, 0.18, size=len(returns))
        axes.plot(place + shift, returns, ".", color="#7a8ba0", markersize=4, alpha=0.6)
        mean, (low, high) = one["return"]["mean"], one["return"]["interval"]
        axes.errorbar(
            place, mean, yerr=[[mean - low], [high - mean]], fmt="o", color="#b3261e", capsize=6
        )
    axes.set_xticks(range(len(policies)), [Path(one["policy"]).name for one in policies])
    axes.set_ylabel("return")
    # Two lines and small type: the name of an environment must fit over two policies.
    axes.set_title(f"{environment}\nreturns, mean and 95 % interval", fontsize=9)
    axes.grid(axis="y", alpha=0.3)
    return figure


def draw(
    policies: Sequence[dict[str, Any]], environment: str, path: Path, *, force: bool = False
) -> None:
    """Draw the returns of several policies beside one another, as .png or .svg."""
    drawn = io.BytesIO()
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure = picture(policies, environment)
    figure.savefig(drawn, format=path.suffix[1:], dpi=150, metadata=metadata)
    write_marked({path: drawn.getvalue()}, KIND, force=force)
