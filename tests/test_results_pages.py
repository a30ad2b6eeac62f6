"""The pages of results in docs/ are what their committed records say, to the last byte."""

import importlib.util
import json
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path
from statistics import fmean
from types import ModuleType

import pytest

from pubc.pu.recipes import get_recipe, recipe_to_json
from pubc.report.tables import read_tables
from pubc.report.tables.pages.write_tables import write_results
from pubc.results import read

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
RECORDS = DOCS / "records"
MADE_BY = re.compile(r"^Made by `(?P<command>[^`]+)` .*? on (?P<machine>.+?); the records", re.M)


def script(name: str) -> ModuleType:
    found = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def small() -> ModuleType:
    return script("results_small")


def test_w11_the_table_of_the_readme_is_what_its_script_makes_of_the_records():
    page = (ROOT / "README.md").read_text()
    assert script("readme").page(page) == page


def test_the_table_of_the_zoo_is_what_its_script_makes_of_the_cards():
    zoo = script("zoo")
    page = (DOCS / "zoo.md").read_text()
    assert zoo.table() == page.split(zoo.BEGIN)[1].split(zoo.END)[0]


HISTORY = re.compile(
    r"was made before|were made before|of today|was rewritten|an earlier run", re.I
)
"""How something came about belongs to docs/dev/; pages for users say what is."""


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS.glob("*.md")], ids=lambda p: p.name)
def test_pages_for_users_tell_no_history(page: Path):
    assert HISTORY.findall(page.read_text()) == []


def test_the_page_on_cloning_is_what_its_script_makes_of_the_records(small: ModuleType):
    page = (DOCS / "results-small.md").read_text()
    told = MADE_BY.search(page)
    words = [*shlex.split(told["command"])[2:], "--machine", told["machine"]]
    assert small.table(read(DOCS / "results-small.jsonl"), small.parser().parse_args(words)) == page


def test_the_records_on_cloning_are_the_cells_of_its_table(small: ModuleType):
    asked = {small.key_of(cell) for cell in small.cells(small.parser().parse_args([]))}
    found = [record.key for record in read(DOCS / "results-small.jsonl")]
    assert sorted(found) == sorted(asked)


def test_the_page_of_results_is_what_the_report_makes_of_the_records(tmp_path: Path):
    shutil.copytree(RECORDS, tmp_path / "records")
    written = write_results(tmp_path / "records", tmp_path / "results.md")
    assert (tmp_path / "results.md").read_text() == (DOCS / "results.md").read_text()
    # How a picture is drawn depends on the version of matplotlib; that it is there does not.
    drawn = {path.name for path in written.figures}
    assert drawn == {path.name for path in (DOCS / "images").glob("results-*.svg")}


def test_every_place_that_falls_short_or_differs_is_explained():
    silent = [
        f"{table.sheet.head.table}: {place.row}, {place.column}: {place.words}"
        for table in read_tables(RECORDS)
        for group in table.explained()
        for place in group.places
        if group.note is None
    ]
    assert not silent, "\n".join(silent)


UNSEEN = "unseen-manipulation.jsonl"
KNOWN_FAULTS = ("button-press-wall-v3", "door-unlock-v3", "pick-out-of-hole-v3", "push-wall-v3")
"""Piles with the kinds of faults of the suite's manipulation; the others have other kinds."""
ABSTAINS = re.compile(r"^\| ([a-zA-Z -]+) \| (\d+) \| ([\d.]+) % \| (\d+) \| (\d+) \|$", re.M)


def test_the_page_on_the_method_says_where_it_abstains_as_the_records_do():
    records = [record.values for record in read(RECORDS / "trust.jsonl")]
    told = ABSTAINS.findall((DOCS / "method.md").read_text())
    assert len(told) > 10
    for family, *figures in told:
        asked = [record for record in records if record["row"] == family]
        right = 100 * sum(record["accuracy"] for record in asked) / len(asked)
        sound, fooled = (sum(r[name] for r in asked) for name in ("sound", "falsely_confident"))
        assert figures == [str(len(asked)), f"{right:.1f}", str(sound), str(fooled)], family


