"""One place of a table: its figures over random seeds, the paper's figure, and their words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pubc.metrics import mean_and_spread
from pubc.report.tables.record_values import Paper

__all__ = ["EMPTY", "TableValue", "resolution", "rounded", "shown"]

_FACTOR = {"percent": 100.0}
_DIGITS = {"percent": 1, "score": 2}


@dataclass(frozen=True, slots=True)
class TableValue:
    """Where a row meets a column."""

    by_seed: Mapping[int, float] = field(default_factory=dict)
    """Figure of each random seed that finished, lowest seed first."""
    paper: Paper = None
    """The paper's figure."""
    failed: int = 0
    """Random seeds whose cell failed."""
    given: bool = True
    """Whether there was data to compute it from."""
    remarks: tuple[str, ...] = ()
    """What to know about it, for footnotes."""
    best: bool = False
    """Whether no competitor has a better one."""
    share: float | None = None
    """What it is of the reference column of its row, where the table has one."""

    @property
    def mean(self) -> float | None:
        """Mean over random seeds; None where there is no figure."""
        return mean_and_spread(list(self.by_seed.values())).mean if self.by_seed else None

    @property
    def spread(self) -> float:
        """Sample standard deviation over random seeds; zero for one."""
        return mean_and_spread(list(self.by_seed.values())).deviation if self.by_seed else 0.0

    def words(self, unit: str) -> str:
        """Our figure with its spread and share, `failed`, or a dash where there is none."""
        if self.mean is None:
            tried = "failed" if self.given else "no data"
            return tried if self.failed else "\N{EN DASH}"
        spread = f" ± {shown(self.spread, unit)}" if len(self.by_seed) > 1 else ""
        share = "" if self.share is None else f", {100 * self.share:.0f} %"
        return shown(self.mean, unit) + spread + share

    def paper_words(self, unit: str) -> str:
        """The paper's figure or mark; empty where it has none."""
        if self.paper is None or isinstance(self.paper, str):
            return self.paper or ""
        return shown(self.paper, unit)


EMPTY = TableValue()
"""A place that no cell belongs to."""


def rounded(value: float, unit: str) -> float:
    """A figure as it is printed, as a number."""
    return round(value * _FACTOR.get(unit, 1.0), _DIGITS.get(unit, 0))


def shown(value: float, unit: str) -> str:
    """A figure for people."""
    return f"{rounded(value, unit) + 0.0:,.{_DIGITS.get(unit, 0)}f}"


def resolution(unit: str) -> float:
    """Half of the last digit that is printed, in units of the figure."""
    return float(0.5 * 10 ** -_DIGITS.get(unit, 0) / _FACTOR.get(unit, 1.0))
