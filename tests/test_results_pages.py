"""The pages of results in docs/ are what their committed records say, to the last byte."""

import importlib.util
import re
import shlex
import shutil
from pathlib import Path
from types import ModuleType

import pytest

from pubc.report.tables import read_tables
from pubc.report.tables.pages.write_tables import write_results
from pubc.results import read

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
RECORDS = DOCS / "records"
MADE_BY = re.compile(r"^Made by `(?P<command>[^`]+)` .*? on (?P<machine>.+?); the records", re.M)


@pytest.fixture(scope="module")
def small() -> ModuleType:
    place = ROOT / "benchmarks" / "results_small.py"
    found = importlib.util.spec_from_file_location("results_small", place)
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_the_page_on_cloning_is_what_its_script_makes_of_the_records(small: ModuleType):
    page = (DOCS / "results-small.md").read_text()
    told = MADE_BY.search(page)
    words = [*shlex.split(told["command"])[2:], "--machine", told["machine"]]
    assert small.table(read(DOCS / "results-small.jsonl"), small.parser().parse_args(words)) == page


def test_the_records_on_cloning_are_the_cells_of_its_table(small: ModuleType):
    asked = {small.key_of(cell) for cell in small.cells(small.parser().parse_args([]))}
    found = [record.key for record in read(DOCS / "results-small.jsonl")]
    assert sorted(found) == sorted(asked)


def test_the_page_of_results_is_what_the_report_makes_of_the_records(tmp_path: Path):
    shutil.copytree(RECORDS, tmp_path / "records")
    written = write_results(tmp_path / "records", tmp_path / "results.md")
    assert (tmp_path / "results.md").read_text() == (DOCS / "results.md").read_text()
    # How a picture is drawn depends on the version of matplotlib; that it is there does not.
    drawn = {path.name for path in written.figures}
    assert drawn == {path.name for path in (DOCS / "images").glob("results-*.svg")}


def test_every_place_that_falls_short_or_differs_is_explained():
    silent = [
        f"{table.sheet.head.table}: {place.row}, {place.column}: {place.words}"
        for table in read_tables(RECORDS)
        for group in table.explained()
        for place in group.places
        if group.note is None
    ]
    assert not silent, "\n".join(silent)
