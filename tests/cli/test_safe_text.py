"""Text from data is harmless wherever it is printed or written."""

import csv
import io

import pytest

from pubc.cli.console import clean, csv_cell, histogram, one_line


def test_control_characters_become_question_marks():
    assert clean("a\x1b[31mb\x07\r\x9b\u202e\ud800c\n") == "a?[31mb?????c\n"
    assert one_line("a\nb") == "a b"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "\t=1", "=cmd|' /C'!A0"])
def test_a_formula_is_text_in_a_spreadsheet(text):
    cell = next(csv.reader(io.StringIO(csv_cell(text))))[0]
    assert cell.startswith(("'", "?")), "a tab becomes a question mark"
    assert cell.lstrip("'").strip("? ") == text.strip()


@pytest.mark.parametrize("text", ["plain", 'with "quotes"', "a,b;c", "größe", ""])
def test_other_text_survives(text):
    assert [*csv.reader(io.StringIO(csv_cell(text))), [""]][0] == [text]


def test_numbers_stay_numbers():
    assert csv_cell(-1.5) == "-1.5"
    assert csv_cell(3) == "3"


def test_a_histogram_is_one_line_with_its_range():
    assert histogram([]) == "unknown"
    assert histogram([float("nan")]) == "unknown"
    assert histogram([2.0]) == "2"
    assert histogram([2.0, 2.0]) == "all 2"
    assert histogram([0.0, 1.0], bins=3) == "0 |█ █| 1"
