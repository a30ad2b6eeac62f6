"""Every fault of the corpus gets its documented answer, in words that name the place.

Goal R2 of docs/dev/check-full.md.
"""

import json
import re
from pathlib import Path

import pytest

from pubc.cli.main import main
from tests.reliability.malformed import CORPUS, Fault, table

DOCUMENT = Path(__file__).parents[2] / "docs" / "reliability.md"


def inspect(path: Path, capsys, *flags: str) -> tuple[int, dict, str]:
    words = ["inspect", str(path), "--json", "--isolate", "off", "--no-cache", *flags]
    code = main(words)
    told = capsys.readouterr()
    return code, json.loads(told.out), told.err


def names_place(message: str, first: int | tuple[int, ...]) -> bool:
    numbers = {int(n.replace(",", "")) for n in re.findall(r"\d[\d,]*", message)}
    return set(first if isinstance(first, tuple) else (first,)) <= numbers


@pytest.mark.parametrize("fault", CORPUS, ids=lambda f: f"{f.format}-{f.name}".replace(" ", "_"))
def test_a_fault_gets_its_documented_answer(tmp_path, capsys, fault: Fault):
    path = fault.make(tmp_path)
    code, document, printed = inspect(path, capsys, *fault.flags)
    assert code == fault.exit_code, document
    if fault.outcome == "refused":
        error = document["error"]
        assert error["code"] == fault.code, error
        assert error["exit_code"] == code
        assert str(path) in error["message"] or path.name in error["message"]
        assert printed.count("\n") == 1, "one line, no traceback"
        found, message, first = error.get("field"), error["message"], error.get("index")
    else:
        problems = {p["code"]: p for p in document["problems"]}
        assert fault.code in problems, document["problems"]
        problem = problems[fault.code]
        assert problem["outcome"] == fault.outcome
        assert printed == ""
        found, message, first = problem["field"], problem["message"], problem["first"]
    if fault.field is not None:
        assert fault.field in f"{found}: {message}"
    if fault.first is not None:
        told = tuple(first) if isinstance(first, list) else first
        assert told == fault.first
        assert names_place(message, fault.first) or fault.outcome != "refused", message


STRICT = [fault for fault in CORPUS if fault.outcome in ("repaired", "warned")]


@pytest.mark.parametrize("fault", STRICT, ids=lambda f: f"{f.format}-{f.name}".replace(" ", "_"))
def test_strict_refuses_what_is_otherwise_repaired_or_warned_about(tmp_path, capsys, fault):
    path = fault.make(tmp_path)
    code, document, _ = inspect(path, capsys, "--strict", *fault.flags)
    assert code == 3, document
    assert "--strict" in document["error"]["message"]


def test_the_corpus_is_as_large_as_promised():
    assert len(CORPUS) >= 45
    assert len({(fault.format, fault.name) for fault in CORPUS}) == len(CORPUS)
    assert len({fault.format for fault in CORPUS} - {"none"}) >= 9


def test_the_documented_table_is_the_tested_one():
    assert table() in DOCUMENT.read_text()
