"""Figures for papers: the same pictures as the page, drawn by matplotlib as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pubc.report.drawing import (
    CUT,
    DASHES,
    DROPPED,
    KEPT,
    SERIES,
    canvas,
    encoded,
    label,
    places,
    style,
)
from pubc.report.payload import bars, roc
from pubc.runs.folder.run_reading import Run
from pubc.storage import claim, write_marked

__all__ = ["write_figures"]

KIND = "figure"
_MOST = 60


def write_figures(
    runs: Sequence[Run], policies: Mapping[str, Any] | None, out: Path, *, force: bool = False
) -> list[Path]:
    """Draw every figure that the runs and policies have the data for.

    Args:
        runs: Filter runs; with several, names of files start with the run's position.
        policies: What policies learned and earned.
        out: Folder for the files; made where it is missing.
        force: Replace earlier figures of ours in it.

    Returns:
        The files, a PNG and an SVG of each figure.
    """
    figures: dict[Path, Figure] = {}
    with style():
        for number, run in enumerate(runs, 1):
            prefix = f"run-{number}-" if len(runs) > 1 else ""
            for name, draw in _RUN_FIGURES.items():
                figure = draw(run)
                if figure is not None:
                    figures |= places(figure, out / f"{prefix}{name}")
        if policies is not None and policies["curves"]:
            for metric in policies["metrics"]:
                clean = "".join(c if c.isalnum() else "-" for c in metric)
                figures |= places(_learning(policies, metric), out / f"learning-{clean}")
    # Foreign files are refused before the long work. Figures of ours may be these very ones.
    for path in figures:
        claim(path, KIND, force=True)
    # All are made before any is written: a refusal leaves the folder as it was.
    made = {path: encoded(figure, path.suffix[1:]) for path, figure in figures.items()}
    write_marked(made, KIND, force=force)
    return list(made)


def _rounds(run: Run) -> Figure | None:
    """The paper's Figure 3: histogram above, fitted curve and cut below, round by round."""
    shown = run.rounds[-6:]
    if not shown:
        return None
    figure, axes = canvas(2, len(shown), width=1.9, height=1.4)
    for column, done in enumerate(shown):
        drawn = {name: np.array(values, float) for name, values in bars(done).items()}
        centres = drawn["centres"]
        top, below = axes[0, column], axes[1, column]
        top.set_title(f"round {done.number}: {done.kept:,} kept")
        if not centres.size:
            continue
        wide = (centres[1] - centres[0]) if len(centres) > 1 else 1.0
        rest = drawn["counts"] - drawn["kept_counts"]
        top.bar(centres, rest, wide, color=DROPPED)
        top.bar(centres, drawn["kept_counts"], wide, bottom=rest, color=KEPT)
        if drawn["curve"].size:
            below.plot(centres, drawn["curve"], color="black", lw=1)
        if done.threshold is not None:
            top.axvline(done.threshold, color=CUT, ls="--", lw=1)
            if drawn["curve"].size:
                at = int(np.argmin(np.abs(centres - done.threshold)))
                below.plot(done.threshold, drawn["curve"][at], "o", color=CUT, ms=5)
        below.set_xlabel("confidence")
    axes[0, 0].set_ylabel("trajectories")
    axes[1, 0].set_ylabel("fitted curve")
    return figure


def _kept(run: Run) -> Figure | None:
    if not run.rounds:
        return None
    figure, axes = canvas()
    numbers = [done.number for done in run.rounds]
    axes[0, 0].plot(numbers, [done.kept for done in run.rounds], "o-", color=KEPT)
    axes[0, 0].set(
        xlabel="round", ylabel="kept trajectories", xticks=numbers[:_MOST], ylim=(0, None)
    )
    return figure


