"""The cells of a table about filters: every row with every column and every random seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from pubc.experiments.cell import Cell, DatasetSpec, FilterSpec, MakeCells, Scale
from pubc.experiments.tables.methods import method
from pubc.experiments.tables.robots import dataset, seeds_for

__all__ = ["filter_cells", "named_filter"]

Filter = Callable[[str, str, Scale], FilterSpec]
"""Maps a row, a column and a scale to what is measured there."""
Figure = Callable[[str, str], float | str | None]
"""Maps a row and a column to what the paper prints there."""


def filter_cells(
    rows: Iterable[str],
    columns: Iterable[str],
    filter_of: Filter,
    *,
    paper: Figure = lambda row, column: None,
    details: tuple[str, ...] = (),
) -> MakeCells:
    """How a table lists its cells, if each is the accuracy of a filter on a row's dataset.

    Args:
        rows: Names of `pubc.experiments.tables.robots`.
        columns: What is compared.
        filter_of: The filter of a row and a column.
        paper: The paper's figure there.
        details: Large values that every record shall hold too.
    """
    places = [(row, column) for row in rows for column in columns]

    def cells(scale: Scale, random_seeds: int, data: Mapping[str, DatasetSpec]) -> list[Cell]:
        return [
            Cell(
                row,
                column,
                dataset(row, scale, data),
                filter_of(row, column, scale),
                random_seed=seed,
                paper=paper(row, column),
                details=details,
            )
            for row, column in places
            for seed in range(random_seeds)
        ]

    return cells


def named_filter(row: str, column: str, scale: Scale) -> FilterSpec:
    """The method that a column is named after, with the seed positives of the row."""
    return method(column, scale, seeds_for(row, scale))
