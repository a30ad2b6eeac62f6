"""The pages of results in docs/ are what their committed records say, to the last byte."""

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest

from pubc.results import read

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
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
