"""JSON from a stranger is refused where it is read, not where somebody computes with it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from pubc.errors import DataError
from pubc.storage import check_settings, parse_json, read_json
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


@dataclass(frozen=True)
class Inner:
    share: float = 0.5


@dataclass(frozen=True)
class Settings:
    how: Literal["keep", "drop"] = "keep"
    count: int = 2
    name: str | None = None
    place: Path | None = None
    keys: tuple[str, ...] = ()
    strict: bool = False
    cut: Literal["valley"] | float = "valley"
    inner: Inner = Inner()


@pytest.mark.parametrize(
    "settings",
    [{}, {"how": "drop"}, {"name": "a", "place": Path("b"), "keys": ("c",)}, {"cut": 0.5},
     {"cut": 1, "inner": Inner(1)}, {"strict": True}],
    ids=str,
)  # fmt: skip
def test_settings_that_pubc_wrote_fit_their_annotations(settings):
    check_settings(Settings(**settings))


@pytest.mark.parametrize(
    "settings",
    [{"how": "text"}, {"how": {}}, {"how": []}, {"count": True}, {"count": 2.5}, {"count": None},
     {"name": ["a"]}, {"place": "b"}, {"keys": ["c"]}, {"keys": (1,)}, {"strict": 1},
     {"strict": None}, {"cut": "other"}, {"inner": Inner("a")}, {"inner": None}],
    ids=str,
)  # fmt: skip
def test_a_setting_of_another_type_is_named(settings):
    name = "share" if isinstance(settings.get("inner"), Inner) else next(iter(settings))
    with pytest.raises(TypeError, match=f"{name} cannot be"):
        check_settings(Settings(**settings))


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
