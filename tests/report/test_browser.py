"""The page in a real browser: it draws, sorts, filters, answers the pointer, and stays alone."""

import csv
import itertools
import json

import numpy as np
import pytest

from pubc.report import write_report
from pubc.report.summary import told
from pubc.storage import seal
from tests.report.browser import needs_browser
from tests.report.build import make_run, read_document
from tests.report.test_policies import add_record, make_policy

pytestmark = needs_browser

SHOWN = "[...document.querySelectorAll('.vrow')].map(r => [...r.children].map(c => c.textContent))"


@pytest.fixture(scope="module")
def rows(run):
    with (run / "scores.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_everything_is_drawn_without_a_complaint_or_a_request(chromium, run):
    chromium.open(run / "report.html")
    places = chromium.run("document.querySelectorAll('[data-chart]').length")
    drawn = chromium.run("document.querySelectorAll('[data-chart] svg').length")
    assert places == drawn >= 10
    assert chromium.complaints() == []
    assert chromium.requests() == [(run / "report.html").as_uri()]


def test_a_click_on_a_column_sorts_by_it_and_a_second_turns_it_round(chromium, run, rows):
    chromium.open(run / "report.html")
    by_return = sorted(rows, key=lambda row: -float(row["return"]))
    for expected in (by_return, by_return[::-1]):
        chromium.click("[data-column=return]")
        shown = [row[0] for row in chromium.run(SHOWN)]
        assert len(shown) >= 10
        assert shown == [row["episode"] for row in expected[: len(shown)]]
    chromium.click("[data-column=id]")
    natural = [f"demo_{i}" for i in range(len(shown))]
    assert [row[0] for row in chromium.run(SHOWN)][: len(natural)] == natural


def test_the_table_shows_what_the_scores_say_down_to_its_last_row(chromium, run, rows):
    chromium.open(run / "report.html")
    order = sorted(range(len(rows)), key=lambda i: -float(rows[i]["confidence"]))
    chromium.run("document.querySelector('.vbody').scrollTop = 1e9")
    chromium.wait("document.querySelector('.vrow:last-child').dataset.row == " + str(order[-1]))
    last = chromium.run(SHOWN)[-1]
    row = rows[order[-1]]
    assert last[:6] == [
        row["episode"],
        told(float(row["confidence"])),
        row["votes"],
        told(float(row["return"])),
        row["length"],
        "kept" if row["keep"] == "1" else "dropped",
    ]


def test_the_expert_comes_first_among_many_sources(chromium, tmp_path):
    count = itertools.count()
    many = make_run(
        tmp_path / "run", text=lambda word: f"{next(count):05d}" if word == "weak" else word
    )
    chromium.open(write_report([many]))
    legend = "document.querySelector('[data-chart=sources]').parentNode.querySelector('.legend')"
    assert chromium.run(f"{legend}.children[0].textContent") == "expert"
    assert chromium.run(f"{legend}.children[1].textContent") == "other"
    assert "others" in chromium.run(f"{legend}.children[6].textContent")
    chromium.click("[data-column=source]")
    assert {row[-1] for row in chromium.run(SHOWN)[:1]} == {"00000"}


def test_search_and_filters_leave_what_they_say(chromium, run, rows):
    chromium.open(run / "report.html")
    kept = sum(row["keep"] == "1" for row in rows)
    chromium.run(
        "[...document.querySelectorAll('.tools button')].find(b => b.textContent == 'Kept').click()"
    )
    assert chromium.run("document.getElementById('shown').textContent") == f"{kept} of 400"
    chromium.run(
        "(i => { i.value = 'DEMO_39'; i.dispatchEvent(new Event('input')); })"
        "(document.querySelector('.tools input'))"
    )
    matching = [r for r in rows if r["keep"] == "1" and "demo_39" in r["episode"]]
    assert {row[0] for row in chromium.run(SHOWN)} == {row["episode"] for row in matching}


def test_the_pointer_on_a_bar_names_its_numbers(chromium, run):
    chromium.open(run / "report.html")
    with np.load(run / "rounds/round-004.npz") as file:
        counts, selected = file["counts"], file["selected"]
    assert chromium.tip() == ""
    bar = int(np.argmax(counts))
    chromium.run(f"document.querySelectorAll('[data-chart=histogram] .hit')[{bar}].id = 'here'")
    chromium.move("#here")
    assert f"{int(counts[bar])} trajectories" in chromium.tip()
    total = chromium.run("data.run.rounds[3].kept_counts.reduce((a, b) => a + b)")
    assert total == selected.sum()


@pytest.mark.parametrize("name", ["kept", "changed", "ribbon", "loss", "roc"])
def test_every_line_answers_the_pointer(chromium, run, name):
    chromium.open(run / "report.html")
    chromium.move(f"[data-chart={name}] .chart-hit")
    assert any(character.isdigit() for character in chromium.tip())


def test_the_pointer_on_a_point_names_the_trajectory(chromium, run, rows):
    chromium.open(run / "report.html")
    chromium.run("document.querySelector('[data-chart=scatter] .seedmark').id = 'seed'")
    chromium.move("#seed")
    words = chromium.tip().split("\n")
    named = next(row for row in rows if row["episode"] == words[0].removesuffix(" (seed)"))
    assert words[1] == f"confidence {told(float(named['confidence']))}"
    assert words[2] == f"return {told(float(named['return']))}"


def test_borderline_trajectories_come_nearest_first_with_their_course(chromium, run, rows):
    chromium.open(run / "report.html")
    cut = read_document(run)["threshold"]
    unsure = [row for row in rows if row["borderline"] == "1"]
    unsure.sort(key=lambda row: abs(float(row["confidence"]) - cut))
    shown = chromium.run("[...document.querySelectorAll('.card b')].map(b => b.textContent)")
    assert shown == [row["episode"] for row in unsure[:12]]
    chromium.move(".card .spark", 0.005)
    assert chromium.tip().startswith("steps 1 to ")


def test_choosing_a_round_draws_that_round(chromium, run):
    chromium.open(run / "report.html")
    cut = "document.querySelector('[data-chart=histogram] text.strong').textContent"
    thresholds = [
        json.loads(line)["threshold"] for line in (run / "rounds.jsonl").read_text().splitlines()
    ]
    assert chromium.run(cut) == f"cut at {told(thresholds[-1])}"
    chromium.click("[data-round='1']")
    assert chromium.run(cut) == f"cut at {told(thresholds[0])}"


def test_the_round_that_holds_the_result_is_shown_first(chromium, tmp_path):
    path = make_run(tmp_path / "run", 60)
    (path / "run.json").write_text(json.dumps(read_document(path) | {"round": 2}))
    seal(path, kind="filter")
    chromium.open(write_report([path]))
    pressed = "document.querySelector('#rounds [aria-pressed=true]')"
    assert chromium.run(f"{pressed}.dataset.round") == "2"
    assert chromium.run(f"{pressed}.textContent").endswith(", the result")
    assert chromium.run("document.querySelector('.decisive td').textContent") == "2"


def test_numbers_read_alike_in_charts_and_in_text(chromium, run):
    chromium.open(run / "report.html")
    rng = np.random.default_rng(3)
    values = (rng.normal(size=600) * 10.0 ** rng.integers(-7, 9, 600)).tolist()
    values += [0.0, 1.0625, -1.0625, 0.00015, 0.03125, 2048.25, 999.995, 1e6, 123456.75, -0.5]
    shown = chromium.run(f"{json.dumps(values)}.map(told)")
    assert shown == [told(value) for value in values]


CONTRAST = """
(() => {
  const rgb = c => c.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255);
  const linear = v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = c => {
    const [r, g, b] = rgb(c).map(linear);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const under = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor;
      if (c !== 'rgba(0, 0, 0, 0)') return c;
    }
    return 'rgb(255, 255, 255)';
  };
  const all = 'h1, h1 b, h2, h3, p, li, td, th, .label, .value, .hint, a, button, pre, dd, ' +
    'strong, .tag, .vrow span, .legend span, .chart text';
  const faint = [];
  for (const e of document.querySelectorAll(all)) {
    if (!e.textContent.trim() || !e.getClientRects().length) continue;
    const style = getComputedStyle(e), ink = e instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(ink), light(under(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) faint.push([e.tagName, e.textContent, ink, under(e)]);
  }
  return faint;
})()
"""


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_in_light_and_dark(chromium, run, dark):
    chromium.open(run / "report.html", dark=dark)
    background = chromium.run("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(16, 19, 23)") is dark
    assert chromium.run(CONTRAST) == []


def test_the_button_turns_light_into_dark_and_back(chromium, run):
    chromium.open(run / "report.html")
    seen = []
    for _ in range(3):
        seen.append(chromium.run("getComputedStyle(document.body).backgroundColor"))
        chromium.click("#theme")
    assert seen[0] == seen[2] != seen[1]


@pytest.mark.parametrize("kind", ["run", "comparison", "policies"])
def test_four_hundred_pixels_are_enough(chromium, run, tmp_path, kind):
    page = run / "report.html"
    if kind == "comparison":
        others = [make_run(tmp_path / f"other-{n}", random_seed=n) for n in (1, 2)]
        page = write_report([run, *others], tmp_path / "all")
    if kind == "policies":
        records = tmp_path / "results.jsonl"
        for name in ("runs/with/a/rather/long/path/to/its/policy", "short"):
            add_record(records, name, [4000.0, 5000.0, 4500.0])
        page = write_report([make_policy(tmp_path / "bc", "bc", 0, [3.0, 2.0, 1.0]), records])
    chromium.open(page, width=400)
    assert chromium.run("document.documentElement.scrollWidth") == 400
    beyond = chromium.run(
        "[...document.querySelectorAll('h1, h2, p, li, .tile, .card, .chart svg, .vrow, pre')]"
        ".filter(e => e.getClientRects().length && (e.getBoundingClientRect().right > 400.5"
        " || e.getBoundingClientRect().left < -0.5)).map(e => e.tagName + e.className)"
    )
    assert beyond == []
    smallest = chromium.run(
        "Math.min(...[...document.querySelectorAll('body *')].filter(e => e.textContent.trim()"
        " && e.getClientRects().length).map(e => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert smallest >= 12


def test_paper_gets_ink_on_white_and_no_buttons(chromium, run):
    chromium.open(run / "report.html", dark=True)
    assert chromium.printed().startswith(b"%PDF")
    scheme = {"name": "prefers-color-scheme", "value": "dark"}
    chromium.send("Emulation.setEmulatedMedia", media="print", features=[scheme])
    try:
        assert (
            chromium.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        )
        assert chromium.run("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
        for selector in ("nav", ".tools", "#theme", "button.copy"):
            hidden = f"getComputedStyle(document.querySelector('{selector}')).display"
            assert chromium.run(hidden) == "none"
    finally:
        chromium.send("Emulation.setEmulatedMedia", media="")


def test_the_copy_button_takes_the_command(chromium, run):
    chromium.open(run / "report.html")
    chromium.click("#provenance button.copy")
    assert chromium.run("getSelection().toString()") == chromium.run(
        "document.getElementById('command').textContent"
    )


def test_two_runs_show_where_they_disagree(chromium, run, tmp_path):
    other = make_run(tmp_path / "other", random_seed=3)
    page = write_report([run, other], tmp_path / "both")
    chromium.open(page)
    kept = []
    for path in (run, other):
        with (path / "scores.csv").open(newline="") as file:
            kept.append({r["episode"]: r["keep"] for r in csv.DictReader(file)})
    differ = {name for name in kept[0] if kept[0][name] != kept[1][name]}
    assert differ
    assert {row[0] for row in chromium.run(SHOWN)} == differ
    assert chromium.complaints() == []
    assert len(chromium.requests()) == 1
    chromium.move("[data-chart=versus] .seedmark")
    assert chromium.tip().split("\n")[0] in differ


def test_one_hundred_thousand_trajectories_paint_at_once_and_scroll(chromium, tmp_path):
    page = write_report([make_run(tmp_path / "run", 100_000, 8)])
    chromium.open(page)
    assert 0 < chromium.first_paint() < 3
    chromium.run("document.querySelector('.vbody').scrollTop = 50000 * 34")
    chromium.wait("document.querySelectorAll('.vrow').length > 10", 2)
    assert chromium.run("document.querySelectorAll('.vrow').length") < 60
    spent = chromium.run(
        "(t => { document.querySelector('[data-column=return]').click();"
        " return performance.now() - t; })(performance.now())"
    )
    assert spent < 1500
    assert chromium.complaints() == []
