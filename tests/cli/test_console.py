"""Summaries: aligned everywhere, coloured where somebody looks, and never by the data."""

import sys

import pytest

from pubc.cli.console import facts, headline


@pytest.fixture
def terminal(capsys, monkeypatch):
    monkeypatch.setattr(type(sys.stdout), "isatty", lambda stream: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


def show():
    headline("Converged: kept 20 of 60", "good")
    facts([("kept", "20"), ("expected wrong", "1.9 %")])


def test_a_file_gets_plain_aligned_text(capsys):
    show()
    assert capsys.readouterr().out == (
        "Converged: kept 20 of 60\nkept            20\nexpected wrong  1.9 %\n"
    )


def test_a_terminal_gets_the_same_words_in_colour(capsys, terminal):
    show()
    assert capsys.readouterr().out == (
        "\x1b[1;32mConverged: kept 20 of 60\x1b[0m\n"
        "\x1b[2mkept          \x1b[0m  20\n"
        "\x1b[2mexpected wrong\x1b[0m  1.9 %\n"
    )


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_who_wants_no_colour_gets_none(capsys, terminal, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    show()
    assert "\x1b" not in capsys.readouterr().out


def test_escapes_from_data_reach_no_terminal(capsys, terminal):
    headline("\x1b[31mred\x07", "bad")
    facts([("\x1b[5mname", "\x1b]0;title\x07")])
    out = capsys.readouterr().out
    assert out.count("\x1b") == 4  # ours: on and off, twice
    assert "\x07" not in out
