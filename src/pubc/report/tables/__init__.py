"""The paper's tables from records: means and spreads, the paper's figures, and where we differ.

Heads and records come from `pubc reproduce`; nothing here computes a cell.
"""

from pubc.report.tables.folder import Table, find_records, read_table, read_tables
from pubc.report.tables.sheet import Sheet, sheet
from pubc.report.tables.terminal import lines

__all__ = [
    "Sheet",
    "Table",
    "find_records",
    "lines",
    "read_table",
    "read_tables",
    "sheet",
]
