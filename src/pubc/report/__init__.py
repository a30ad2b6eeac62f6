"""Records in, pages and figures out: the report reads what runs left behind, and runs nothing."""

from pubc.report.write_report import write_report

__all__ = ["write_report"]
