"""The page on reviewing says what the records of its benchmarks say."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from pubc.pu.second_opinion.marks_as_test import marks_say

DOCS = Path(__file__).parents[2] / "docs"
LINES = [json.loads(line) for line in (DOCS / "dev/marks-trust.jsonl").read_text().splitlines()]
PAGE = " ".join((DOCS / "review.md").read_text().split())
FALSE = 0.95
"""Sound with fewer labels right is falsely confident, as in `pubc reproduce trust`."""


def confirmed(line):
    """The first run that marks confirm; None where none is."""
    return next((run for run in line["runs"] if run["marks_say"] == "confirmed"), None)


def split():
    tasks = [line for line in LINES if line["family"] == "scripted manipulation"]
    return tasks, [line for line in LINES if line not in tasks]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line["name"])
def test_records_say_what_the_rule_says(line):
    for run in line["runs"]:
        bad = run["clicks"] - run["good"]
        taught = run["good"] >= 2 and bad >= 4
        opinion = SimpleNamespace(
            taught=taught, seeds=run["good"], divided=run["divided"], repeated=run["repeated"]
        )
        foretold = [bool(right) for right in run["foretold"]]
        assert marks_say(opinion, foretold, bad) == run["marks_say"]


def test_the_page_says_how_often_marks_confirm_and_how_often_wrongly():
    tasks, others = split()
    found = [confirmed(line) for line in others]
    sound = [run for run in found if run]
    wrong = sum(run["decided"] < FALSE for run in sound)
    assert f"Of {len(others)} other piles {len(sound)} were confirmed" in PAGE
    assert f"{wrong} of them with fewer than 95 % of the labels right" in PAGE
    lowest = min(run["decided"] for run in sound)
    assert f"the lowest had {lowest:.1%}".replace("%", " %") in PAGE
    assert len({line["name"] for line in tasks}) == 8
    assert wrong == 0


def test_the_page_says_how_many_tasks_are_sound_within_twenty_clicks():
    path = DOCS / "dev/reviewing.jsonl"
    last = {
        line["data"]: (line["clicks"], line["runs"][-1])
        for line in map(json.loads, path.read_text().splitlines())
    }
    assert len(last) == 8
    assert all(clicks <= 20 for clicks, _ in last.values())
    right = [run["accuracy"] for _, run in last.values() if run["sound"]]
    assert f"{len(right)} of eight tasks were sound within 20 clicks" in PAGE
    assert f"{min(right):.1%} to {max(right):.1%}".replace("%", " %") in PAGE
    for name, (_, run) in last.items():
        if not run["sound"]:
            told = f"{name.removesuffix('-v3')} ({run['accuracy']:.1%})".replace("%", " %")
            assert told in PAGE
    assert min(right) >= FALSE


def test_the_page_says_how_ten_thousand_scrolled():
    (record,) = map(json.loads, (DOCS / "dev/review-scrolling.jsonl").read_text().splitlines())
    paint, frame = (
        max(time[name] for time in record["times"])
        for name in ("first_paint_s", "longest_frame_ms")
    )
    assert record["episodes"] == 10_000
    assert f"after {paint:.2f} s at most, and no frame of five times" in PAGE
    assert f"longer than {frame:.0f} ms" in PAGE
    assert paint < 3
    assert frame < 200
