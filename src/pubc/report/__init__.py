"""Records in, pages and figures out: the report reads what runs left behind, and runs nothing."""

from pubc.report.write_report import draw_report, write_report

__all__ = ["draw_report", "write_report"]
