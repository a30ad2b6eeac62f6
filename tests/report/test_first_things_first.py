"""What reports open on, in which words, and whether a phone can show them (E7)."""

import json

import numpy as np
import pytest

from pubc.cli.policies.comparison_plot import picture
from pubc.report import write_report
from pubc.report.payload import bars
from pubc.report.policies import policies
from pubc.runs.folder.run_reading import read_run
from pubc.storage import seal
from tests.report.browser import needs_browser
from tests.report.build import make_run
from tests.report.test_policies import add_record, make_policy


def test_e7_a_curve_that_is_a_density_is_drawn_at_the_height_of_the_bars(tmp_path):
    from dataclasses import replace

    done = read_run(make_run(tmp_path / "run", count=200)).rounds[-1]
    low = replace(done.cut, curve=np.clip(done.cut.curve, 0, None) / 2000)
    flat = replace(done, cut=low)
    drawn = bars(flat)
    assert sum(drawn["curve"]) == pytest.approx(sum(drawn["counts"]))
    assert bars(done)["curve"] == pytest.approx(done.cut.curve.tolist())  # a fit to counts stays


def test_e7_the_page_of_a_run_speaks_no_jargon(tmp_path):
    run = make_run(tmp_path / "run", count=60)
    page = write_report([run]).read_text()
    for words in ("report of the training", "attempt 1", ", attempt"):
        assert words not in page


def test_e7_how_a_cut_was_found_is_said_in_words():
    from pubc.pu.auto.ratio_cut import RatioCut

    rng = np.random.default_rng(0)
    apart = np.concatenate([rng.normal(-3, 0.5, 60), rng.normal(3, 0.5, 40)])
    one_group = rng.normal(0, 1, 100)
    for scores, words in ((apart, "Cut in a valley"), (one_group, "There is no valley")):
        above = scores > 0
        _, _, how = RatioCut()._place(scores, scores[above][:3], above, ~above)
        assert how.startswith(words)
        assert not any(character.isdigit() for character in how)


def test_e7_policies_open_on_what_they_earn(tmp_path):
    folder = make_policy(tmp_path / "policy", "bc", 0, [1.0, 0.5])
    add_record(tmp_path / "r.jsonl", "bc", [900.0, 910.0], updates=100)
    add_record(tmp_path / "r.jsonl", "bc", [950.0, 960.0])
    told = policies([folder], [tmp_path / "r.jsonl"])
    assert told["metrics"][0] in ("score", "return")
    assert "loss" in told["metrics"][1:]
    page = write_report([folder, tmp_path / "r.jsonl"], tmp_path / "page").read_text()
    assert page.index('data-chart="scores"') < page.index('data-chart="learning"')


@pytest.mark.parametrize("count", [2, 3, 6])
@pytest.mark.parametrize("environment", ["ant", "trifinger-push", "InvertedDoublePendulum-v5"])
def test_e7_the_title_of_a_comparison_is_not_cut(count, environment):
    earned = {"returns": [1.0, 2.0], "return": {"mean": 1.5, "interval": [1.0, 2.0]}}
    figure = picture([{"policy": f"p{n}", **earned} for n in range(count)], environment)
    figure.canvas.draw()
    box = figure.axes[0].title.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
    assert box.y1 <= figure.bbox.height


@pytest.fixture
def side_by_side(tmp_path):
    runs = [make_run(tmp_path / name, count=60, random_seed=n) for n, name in enumerate("ab")]
    path = runs[1] / "run.json"
    document = json.loads(path.read_text())
    document["data"]["fingerprint"] = "9c" * 32
    document["data"]["path"] = "/a/folder/deep/below/the/root/of/some/disk/mixed-other.npz"
    path.write_text(json.dumps(document))
    seal(runs[1], kind="filter")
    return write_report(runs, tmp_path / "both")


@needs_browser
def test_e7_two_reports_fit_side_by_side_and_fingerprints_are_short(chromium, side_by_side):
    chromium.open(side_by_side, width=1000)
    cells = chromium.run("[...document.querySelectorAll('#settings td')].map(c => c.textContent)")
    assert max(map(len, cells)) <= 40
    assert any(cell == "9c9c9c9c9c9c…" for cell in cells)
    titles = chromium.run("[...document.querySelectorAll('#settings td[title]')].map(c => c.title)")
    assert "9c" * 32 in titles
    fits = "[...document.querySelectorAll('.scroll')].every(s => s.scrollWidth <= s.clientWidth)"
    assert chromium.run(fits)


@needs_browser
def test_e7_a_phone_shows_the_page_and_that_wide_tables_go_on(chromium, run, side_by_side):
    for page in (run / "report.html", side_by_side):
        chromium.open(page, width=400)
        assert chromium.run("document.documentElement.scrollWidth") <= 400
        places = "[...document.querySelectorAll('nav a')].map(a => a.getBoundingClientRect().right)"
        assert max(chromium.run(places)) <= 400
    signs = "getComputedStyle(document.querySelector('.scroll')).backgroundImage"
    assert chromium.run(signs).count("linear-gradient") == 4


@pytest.mark.parametrize("name", ["npz", "lerobot"])
def test_w8_the_report_prints_no_lerobot_line_that_fails(tmp_path, name):
    from pubc.report.sentences import next_commands

    path = make_run(tmp_path / "run", count=60)
    document = json.loads((path / "run.json").read_text())
    document["data"]["format"] = name
    document |= {"kept_path": f"kept.{name}", "to": None}
    (path / "run.json").write_text(json.dumps(document))
    seal(path, kind="filter")
    told = dict(next_commands(read_run(path)))["LeRobot"]
    if name == "npz":  # states alone, which lerobot's policies do not take
        assert "lerobot-train" not in told
    else:
        assert "--policy.type=act" in told
        assert f"--dataset.root={path / 'kept.lerobot'}" in told
        assert "--dataset.episodes" not in told
