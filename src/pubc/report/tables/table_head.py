"""What a table says about itself: its title, its order, how it was computed and read.

`pubc reproduce` writes one head per table beside its records. Everything the page needs to know
is in it, so that the report knows no table by name.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pubc.errors import DataError

__all__ = ["ALL", "Group", "Head", "head_of"]

ALL = "all of them"
"""The row over all records, where every record fills a row."""

_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_UNITS = ("percent", "score", "count", "return")
_DIRECTIONS = ("higher", "lower", "neither")
_HOWS = ("mean", "sum")
_FIGURES = ("rounds", "curves", "line", "reliability")


@dataclass(frozen=True, slots=True)
class Group:
    """A mean or a sum over rows or columns, as the paper's tables have them."""

    name: str
    """What it is called."""
    of: tuple[str, ...]
    """Its members; earlier groups may be among them."""
    how: str
    """`mean` or `sum`."""
    paper: Mapping[str, float]
    """The paper's own figures by column or row; the rest is computed from its members."""


@dataclass(frozen=True, slots=True)
class Head:
    """A table without its records."""

    table: str
    """Its name on the command line."""
    title: str
    """Its heading."""
    caption: str
    """What it shows."""
    scale: str
    """`small` or `paper`."""
    scaled_down: tuple[str, ...]
    """What is smaller than in the paper, a sentence each."""
    command: tuple[str, ...]
    """The command lines that made it."""
    wall_seconds: float
    """Wall time of all runs together."""
    pubc: str
    """The version that computed it."""
    code: Mapping[str, str]
    """Digests of the code that computed it, by stage."""
    machines: tuple[Mapping[str, Any], ...]
    """Where it was computed."""
    rows: tuple[str, ...]
    """Rows in order."""
    columns: tuple[str, ...]
    """Columns in order."""
    unit: str
    """`percent` (of shares from 0 to 1), `score`, `count` or `return`."""
    direction: str
    """Whether `higher` or `lower` is better; `neither` where nothing is compared."""
    ours: tuple[str, ...] = ()
    """Columns that are held against the paper and against every other column."""
    not_ranked: tuple[str, ...] = ()
    """Columns that do not compete, for example the data itself."""
    reference: str | None = None
    """The column that every other one is shown as a share of."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Rows of which the first is held against the second."""
    summaries: tuple[Group, ...] = ()
    """Rows over rows."""
    totals: tuple[Group, ...] = ()
    """Columns over columns."""
    cells: int | None = None
    """How many records a finished table has, where it is known."""
    figure: Mapping[str, Any] | None = None
    """What to draw."""
    paper_rounds: Mapping[str, Sequence[Mapping[str, float]]] | None = None
    """The paper's right and wrong decisions of each round, by dataset."""
    measures: Mapping[str, str] = field(default_factory=dict)
    """Where every record fills a whole row: the value that each column shows. Then a row shows
    the mean of its records, and the row `ALL` that of all of them."""

    @property
    def compared(self) -> bool:
        """Whether somebody competes in it."""
        return self.direction != "neither" and bool(self.ours or self.pairs)


