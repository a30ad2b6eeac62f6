"""The page of results: what stands on it, where it goes, and what is refused."""

import json
import re

import pytest

from pubc.report.tables import read_tables
from pubc.report.tables.pages.write_tables import write_results
from pubc.results import Record, append
from tests.cli.calling import run
from tests.report.browser import needs_browser
from tests.report.reading import Page
from tests.report.tables.build import all_tables, failed, head, record, write

HOSTILE = '<script>alert(1)</script> | `x` **b** [l](javascript:0) \x1b[31m "><img src=x onerror=y>'


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    place = tmp_path_factory.mktemp("out")
    all_tables(place / "records")
    return write_results(place / "records")


def test_a_folder_gets_markdown_pictures_and_one_page(written):
    names = [path.name for path in (*written.pages, *written.figures)]
    figures = ["results-convergence.svg", "results-d4rl.svg", "results-seeds.svg"]
    assert names == ["results.md", "results.html", *figures]


def test_the_markdown_has_figures_commands_and_notes(written):
    text = written.pages[0].read_text()
    assert "| Ant E+E | 80.1 ± 0.0 (published 98.1) | **95.0 ± 0.0** (published 99.0) |" in text
    assert "| *Ant average* |" in text
    assert "    pubc reproduce pu-accuracy --scale small --random-seeds 3\n" in text
    assert "- Scaled down: 100 trajectories of each source instead of 500." in text
    assert "- Wall time: 1 h 24 min; the filters and learners of its cells took 18 s\n" in text
    assert "- Cells: 12 of 12, 3 random seeds" in text
    assert "All of it was computed in one go." in text
    assert "Two experts that act alike." in text
    assert text.index("`auto`: 95.0 ± 0.0 is below") < text.index("Two experts that act alike.")
    assert "**No explanation yet**\n\n- Ant E+W: `auto`" in text
    assert "![Convergence (Table 3, Figure 3)](images/results-convergence.svg)" in text


def test_where_nothing_is_compared_nothing_is_claimed(tmp_path):
    good = [record("Ant E+E", "auto", 1.0, paper=0.9), record("Ant E+W", "auto", 1.0, paper=0.9)]
    write(tmp_path / "records", head(), good)
    (tmp_path / "records" / "pu-accuracy.notes.md").write_text("## auto\n\nA remark.\n")
    for direction, claimed in (("higher", True), ("neither", False)):
        write(tmp_path / "records", head(direction=direction), good)
        for page in write_results(tmp_path / "records").pages:
            assert ("Nowhere: no figure of ours" in page.read_text()) == claimed
            assert "A remark." in page.read_text()


def test_every_link_and_picture_of_the_markdown_is_there(written):
    page = written.pages[0]
    for target in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if target.startswith("#"):
            assert f'<a id="{target[1:]}"></a>' in page.read_text()
        else:
            assert (page.parent / target).exists()


def test_the_same_records_give_the_same_bytes(written, tmp_path):
    all_tables(tmp_path / "records")
    again = write_results(tmp_path / "records")
    for one, other in zip(
        (*written.pages, *written.figures), (*again.pages, *again.figures), strict=True
    ):
        assert one.read_bytes() == other.read_bytes(), one.name


def test_a_name_asks_for_one_form_alone(tmp_path):
    all_tables(tmp_path / "records")
    write_results(tmp_path / "records", tmp_path / "a" / "page.md")
    assert {p.name for p in (tmp_path / "a").iterdir()} == {"page.md", "images"}
    write_results(tmp_path / "records", tmp_path / "b" / "page.html")
    assert {p.name for p in (tmp_path / "b").iterdir()} == {"page.html"}
    assert "](../records)" in (tmp_path / "a" / "page.md").read_text()


def test_the_page_runs_nothing_and_loads_nothing(written):
    page = Page(written.pages[1].read_text())
    assert not [tag for tag, _ in page.tags if tag in ("script", "link", "iframe", "object")]
    assert "default-src 'none'" in page.policy
    assert "img-src data:" in page.policy
    assert "script-src" not in page.policy


@needs_browser
def test_the_pictures_of_the_page_are_drawn_without_complaint(written, chromium):
    chromium.send("Page.navigate", url=written.pages[1].resolve().as_uri())
    chromium.wait("document.readyState === 'complete' && document.images.length === 3")
    assert chromium.run("[...document.images].every(i => i.complete && i.naturalWidth > 100)")
    assert chromium.run("getComputedStyle(document.querySelector('b')).fontWeight >= 600")


