"""What `pubc reproduce` writes is what the page of results reads, table by table."""

import json

import pytest

from pubc.experiments import TABLES, get_table
from pubc.experiments.cell import SCALES
from pubc.experiments.record_files import RecordFiles
from pubc.experiments.run_table import Plan
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stage_versions import versions
from pubc.report.tables import lines, read_table
from pubc.report.tables.pages.table_figures import draw
from pubc.report.tables.pages.table_markdown import as_markdown
from pubc.results import Record
from tests.report.tables.build import trace


def figures(cell, at):
    """Values that a finished cell could have."""
    curve = {"panel": cell.row, "line": cell.column, "x": [1, 2], "y": [0.1, 0.2]}
    return {cell.measure: (at % 7) / 10, "trace": trace(2), "curve": curve, "seconds": 1.0}


@pytest.mark.parametrize("name", TABLES)
def test_the_page_reads_what_the_table_writes(name, tmp_path):
    cache = Cache(tmp_path / "cache", versions())
    plan = Plan(get_table(name), SCALES["small"], 2, cache)
    RecordFiles(tmp_path, plan, f"pubc reproduce {name}").write(1.0)
    records = []
    for at, cell in enumerate(plan.cells()):
        place = {"row": cell.row, "column": cell.column, "paper": cell.paper}
        values = {**place, "measure": cell.measure, **figures(cell, at)}
        records.append(json.dumps(Record(plan.identity(cell), values).document()) + "\n")
    (tmp_path / f"{name}.jsonl").write_text("".join(records))
    table = read_table(tmp_path, name)
    head = table.sheet.head
    assert len(table.sheet.records) == head.cells == len(plan.cells())
    # Every name in the head is a row or a column, and everything it groups is complete.
    rows, columns = {row.name for row in table.sheet.rows}, set(table.sheet.columns)
    assert {*head.ours, *head.not_ranked} <= columns
    assert {row for pair in head.pairs for row in pair} <= rows
    assert {name for group in head.summaries for name in group.of} <= rows
    assert not any(row.partial or row.remark for row in table.sheet.rows)
    assert (draw(table.sheet) is None) == (head.figure is None)
    text = as_markdown([table], {}, "records")
    assert all(row in text.replace("\\", "") for row in rows)
    assert len(lines(table.sheet)) > len(rows)


def test_a_page_can_be_made_while_the_table_is_computed(tmp_path):
    name = "pu-accuracy"
    plan = Plan(get_table(name), SCALES["small"], 1, Cache(tmp_path / "cache", versions()))
    RecordFiles(tmp_path, plan, "pubc reproduce").write(1.0)
    text = "\n".join(lines(read_table(tmp_path, name).sheet))
    assert "not computed" in text
    assert "Give --data trifinger-real-push=PATH" in text
