"""Text from data is harmless wherever it is printed or written."""

from pubc.cli.console import clean, histogram, one_line


def test_control_characters_become_question_marks():
    assert clean("a\x1b[31mb\x07\r\x9b\u202e\ud800c\n") == "a?[31mb?????c\n"
    assert one_line("a\nb") == "a b"


def test_a_histogram_is_one_line_with_its_range():
    assert histogram([]) == "unknown"
    assert histogram([float("nan")]) == "unknown"
    assert histogram([2.0]) == "2"
    assert histogram([2.0, 2.0]) == "all 2"
    assert histogram([0.0, 1.0], bins=3) == "0 |█ █| 1"