def test_hostile_text_stays_text(tmp_path):
    document = head(
        title=HOSTILE,
        caption=HOSTILE,
        rows=[HOSTILE],
        columns=["auto"],
        command=HOSTILE,
        scaled_down=HOSTILE,
        machines=[{"cpu": HOSTILE}],
    )
    records = [record(HOSTILE, "auto", 0.9, paper=HOSTILE), failed(HOSTILE, "auto", 1,
                                                                   message=HOSTILE)]  # fmt: skip
    write(tmp_path / "records", document, records)
    markdown, html = write_results(tmp_path / "records").pages
    page = Page(html.read_text())
    assert not [tag for tag, _ in page.tags if tag in ("script", "img")]
    for line in markdown.read_text().splitlines():
        if not line.startswith("    "):
            # Code is inert; outside it nothing may open a tag, a link or a formula.
            rest = re.sub(r"`[^`]*`", "", line)
            assert not re.search(r"(?<!\\)<(?!/?(sup|br|a))", rest), line
            assert not re.search(r"(?<!\\)\](?=\(javascript)", rest), line
        assert "\x1b" not in line


def test_the_command_writes_the_page_and_counts_what_is_unexplained(tmp_path, capsys):
    all_tables(tmp_path / "records")
    code, out, _ = run(capsys, "report", tmp_path, "--json")
    assert code == 0
    document = json.loads(out)
    assert [table["table"] for table in document["tables"]] == [
        "pu-accuracy",
        "convergence",
        "d4rl",
        "seeds",
    ]
    assert document["tables"][0] == {
        "table": "pu-accuracy",
        "cells": 12,
        "failed": 0,
        "differ": 5,
        "unexplained": 3,
    }
    code, out, _ = run(capsys, "report", tmp_path / "records", "--out", tmp_path / "page.md")
    assert code == 0
    assert "pu-accuracy: 12 cells, 0 failed; 5 places fall short or differ, 3 of them" in out
    assert (tmp_path / "page.md").is_file()


def test_an_empty_folder_is_a_matter_of_usage(tmp_path, capsys):
    code, _, told = run(capsys, "report", tmp_path)
    assert code == 2
    assert "pubc reproduce TABLE --out DIR" in told


def test_records_are_reported_alone(tmp_path, capsys):
    all_tables(tmp_path / "records")
    assert run(capsys, "report", tmp_path, tmp_path)[0] == 2
    assert run(capsys, "report", tmp_path, "--figures", tmp_path / "f")[0] == 2


def broken_head(folder):
    (folder / "seeds.json").write_text("{")


def no_head(folder):
    (folder / "seeds.json").unlink()


def no_heads(folder):
    for path in folder.glob("*.json"):
        path.unlink()


def another_table(folder):
    (folder / "seeds.json").write_text((folder / "d4rl.json").read_text())


def broken_record(folder):
    with (folder / "seeds.jsonl").open("a") as file:
        file.write("{}\n")


def other_key(folder):
    text = (folder / "seeds.jsonl").read_text()
    (folder / "seeds.jsonl").write_text(text.replace('"key": "', '"key": "0', 1))


def strange_trace(folder):
    cell = {"random_seed": -1}
    place = {"row": "push", "column": "paper", "paper": None, "measure": "accuracy"}
    append(folder / "convergence.jsonl", Record(cell, {**place, "accuracy": 0.9, "trace": [7]}))


def strange_curve(folder):
    cell = {"random_seed": 9}
    place = {"row": "hopper with PU", "column": "BC", "paper": None, "measure": "score"}
    curve = {"panel": "p", "line": "l", "x": [1, 2], "y": [1]}
    append(folder / "d4rl.jsonl", Record(cell, {**place, "score": 0.9, "curve": curve}))


@pytest.mark.parametrize(
    "harm",
    [
        broken_head,
        no_head,
        no_heads,
        another_table,
        broken_record,
        other_key,
        strange_trace,
        strange_curve,
    ],
)
def test_a_malformed_folder_is_bad_data_and_writes_nothing(tmp_path, capsys, harm):
    folder = all_tables(tmp_path / "records")
    harm(folder)
    code, _, told = run(capsys, "report", folder)
    assert code == 3
    assert "Traceback" not in told
    assert not (tmp_path / "results.md").exists()


def test_a_table_that_was_not_begun_is_a_table(tmp_path):
    write(tmp_path / "records", head(), [])
    text = write_results(tmp_path / "records").pages[0].read_text()
    assert "not computed" in text
    assert read_tables(tmp_path / "records")[0].sheet.random_seeds == 0


def test_a_page_replaces_only_a_page_and_only_when_asked(tmp_path, capsys):
    all_tables(tmp_path / "records")
    thesis = tmp_path / "thesis.md"
    thesis.write_text("years")
    words = ["report", tmp_path / "records", "--out", thesis]
    for more in ([], ["--force"]):
        assert run(capsys, *words, *more)[0] == 2
    assert thesis.read_text() == "years"
    assert not (tmp_path / "images").exists()
    thesis.unlink()
    assert run(capsys, *words)[0] == 0
    thesis.write_text(thesis.read_text() + "my own words")
    assert run(capsys, *words, "--force")[0] == 2
    assert "my own words" in thesis.read_text()
    write_results(tmp_path / "records")
    write_results(tmp_path / "records")