def head_of(document: Mapping[str, Any], where: str) -> Head:
    """Check the document of a head.

    Args:
        document: The JSON object.
        where: Its file, for errors.

    Raises:
        DataError: An entry is missing or not what it should be.
    """
    # What is particular to a table stands in `extra`.
    extra = document.get("extra")
    read = _Reader({**(extra if isinstance(extra, dict) else {}), **document}, where)
    return Head(
        table=read("table", _name, "a name of lower-case letters, digits and hyphens"),
        title=read("title", _text, "text"),
        caption=read("caption", _text, "text"),
        scale=read("scale", _text, "text"),
        scaled_down=read("scaled_down", _texts, "text or a list of texts"),
        command=read("command", _texts, "text or a list of texts"),
        wall_seconds=read("wall_seconds", _number, "a number"),
        pubc=read("pubc", _text, "text"),
        code=read("code", _strings, "digests by stage"),
        machines=read("machines", _objects, "a list of objects"),
        rows=read("rows", _names, "a list of different names"),
        columns=read("columns", _names, "a list of different names"),
        unit=read("unit", _one_of(_UNITS), f"one of {', '.join(_UNITS)}"),
        direction=read("direction", _one_of(_DIRECTIONS), f"one of {', '.join(_DIRECTIONS)}"),
        ours=read("ours", _names, "a list of columns", ()),
        not_ranked=read("not_ranked", _names, "a list of columns", ()),
        reference=read("reference", _text, "a column", None),
        pairs=read("pairs", _pairs, "a list of pairs of rows", ()),
        summaries=read("summaries", _groups, "a list of groups with name, of and how", ()),
        totals=read("totals", _groups, "a list of groups with name, of and how", ()),
        cells=read("cells", _count, "a whole number", None),
        figure=read("figure", _figure, f"an object of kind {', '.join(_FIGURES)}", None),
        paper_rounds=read("paper_rounds", _rounds, "TP, FP, FN and TN of each round", None),
        measures=read("measures", _strings, "names of values by column", {}),
    )


_NEEDED = object()


class _Reader:
    """Entries of one document, each checked by a function that raises ValueError."""

    def __init__(self, document: Mapping[str, Any], where: str) -> None:
        self._document, self._where = document, where

    def __call__(
        self, name: str, check: Callable[[Any], Any], expected: str, usual: Any = _NEEDED
    ) -> Any:
        value = self._document.get(name)
        if value is None and usual is not _NEEDED:
            return usual
        try:
            return check(value)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise DataError(
                f"{self._where}: expected `{name}` to be {expected}, found {str(value)[:80]!r}; "
                "`pubc reproduce` writes heads as they should be.",
                code="bad_head",
                field=name,
            ) from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(_text(entry) for entry in _list(value))


def _name(value: Any) -> str:
    if not _NAME.fullmatch(_text(value)):
        raise ValueError
    return str(value)


def _names(value: Any) -> tuple[str, ...]:
    found = tuple(_text(entry) for entry in _list(value))
    if len(set(found)) != len(found):
        raise ValueError
    return found


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError
    return value


def _objects(value: Any) -> tuple[dict[str, Any], ...]:
    return tuple(map(_object, _list(value)))


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _strings(value: Any) -> dict[str, str]:
    return {name: _text(entry) for name, entry in _object(value).items()}


def _rounds(value: Any) -> dict[str, list[dict[str, float]]]:
    return {
        name: [
            {count: _number(done[count]) for count in ("TP", "FP", "FN", "TN")}
            for done in _list(rounds)
        ]
        for name, rounds in _object(value).items()
    }


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _one_of(known: tuple[str, ...]) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in known:
            raise ValueError
        return str(value)

    return check


def _pairs(value: Any) -> tuple[tuple[str, str], ...]:
    found = []
    for pair in _list(value):
        first, second = (_text(name) for name in _list(pair))
        found.append((first, second))
    return tuple(found)


def _groups(value: Any) -> tuple[Group, ...]:
    found: list[Group] = []
    for entry in _list(value):
        group = Group(
            _text(entry["name"]),
            _names(entry["of"]),
            _one_of(_HOWS)(entry["how"]),
            {name: _number(figure) for name, figure in (entry.get("paper") or {}).items()},
        )
        # A group of itself, or of one that comes later, would have no end.
        later = {_text(other["name"]) for other in value[len(found) :]}
        if not group.of or later & set(group.of):
            raise ValueError
        found.append(group)
    return tuple(found)


def _figure(value: Any) -> dict[str, Any]:
    _one_of(_FIGURES)(_object(value)["kind"])
    if value.get("rows") is not None:
        _names(value["rows"])
    return dict(value)