def test_the_readme_says_how_often_it_is_right_as_the_records_do():
    records = [record.values for record in read(RECORDS / "trust.jsonl")]
    sound = [record for record in records if record["sound"]]
    answerable = [record for record in records if record["answerable"]]
    told = re.search(
        r"of (\d+) questions.*? called (\d+) .*? and (\d+) of those.*?\s(\d+) that .*? left (\d+)",
        (ROOT / "README.md").read_text(),
        re.S,
    )
    assert [int(figure) for figure in told.groups()] == [
        len(records),
        len(sound),
        sum(record["falsely_confident"] for record in sound),
        len(answerable),
        sum(not record["sound"] for record in answerable),
    ]


def test_the_readme_says_how_the_filter_of_today_does_on_the_same_robots():
    records = [record.values for record in read(RECORDS / "trust.jsonl")]
    walking = [r["accuracy"] for r in records if r["row"] == "locomotion"]
    pushing = [
        round(100 * record["accuracy"])
        for record in records
        if record["row"] == "TriFinger push" and record["column"].startswith("10 seeds")
    ]
    told = re.search(
        r"in (\d+) of (\d+) locomotion.*? about ([\d.]+) % in the mean.*? three draws\s"
        r"about (\d+), (\d+) and (\d+) %",
        (ROOT / "README.md").read_text(),
        re.S,
    )
    right = sum(accuracy == 1 for accuracy in walking)
    mean = 100 * sum(walking) / len(walking)
    assert [float(figure) for figure in told.groups()] == [
        right,
        len(walking),
        round(mean, 1),
        *pushing,
    ]


def test_the_page_on_the_method_says_what_clones_earn_in_meta_world():
    found: dict[str, dict[str, dict]] = {}
    for line in (DOCS / "dev" / "metaworld-clones.jsonl").read_text().splitlines():
        record = json.loads(line)
        found.setdefault(record["pile"], {})[record["what"]] = record
    page, close = (DOCS / "method.md").read_text(), 0
    for pile, by in found.items():
        rates = [by[name]["success"] for name in ("kept", "expert", "all")]
        right = f"{100 * by['filter']['accuracy']:.1f} %"
        cells = [pile.removesuffix("-v3"), right, *(f"{rate:.3f}" for rate in rates)]
        assert f"| {' | '.join(cells)} |" in page
        close += rates[0] >= rates[1] - 0.05
    assert f"In {close} of the {len(found)} tasks" in page
    sound = sum(by["filter"]["sound"] for by in found.values())
    assert f"{sound} of these {len(found)} answers were called sound" in page


def test_the_page_on_the_method_says_how_it_does_on_tasks_on_which_nothing_was_chosen():
    records = [json.loads(line) for line in (DOCS / "dev" / UNSEEN).read_text().splitlines()]
    told = re.search(
        r"Of their labels ([\d.]+) % are right, ([\d.]+) to ([\d.]+) % in a run: ([\d.]+) % "
        r".*? ([\d.]+) %\swhere they are others .*? (\d+) of the (\d+) answers .*? and (\d+) of "
        r"those\swere wrong.*?\s([\d.]+) % is the expert's, .*? keeps ([\d.]+) %",
        (DOCS / "method.md").read_text(),
        re.S,
    )
    known = [record for record in records if record["mixture"] in KNOWN_FAULTS]
    others = [record for record in records if record["mixture"] not in KNOWN_FAULTS]
    right = [record["accuracy"] for record in records]
    sound = [record["accuracy"] for record in records if record["sound"]]
    figures = [
        f"{100 * figure:.1f}"
        for figure in (
            fmean(right),
            min(right),
            max(right),
            *(fmean(record["accuracy"] for record in some) for some in (known, others)),
            *(fmean(record[name] for record in records) for name in ("precision", "recall")),
        )
    ]
    counts = [str(n) for n in (len(sound), len(right), sum(one < 0.95 for one in sound))]
    assert list(told.groups()) == [*figures[:5], *counts, *figures[5:]]
    page = " ".join((DOCS / "method.md").read_text().split())
    for record in records:
        if record["sound"] and record["accuracy"] < 0.95:
            assert record["mixture"].removesuffix("-v3") in page
            assert f"{100 * record['accuracy']:.1f} %" in page
    readme = " ".join((ROOT / "README.md").read_text().split())
    said = f"it called {counts[0]} of {counts[1]} answers sound, and {counts[2]} of them were wrong"
    assert said in readme


def test_the_table_of_settings_is_what_its_script_makes_of_the_records():
    settings = script("auto_settings")
    lines = (DOCS / "dev" / "auto-settings.jsonl").read_text().splitlines()
    table = "\n".join(settings.table([json.loads(line) for line in lines]))
    assert f"\n{table}\n" in (DOCS / "method.md").read_text()