def _scatter(run: Run) -> Figure | None:
    scores = run.scores
    if not np.isfinite(scores.returns).any():
        return None
    figure, axes = canvas(width=4.2, height=2.8)
    axis = axes[0, 0]
    many = len(scores) > 20_000
    for mask, colour, name in (
        (~scores.keep, DROPPED, "dropped"),
        (scores.keep, KEPT, "kept"),
    ):
        axis.scatter(
            scores.confidence[mask],
            scores.returns[mask],
            s=1 if many else 5,
            color=colour,
            label=name,
            rasterized=True,
            linewidths=0,
        )
    axis.scatter(
        scores.confidence[scores.seed],
        scores.returns[scores.seed],
        s=18,
        marker="D",
        color=CUT,
        label="seed",
    )
    if run.document["threshold"] is not None:
        axis.axvline(run.document["threshold"], color=CUT, ls="--", lw=1)
    axis.set(xlabel="confidence", ylabel="return")
    axis.legend(markerscale=2, loc="upper left")
    return figure


def _groups(run: Run) -> Figure:
    scores = run.scores
    shown = [("length", scores.lengths.astype(np.float64))]
    if np.isfinite(scores.returns).any():
        shown.insert(0, ("return", scores.returns))
    figure, axes = canvas(1, len(shown))
    for axis, (name, values) in zip(axes[0], shown, strict=True):
        known = np.isfinite(values)
        edges = np.histogram_bin_edges(values[known], bins=40)
        for mask, colour, word in (
            (~scores.keep, DROPPED, "dropped"),
            (scores.keep, KEPT, "kept"),
        ):
            _outline(axis, values[mask & known], edges, colour, word)
        axis.set(xlabel=name, ylabel="share")
        axis.legend(loc="upper left")
    return figure


def _sources(run: Run) -> Figure | None:
    scores = run.scores
    if scores.sources is None:
        return None
    figure, axes = canvas(width=4.2, height=2.6)
    known = np.isfinite(scores.confidence)
    edges = np.histogram_bin_edges(scores.confidence[known], bins=60)
    owner = np.array(scores.sources, dtype=object)
    for index, name in enumerate(sorted(set(scores.sources))[: len(SERIES)]):
        mine = (owner == name) & known
        _outline(
            axes[0, 0],
            scores.confidence[mine],
            edges,
            SERIES[index],
            label(name),
            DASHES[index % len(DASHES)],
        )
    if run.document["threshold"] is not None:
        axes[0, 0].axvline(run.document["threshold"], color=CUT, ls="--", lw=1)
    axes[0, 0].set(xlabel="confidence", ylabel="share of the source")
    axes[0, 0].legend(loc="upper left")
    return figure


def _roc(run: Run) -> Figure | None:
    points = None if run.truth is None else roc(run.scores.confidence, run.truth)
    if points is None:
        return None
    figure, axes = canvas(width=2.8, height=2.6)
    axes[0, 0].plot([0, 1], [0, 1], color=DROPPED, lw=0.8, ls=":")
    axes[0, 0].plot(points["x"], points["y"], color=KEPT)
    axes[0, 0].set(xlabel="false positive rate", ylabel="true positive rate", aspect="equal")
    return figure


def _learning(policies: Mapping[str, Any], metric: str) -> Figure:
    """The paper's Figure 5: means over random seeds in a band from lowest to highest."""
    figure, axes = canvas(width=4.2, height=2.8)
    shown = [curve for curve in policies["curves"] if curve["metric"] == metric]
    for index, curve in enumerate(shown):
        colour = SERIES[index % len(SERIES)]
        dash = DASHES[index // len(SERIES) % len(DASHES)]
        axes[0, 0].plot(
            curve["x"], curve["mean"], color=colour, ls=dash, label=label(curve["name"])
        )
        axes[0, 0].fill_between(
            curve["x"], curve["low"], curve["high"], color=colour, alpha=0.18, lw=0
        )
    axes[0, 0].set(xlabel=policies["xLabel"], ylabel=label(metric))
    axes[0, 0].legend(loc="upper left")
    return figure


def _outline(axis: Axes, values: Any, edges: Any, colour: str, word: str, dash: str = "-") -> None:
    counts = np.histogram(values, bins=edges)[0] / max(len(values), 1)
    axis.stairs(counts, edges, fill=True, alpha=0.2, color=colour)
    axis.stairs(counts, edges, color=colour, label=word, ls=dash)


_RUN_FIGURES: dict[str, Callable[[Run], Figure | None]] = {
    "rounds": _rounds,
    "kept": _kept,
    "groups": _groups,
    "confidence-return": _scatter,
    "sources": _sources,
    "roc": _roc,
}
