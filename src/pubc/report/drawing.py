"""What every figure has in common: colours, type, and files that are the same bytes each time."""

from __future__ import annotations

import io
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from matplotlib.style import context

__all__ = [
    "CUT",
    "DASHES",
    "DROPPED",
    "KEPT",
    "SERIES",
    "canvas",
    "encoded",
    "label",
    "places",
    "style",
]

KEPT, DROPPED, CUT = "#0a66c2", "#a3adb8", "#d9730d"
SERIES = ("#0072b2", "#aa3f96", "#00805c", "#56b4e9", "#8c6d00", "#d55e00")
DASHES = ("-", "--", ":", "-.")
_STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 8,
    "legend.frameon": False,
    "svg.fonttype": "none",
    # Without this, names of shapes are drawn at random and no two files are equal.
    "svg.hashsalt": "pubc",
    # Names from data are text: no dollar sign in them starts a formula.
    "text.parse_math": False,
}
_METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": "pubc"},
    "svg": {"Creator": "pubc", "Date": None},
}


def style() -> AbstractContextManager[None]:
    """Our type and lines, whatever the user's own settings are."""
    return context(["default", _STYLE])


def canvas(
    rows: int = 1, columns: int = 1, *, width: float = 3.4, height: float = 2.2
) -> tuple[Figure, Any]:
    """A figure with a grid of axes; `width` and `height` are inches of each."""
    figure = Figure(figsize=(width * columns, height * rows), dpi=300, layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def places(figure: Figure, stem: Path) -> dict[Path, Figure]:
    """The files that a figure becomes, as PNG and SVG."""
    return {stem.with_name(f"{stem.name}.{kind}"): figure for kind in ("png", "svg")}


def encoded(figure: Figure, kind: str) -> bytes:
    """The bytes of a `png` or `svg` file."""
    file = io.BytesIO()
    # How names and letters are written is decided here, not when the lines are drawn.
    with style():
        figure.savefig(file, format=kind, metadata=_METADATA[kind])
    return file.getvalue()


def label(name: str) -> str:
    """A name from data for a legend, which would leave out one that begins with `_`."""
    text = "".join(c if c.isprintable() else "?" for c in name)[:40] or "(no name)"
    return f" {text}" if text.startswith("_") else text
