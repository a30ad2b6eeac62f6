"""The paper's tables from records: means and spreads, the paper's figures, and where we differ.

Heads and records come from `pubc reproduce`; nothing here computes a cell.
"""

from pubc.report.tables.pages.table_terminal import lines
from pubc.report.tables.records_folder import Table, find_records, read_table, read_tables
from pubc.report.tables.table_of_means import TableOfMeans, sheet

__all__ = [
    "Table",
    "TableOfMeans",
    "find_records",
    "lines",
    "read_table",
    "read_tables",
    "sheet",
]
