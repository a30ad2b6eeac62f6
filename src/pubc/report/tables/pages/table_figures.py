"""Figures from the records of a table: rounds, learning curves, lines, and reliability.

The head of a table says which kind it has. What a record lacks is not drawn; what is there but
malformed is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from pubc.errors import DataError
from pubc.report.drawing import CUT, DASHES, DROPPED, KEPT, SERIES, canvas, label, style
from pubc.report.tables.rounds_table import strips_of
from pubc.report.tables.table_of_means import TableOfMeans
from pubc.results import Record

__all__ = ["draw"]

_FACTOR = {"percent": 100.0}
_MOST_ROUNDS = 8
_COLUMNS = 4
# More bands than these cover each other; the table has every spread.
_MOST_BANDS = 4
# Shares of fewer labels than these are chance.
_FEWEST_LABELS = 20
_NUMBER = re.compile(r"\d+(\.\d+)?")


def draw(sheet: TableOfMeans) -> Figure | None:
    """The figure of a table; None where its head asks for none or no record has what it needs.

    Raises:
        DataError: A record has it in another form.
    """
    if sheet.head.figure is None:
        return None
    kinds = {"rounds": _rounds, "curves": _curves, "line": _line, "reliability": _reliability}
    drawn = kinds[sheet.head.figure["kind"]]
    try:
        with style():
            return drawn(sheet, sheet.head.figure)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"The records of {sheet.head.table} do not hold what its figure is drawn from "
            f"({type(error).__name__}: {error}).",
            code="bad_record",
            field="figure",
        ) from None


def _rounds(sheet: TableOfMeans, asked: Mapping[str, Any]) -> Figure | None:
    """The paper's Figure 3: a strip of histograms, round by round, for the lowest seed."""
    strips = [strip for strip in strips_of(sheet) if strip.drawn]
    if not strips:
        return None
    wide = max(len(strip.traces[0][:_MOST_ROUNDS]) for strip in strips)
    figure, axes = canvas(len(strips), wide, width=1.7, height=1.5)
    for line, strip in zip(axes, strips, strict=True):
        for axis in line:
            axis.set_visible(False)
        for at, (axis, done) in enumerate(zip(line, strip.traces[0], strict=False)):
            _histogram(axis, done, label(strip.name) if at == 0 else "")
        line[0].set_ylabel("trajectories")
    return figure


def _histogram(axis: Axes, done: Mapping[str, Any], above: str) -> None:
    axis.set_visible(True)
    axis.set_xlabel("confidence")
    axis.set_title(f"{above}\nround {int(done['round'])}: {int(done['kept']):,} kept", loc="left")
    bars = done["histogram"]
    centres, counts = np.array(bars["centres"], float), np.array(bars["counts"], float)
    if len(centres) < 2:
        return
    wide, cut = centres[1] - centres[0], done["threshold"]
    right = centres >= (np.inf if cut is None else float(cut))
    edges = np.append(centres - wide / 2, centres[-1] + wide / 2)
    axis.stairs(np.where(right, 0, counts), edges, fill=True, color=DROPPED)
    axis.stairs(np.where(right, counts, 0), edges, fill=True, color=KEPT)
    if bars["curve"]:
        axis.plot(centres, np.clip(np.array(bars["curve"], float), 0, None), color="black", lw=0.8)
    if cut is not None:
        axis.axvline(float(cut), color=CUT, ls="--", lw=1)