def test_every_setting_of_auto_is_in_that_table():
    recipe = recipe_to_json(get_recipe("auto"))
    names = {f"{part}.{name}" for part in recipe if part != "name" for name in recipe[part]}
    assert len(names) <= 15
    assert names == set(script("auto_settings").CHANGES) - {"as it is"}


def test_the_headlines_say_of_table_one_at_its_size_what_the_records_do():
    records = [record.values for record in read(RECORDS / "pu-accuracy-paper.jsonl")]
    paper, auto, small = (
        [r for r in records if choose(r)]
        for choose in (
            lambda r: r["column"] == "paper" and not r["row"].startswith("TriFinger"),
            lambda r: r["column"] == "auto" and not r["row"].startswith("TriFinger"),
            lambda r: r["row"].startswith("TriFinger"),
        )
    )
    assert len(paper) == len(auto) == 24
    lost = {
        name: {r["confusion"]["false_negatives"] for r in paper if name in r["row"]}
        for name in ("Ant", "Humanoid")
    }
    assert lost["Ant"] == {1}
    assert (min(lost["Humanoid"]), max(lost["Humanoid"])) == (2, 19)
    assert all(r["confusion"]["false_positives"] == 0 and r["auc"] == 1 for r in paper)
    assert {r["status"] for r in paper} == {"converged"}
    assert Counter(r["rounds"] for r in paper) == {2: 18, 3: 5, 4: 1}
    assert all(r["accuracy"] == 1 for r in auto)
    assert sum(r["sound"] for r in auto) == 22
    assert len(small) == 36
    assert not any(r["sound"] for r in small)


def test_the_notes_on_trust_say_what_the_records_do():
    records = [record.values for record in read(RECORDS / "trust.jsonl")]
    notes = " ".join((RECORDS / "trust.notes.md").read_text().split())
    asked = [record for record in records if record["answerable"]]
    sound = [record for record in records if record["sound"]]
    fooled = [record for record in sound if record["falsely_confident"]]
    later = [record for record in sound if not record["column"].endswith("draw 1")]
    wrong = sum(record["falsely_confident"] for record in later)
    open_ones = [record["accuracy"] for record in asked if not record["sound"]]
    labels = 100 * fmean(record["accuracy"] for record in asked)
    covered = 100 * fmean(record["sound"] for record in asked)
    named = [record["row"] for record in records if record["named_seeds"]]
    seeds = [record for record in records if record["row"] == "wrong seeds"]
    purity = [100 * record["precision"] for record in fooled]
    lost = [100 * (1 - record["recall"]) for record in fooled]
    one_wrong = [record for record in seeds if "1 of 5" in record["column"]]
    people = [record for record in records if record["row"] == "real operators"]
    theirs, kept = (
        100 * fmean(record[name] or 0 for record in people) for name in ("precision", "recall")
    )
    found = sum(bool({*r["named_seeds"]} & {*r["wrong_seeds"]}) for r in one_wrong)
    for said in (
        f"Of {len(records)} questions {len(asked)} have an answer. Of those `auto` labels "
        f"{labels:.1f} % of the trajectories right in the mean, and calls {covered:.0f} % ",
        f"of the {len(sound)} sound answers {len(fooled)} are falsely confident "
        f"({100 * len(fooled) / len(sound):.1f} %), none of them in locomotion",
        f"Of the {len(open_ones)} answers to such questions that are not sound, "
        f"{sum(one >= 0.95 for one in open_ones)} are right about",
        f"{named.count('wrong seeds')} of the {len(seeds)} with wrong seeds name one",
        f"so do {len(named) - named.count('wrong seeds')} others, in which no seed is wrong",
        f"at least {min(purity):.0f} % of what each keeps is the expert's",
        f"each drops {min(lost):.0f} to {max(lost):.0f} % of the expert's",
        f"Of what is kept {theirs:.0f} % is the person's, of what is the person's {kept:.0f} %",
        f"named in {found} of {len(one_wrong)} runs",
        f"{wrong} of {len(later)} sound answers are falsely confident "
        f"({100 * wrong / len(later):.1f} %)",
    ):
        assert said in notes, said
    assert not any(record["sound"] for record in seeds)
    assert not any(r["wrong_seeds"] for r in records if r["row"] != "wrong seeds")
    assert not any(record["row"] == "locomotion" for record in fooled)
    assert all(record["answerable"] for record in fooled)
