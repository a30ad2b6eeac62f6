"""Records: keyed by what was asked for, readable after a kill."""

import os
from pathlib import Path

import pytest

from pubc.errors import DataError, UsageError
from pubc.results import Record, append, check, key_of, read


def test_records_come_back(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    first = Record({"env": "ant", "seed": 0}, {"return": {"mean": 1.5}})
    append(path, first)
    append(path, Record({"env": "ant", "seed": 1}, {"return": {"mean": 2.5}}))
    found = read(path)
    assert [one.values["return"]["mean"] for one in found] == [1.5, 2.5]
    assert found[0].key == first.key != found[1].key


def test_the_key_does_not_depend_on_the_order():
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})


def test_a_torn_last_line_is_passed_over(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    append(path, Record({"seed": 0}, {}))
    with path.open("ab") as file:
        file.write(b'{"key": "12')
    before = path.read_bytes()
    assert len(read(path)) == 1
    for add in (check, lambda path: append(path, Record({"seed": 1}, {}))):
        with pytest.raises(DataError, match="last line is not a JSON object"):
            add(path)
    assert path.read_bytes() == before


def test_somebodys_text_is_not_added_to(tmp_path: Path):
    path = tmp_path / "notes.txt"
    for words in ("bought: apples\n", "thesis\n\n", "a,b\n1\n2\n"):
        path.write_text(words)
        for add in (check, lambda path: append(path, Record({"seed": 1}, {}))):
            with pytest.raises(DataError, match="last line is not a JSON object"):
                add(path)
        assert path.read_text() == words


@pytest.mark.parametrize("words", ['{"my": "settings"}', '{"my": "settings"}\n', "{}\n{}\n"])
def test_records_are_added_to_records_alone(words, tmp_path: Path):
    path = tmp_path / "settings.json"
    path.write_text(words)
    with pytest.raises(DataError, match="line 1 is not a record of pubc"):
        check(path)


def test_a_pipe_gets_no_records(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is not a file"):
        check(tmp_path / "pipe")


def test_a_whole_last_line_without_a_newline_is_completed(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    append(path, Record({"seed": 0}, {}))
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    check(path)
    append(path, Record({"seed": 1}, {}))
    assert [record.cell["seed"] for record in read(path)] == [0, 1]


def test_a_line_that_is_no_record_is_refused(tmp_path: Path):
    path = tmp_path / "results.jsonl"
    path.write_text('{"key": "0", "cell": {"seed": 1}}\n')
    with pytest.raises(DataError, match="line 1 is not a record"):
        read(path)


def test_no_file_is_no_records(tmp_path: Path):
    assert read(tmp_path / "absent") == []