def _curves(sheet: TableOfMeans, asked: Mapping[str, Any]) -> Figure | None:
    """The paper's Figure 5: means over random seeds in a band from lowest to highest."""
    panels: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for record in sorted(sheet.records, key=lambda record: _place(sheet, record)):
        curve = record.values.get("curve")
        if curve is None:
            continue
        panels.setdefault(str(curve["panel"]), {}).setdefault(str(curve["line"]), []).append(curve)
    if not panels:
        return None
    names = list(dict.fromkeys(line for lines in panels.values() for line in lines))
    wide = min(_COLUMNS, len(panels))
    figure, axes = canvas(-(-len(panels) // wide), wide, width=1.9, height=1.7)
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, (panel, lines) in zip(axes.flat, panels.items(), strict=False):
        axis.set_title(label(panel))
        axis.xaxis.set_major_locator(MaxNLocator(3))
        for name, curves in lines.items():
            _band(axis, _together(curves), names.index(name), name)
    for axis in axes[:, 0]:
        axis.set_ylabel(str(asked.get("y", "score")))
    for axis in axes[-1]:
        axis.set_xlabel(str(asked.get("x", "updates")))
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    return figure


def _together(curves: Sequence[Mapping[str, Any]]) -> dict[float, list[float]]:
    """Values of all random seeds at the places of the first.

    Evaluations fall on ends of epochs, and random seeds hold out other trajectories, so their
    places can differ by a few updates.
    """
    places = [float(x) for x in curves[0]["x"]]
    found = [np.interp(places, curve["x"], curve["y"]) for curve in curves]
    return {x: [float(y) for y in values] for x, *values in zip(places, *found, strict=True)}


def _place(sheet: TableOfMeans, record: Record) -> tuple[int, int, str]:
    """Where a record stands in the table, for panels in the order of the table."""
    rows = [row.name for row in sheet.rows]
    row, column = record.values["row"], record.values["column"]
    return rows.index(row), sheet.columns.index(column), record.key


def _line(sheet: TableOfMeans, asked: Mapping[str, Any]) -> Figure | None:
    """Figures of a row against the numbers that its columns are named after."""
    at = {c: float(found[0]) for c in sheet.columns if (found := _NUMBER.search(c))}
    factor = _FACTOR.get(sheet.head.unit, 1.0)
    shown = [row for row in sheet.rows if not row.summary and row.known]
    if len(at) < 2 or not shown:
        return None
    figure, axes = canvas(width=5.2, height=3.2)
    for index, row in enumerate(shown):
        points = {
            x: [factor * figure for figure in row.places[column].by_seed.values()]
            for column, x in at.items()
            if row.places[column].by_seed
        }
        _band(axes[0, 0], points, index, row.name, shaded=len(shown) <= _MOST_BANDS)
    axis = axes[0, 0]
    axis.set(xlabel=str(asked.get("x", "")), ylabel=str(asked.get("y", sheet.head.unit)))
    axis.set_xscale("log", base=2)
    ticks = sorted(at.values())
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.minorticks_off()
    axis.legend(loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def _reliability(sheet: TableOfMeans, asked: Mapping[str, Any]) -> Figure | None:
    """How often labels are wrong against the chance that was stated for them."""
    figure, axes = canvas(width=4.2, height=3.4)
    axis = axes[0, 0]
    for index, (name, sound) in enumerate((("sound answers", True), ("all others", False))):
        counts: dict[float, NDArray[np.int64]] = {}
        for record in sheet.records:
            for chance, *labels in record.values.get("reliability") or ():
                if record.values["sound"] == sound:
                    told = counts.setdefault(float(chance), np.zeros(2, dtype=np.int64))
                    told += np.array(labels, dtype=np.int64)
        shown = sorted(chance for chance, (labels, _) in counts.items() if labels >= _FEWEST_LABELS)
        axis.plot(
            shown,
            [counts[chance][1] / counts[chance][0] for chance in shown],
            color=SERIES[index],
            marker="o",
            ms=3,
            lw=1.2,
            label=name,
        )
    if not any(len(line.get_xdata()) for line in axis.lines):
        return None
    axis.plot([0, 0.5], [0, 0.5], color="black", lw=0.8, ls="--", label="as stated")
    axis.set(xlabel="stated chance that a label is wrong", ylabel="share of labels that are wrong")
    axis.legend()
    return figure


def _band(
    axis: Axes,
    points: Mapping[float, Sequence[float]],
    index: int,
    name: str,
    *,
    shaded: bool = True,
) -> None:
    x = sorted(points)
    colour = SERIES[index % len(SERIES)]
    dash = DASHES[index // len(SERIES) % len(DASHES)]
    axis.plot(
        x,
        [float(np.mean(sorted(points[at]))) for at in x],
        color=colour,
        ls=dash,
        marker="o" if len(x) < 12 else None,
        ms=3,
        lw=1.2,
        label=label(name),
    )
    if not shaded:
        return
    low, high = [min(points[at]) for at in x], [max(points[at]) for at in x]
    axis.fill_between(x, low, high, color=colour, alpha=0.18, lw=0)
