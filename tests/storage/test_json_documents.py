"""JSON from a stranger is refused where it is read, not where somebody computes with it."""

import json

import pytest

from pubc.errors import DataError
from pubc.storage import parse_json, read_json
from tests.cli.calling import run
from tests.report.tables.build import all_tables


def test_numbers_are_read_as_they_are_up_to_those_beyond_floating_point():
    assert parse_json("[1, -2, 1e3, 12345678901234567890]") == [1, -2, 1000.0, 12345678901234567890]
    assert float(parse_json("9" * 300)) > 1e299
    with pytest.raises(ValueError, match="a whole number of 401 digits"):
        parse_json('{"accuracy": 1' + "0" * 400 + "}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[1]", "expected a JSON object, found list"),
        ("{", "not readable as JSON"),
        ('{"a": ' + "9" * 400 + "}", "not readable as JSON (a whole number of 400 digits)"),
        ('{"a":' * 100_000 + "1" + "}" * 100_000, "not readable as JSON"),
    ],
    ids=["list", "cut", "number", "deep"],
)
def test_a_document_is_refused_with_its_path(text, words, tmp_path):
    path = tmp_path / "some.json"
    path.write_text(text)
    with pytest.raises(DataError) as refused:
        read_json(path)
    assert str(refused.value).startswith(f"{path}: ")
    assert words in str(refused.value)


def test_what_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "some.json"
    path.write_text(json.dumps({"a": "x" * 100}))
    with pytest.raises(DataError, match="more than the limit of 50"):
        read_json(path, limit=50)


@pytest.mark.parametrize("name", ["convergence.json", "pu-accuracy.jsonl"])
def test_a_record_with_a_number_beyond_floating_point_is_refused(name, tmp_path, capsys):
    path = all_tables(tmp_path / "records") / name
    lines = path.read_text().splitlines()
    document = json.loads(lines[0]) if name.endswith("l") else json.loads(path.read_text())
    document["accuracy" if "accuracy" in document else "extra"] = 10**400
    rest = lines[1:] if name.endswith("l") else []
    path.write_text("\n".join([json.dumps(document), *rest]) + "\n")
    code, _, err = run(capsys, "report", tmp_path / "records", "--out", tmp_path / "page.md")
    assert code == 3, err
