"""Strings from strangers: nothing runs, nothing escapes, nothing computes."""

import csv
import dataclasses
import itertools
import subprocess
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest

from pubc.cli.main import main
from pubc.report import write_report
from pubc.report.compare_runs import comparison
from pubc.report.page import render
from pubc.report.run_markdown import as_markdown
from pubc.report.sentences import command, next_commands
from pubc.runs.folder.run_reading import read_run
from pubc.runs.folder.run_tables import score_table, write_table
from tests.report.browser import needs_browser
from tests.report.build import make_run
from tests.report.hostile import HOSTILE
from tests.report.reading import Page


def twisted(word):
    """A way to put one hostile string wherever the run holds text.

    Without characters of zero: documents that hold those are refused, see test_strangers_runs.py.
    """
    word = word.replace("\0", "")
    return lambda _: word


MARK = "MARK"


@pytest.fixture(scope="module")
def marked(tmp_path_factory):
    """A run in which a mark stands wherever words come from data."""
    return read_run(make_run(tmp_path_factory.mktemp("runs") / "run", 12, 2, text=twisted(MARK)))


def with_words(value, word):
    """The same run, document or column with another word in place of the mark."""
    if dataclasses.is_dataclass(value):
        fields = {
            f.name: with_words(getattr(value, f.name), word) for f in dataclasses.fields(value)
        }
        return type(value)(**fields)
    if isinstance(value, dict):
        return {key: with_words(entry, word) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(with_words(entry, word) for entry in value)
    return word if isinstance(value, str) and value == MARK else value


def test_no_string_changes_the_structure_of_the_page(marked):
    """The parsed page has the same elements, in the same order, whatever the words."""
    structure = Page(render(marked)).tags
    for word in HOSTILE:
        run = with_words(marked, word)
        page = Page(render(run))
        assert page.tags == structure, repr(word)
        assert page.data["run"]["ids"] == [word] * 12
        assert page.data["run"]["source_names"] == [word]
        assert page.data["run"]["rounds"][0]["losses"][0][0] == word


def test_no_string_becomes_markup_in_the_text_form(marked):
    for word in HOSTILE:
        text = as_markdown(with_words(marked, word), None, None)
        outside = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
        for mark in ("<", "](", "!["):
            bare = [at for at in range(len(outside)) if outside.startswith(mark, at)]
            assert all(outside[at - 1] == "\\" for at in bare), repr(word)
        assert all(c.isprintable() or c == "\n" for c in outside)


@needs_browser
def test_no_string_runs_asks_or_complains_in_a_browser(chromium, tmp_path):
    everything = "\n".join(HOSTILE)
    ids = list(itertools.islice(itertools.cycle(HOSTILE), 400))
    name = "".join(c for c in HOSTILE[21] if c not in "/\0")
    for number, text in enumerate((twisted(everything), iter_words())):
        path = make_run(tmp_path / f"{number} {name}", ids=ids, text=text, steps=True)
        pages = [write_report([path])]
        other = make_run(tmp_path / f"{number} other", ids=ids, text=text, random_seed=2)
        pages.append(write_report([path, other], tmp_path / f"{number} both"))
        for page in pages:
            chromium.open(page)
            for selector in ("[data-column=id]", "[data-column=id]"):
                chromium.click(selector)
            chromium.run("document.querySelectorAll('button').forEach(b => b.click())")
            assert chromium.run("typeof window.hacked") == "undefined"
            assert chromium.run("document.querySelectorAll('script').length") == 2
            assert chromium.run("document.querySelectorAll('img, iframe, base, link').length") == 0
            assert chromium.complaints() == []
            assert chromium.requests() == [page.resolve().as_uri()]


def iter_words():
    """A way to put another hostile string into every place."""
    words = itertools.cycle(word.replace("\0", "") for word in HOSTILE)
    return lambda _: next(words)


def test_no_escape_reaches_the_terminal(tmp_path, capsys):
    name = "".join(c for c in HOSTILE[-1] + "\x1b[2J" if c not in "/\0")
    path = make_run(tmp_path / name, 12, 1, text=iter_words())
    figures = tmp_path / ("\x1b[31m" + "figures")
    assert main(["report", str(path), "--figures", str(figures)]) == 0
    assert main(["report", str(tmp_path / "\x1b[5mnowhere")]) == 2
    for drawing in figures.glob("*.svg"):
        assert {e.tag.split("}")[1] for e in ET.parse(drawing).iter() if "}" in e.tag}.isdisjoint(
            {"script", "foreignObject", "iframe", "a"}
        )
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        assert all(c.isprintable() or c == "\n" for c in text), repr(text)


def test_no_cell_of_the_scores_is_a_live_formula(tmp_path):
    words = [*HOSTILE, " =1+1", "\t=1+1", "\n@x", "-2+3", "+1", "=1"]
    count = len(words)
    mixed = SimpleNamespace(
        ids=np.array(words, dtype=object),
        sources=np.array(words[::-1], dtype=object),
        lengths=np.ones(count, int),
        total_rewards=lambda: np.linspace(-5, 5, count),
    )
    nobody = np.zeros(count, bool)
    marks = {"seed": nobody, "borderline": nobody}
    rows = score_table(mixed, np.linspace(-1, 1, count), np.zeros(count, int), nobody, marks)
    write_table(tmp_path / "scores.csv", rows, overwrite=False)
    with (tmp_path / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == count
    for row in rows:
        for cell in (row["episode"], row["source"]):
            assert cell.lstrip()[:1] not in set("=+-@"), repr(cell)


@pytest.mark.parametrize("word", HOSTILE[::20])
def test_names_of_compared_runs_are_text(tmp_path, word):
    name = "".join(c for c in word if c not in "/\0") or "x"
    runs = [read_run(make_run(tmp_path / f"{name}{n}", 12, 1, random_seed=n)) for n in (0, 1)]
    facts = comparison(runs)
    page = Page(render(None, runs, facts))
    assert facts["names"] == [f"{name}0", f"{name}1"]
    assert [tag for tag, _ in page.tags].count("script") == 2


RECORDER = """
record() { printf '%s\\0' "$@" >> words; printf '\\n\\0' >> words; }
pubc() { record pubc "$@"; }
python() { record python "$@"; }
lerobot-train() { record lerobot-train "$@"; }
PATH=/nonexistent
"""


@pytest.mark.parametrize("kind", ["npz", "lerobot", "minari"])
def test_commands_to_copy_do_what_they_say_whatever_the_names(marked, tmp_path, kind):
    """A shell that only takes notes is given every command of pages full of hostile names."""
    for number, word in enumerate(HOSTILE):
        name = word.replace("\0", "")
        run = with_words(marked, name)
        run.document["data"]["format"] = kind
        run.document["data"]["path"] = f"/data/{name}"
        texts = [command(run), *(text for _, text in next_commands(run))]
        place = tmp_path / str(number)
        place.mkdir()
        done = subprocess.run(
            ["/bin/bash", "-c", RECORDER + "\n".join(texts)],
            cwd=place,
            capture_output=True,
        )
        assert done.returncode == 0, (word, done.stderr)
        assert done.stderr == b"", word
        said = (place / "words").read_bytes().decode("utf-8", "surrogateescape")
        calls = [call.split("\0")[:-1] for call in said.split("\n\0")[:-1]]
        assert calls[0][:3] == ["pubc", "filter", f"/data/{name}"]
        hanging = [f"--recipe={name}"] if name.startswith("-") else ["--recipe", name]
        at = calls[0].index(hanging[0])
        assert calls[0][at : at + len(hanging)] == hanging
        assert {call[0] for call in calls} <= {"pubc", "python", "lerobot-train"}
        assert [path.name for path in place.iterdir()] == ["words"], word
