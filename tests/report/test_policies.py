"""Policies in the report: learning curves with bands, scores with intervals, pairs."""

import json
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from pubc.errors import DataError
from pubc.metrics import interval
from pubc.report import write_report
from pubc.report.policies import policies
from pubc.report.run_figures import write_figures
from pubc.results import Record, append
from pubc.storage import seal
from tests.cli.calling import run
from tests.report.browser import needs_browser
from tests.report.build import make_run
from tests.report.reading import Page


def make_policy(path, learner, random_seed, losses):
    path.mkdir(parents=True)
    config = {"learner": learner, "random_seed": random_seed, "data": {"name": "kept.npz"}}
    (path / "config.json").write_text(json.dumps(config))
    (path / "policy.safetensors").write_bytes(b"")
    lines = [{"epoch": e, "loss": v, "held_out": 2 * v} for e, v in enumerate(losses, 1)]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    seal(path, kind="policy")
    return path


def add_record(path, policy, returns, **more):
    low, high = interval(returns)
    cell = {"kind": "evaluate", "policy": policy, "environment": "ant", "random_seed": 0}
    cell |= {"episodes": len(returns), **more}
    earned = {"mean": float(np.mean(returns)), "std": float(np.std(returns, ddof=1))}
    values = {"return": earned | {"interval": [low, high]}, "score": float(np.mean(returns) / 5000)}
    append(path, Record(cell, values | {"returns": list(returns)}))


@pytest.fixture
def learned(tmp_path):
    rng = np.random.default_rng(2)
    places = []
    for learner, rate in (("bc", 0.4), ("dwbc", 0.25)):
        for seed in range(3):
            losses = 2 * np.exp(-rate * np.arange(30) / 3) + rng.uniform(0.1, 0.3)
            places.append(make_policy(tmp_path / f"{learner}-{seed}", learner, seed, losses))
    records = tmp_path / "results.jsonl"
    for name, mean in (("kept/bc", 4700), ("all/bc", 3100), ("kept/dwbc", 4400)):
        add_record(records, name, rng.normal(mean, 400, 100).tolist())
    return [*places, records]


def test_a_curve_is_the_mean_of_its_seeds_in_a_band_from_lowest_to_highest(tmp_path):
    losses = ([4.0, 2.0, 1.0], [5.0, 3.0], [9.0, 1.0, 2.0])
    folders = [make_policy(tmp_path / str(n), "bc", n, values) for n, values in enumerate(losses)]
    found = policies(folders, [])
    curve = next(c for c in found["curves"] if c["metric"] == "loss")
    assert curve["name"] == "bc on kept.npz"
    assert curve["seeds"] == 3
    assert curve["x"] == [1, 2, 3]
    assert curve["mean"] == [6.0, 2.0, 1.5]
    assert curve["low"] == [4.0, 1.0, 1.0]
    assert curve["high"] == [9.0, 3.0, 2.0]


def test_records_along_the_way_make_curves_of_scores(tmp_path):
    path = tmp_path / "results.jsonl"
    for seed in (0, 1):
        for updates in (1000, 2000):
            add_record(path, "bc", [updates + seed] * 3, updates=updates, random_seed=seed)
    found = policies([], [path])
    assert found["scores"] == []
    (curve,) = found["curves"]
    assert (curve["metric"], curve["seeds"], curve["x"]) == ("score", 2, [1000.0, 2000.0])
    assert curve["low"] == [0.2, 0.4]


def test_seeds_with_points_at_other_places_are_averaged_between_them(tmp_path):
    path = tmp_path / "results.jsonl"
    for seed, places in enumerate(((1000, 3000), (1000, 2000, 4000))):
        for updates in places:
            add_record(path, "bc", [updates * (seed + 1)] * 3, updates=updates, random_seed=seed)
    (curve,) = policies([], [path])["curves"]
    assert curve["x"] == [1000.0, 2000.0, 3000.0, 4000.0]
    assert curve["low"] == pytest.approx([0.2, 0.4, 0.6, 1.6])
    assert curve["high"] == pytest.approx([0.4, 0.8, 1.2, 1.6])


def test_pairs_are_compared_start_by_start(tmp_path):
    path = tmp_path / "results.jsonl"
    first, second = np.arange(10.0), np.arange(10.0) - 3
    add_record(path, "a", first.tolist())
    add_record(path, "b", second.tolist())
    add_record(path, "elsewhere", first.tolist(), environment="hopper")
    (pair,) = policies([], [path])["differences"]
    assert (pair["first"], pair["second"], pair["count"]) == ("a", "b", 10)
    assert pair["mean"] == pair["low"] == pair["high"] == 3.0


def test_learning_curves_are_drawn_for_papers_whatever_their_names(tmp_path):
    folders = [make_policy(tmp_path / "a", "_b$c^\x1b</text>", 0, [3.0, 2.0])]
    drawn = write_figures([], policies(folders, []), tmp_path / "figures")
    assert [path.name for path in drawn] == [
        "learning-loss.png",
        "learning-loss.svg",
        "learning-held-out.png",
        "learning-held-out.svg",
    ]
    words = "".join(ET.parse(drawn[1]).getroot().itertext())
    assert "_b$c^?</text> on kept.npz" in words


def test_metrics_that_are_none_are_refused_in_one_sentence(tmp_path):
    folder = make_policy(tmp_path / "bc", "bc", 0, [1.0])
    (folder / "metrics.jsonl").write_text("[1, 2]\n")
    with pytest.raises(DataError, match="one JSON object with an epoch per line"):
        policies([folder], [])


@pytest.mark.parametrize("name", ["metrics.jsonl", "config.json", "policy.safetensors"])
@pytest.mark.parametrize("figures", [False, True])
def test_a_policy_that_was_changed_is_not_drawn(name, figures, tmp_path, capsys):
    folder = make_policy(tmp_path / "bc", "bc", 0, [1.0, 0.5])
    words = ["report", folder, "--out", tmp_path / "page"]
    words += ["--figures", tmp_path / "figures"] if figures else []
    with (folder / name).open("a") as file:
        file.write("\n")
    code, _, err = run(capsys, *words)
    assert code == 3
    assert name in err
    assert "The policy was changed after it was written" in err
    assert not (tmp_path / "page").exists()
    assert not (tmp_path / "figures").exists()


def test_a_policy_without_a_manifest_is_not_drawn(tmp_path, capsys):
    folder = make_policy(tmp_path / "bc", "bc", 0, [1.0, 0.5])
    (folder / "manifest.json").unlink()
    code, _, err = run(capsys, "report", folder, "--out", tmp_path / "page")
    assert code == 3
    assert "manifest.json" in err


def test_every_score_on_the_page_is_the_records_own(tmp_path, learned):
    page = Page(write_report(learned, tmp_path / "out").read_text())
    shown = {key: value for key, value, _ in page.numbers}
    lines = [json.loads(line) for line in learned[-1].read_text().splitlines()]
    for index, line in enumerate(lines):
        assert shown[f"policies.{index}.mean"] == line["return"]["mean"]
        assert shown[f"policies.{index}.std"] == line["return"]["std"]
        assert shown[f"policies.{index}.low"] == line["return"]["interval"][0]
        assert shown[f"policies.{index}.high"] == line["return"]["interval"][1]
        assert shown[f"policies.{index}.score"] == line["score"]
        assert shown[f"policies.{index}.episodes"] == 100


@needs_browser
def test_curves_answer_the_pointer_with_mean_and_band(chromium, tmp_path, learned):
    run = make_run(tmp_path / "run")
    chromium.open(write_report([run, *learned]))
    assert chromium.run("document.querySelectorAll('[data-chart=learning] .band').length") == 2
    chromium.move("[data-chart=learning] .chart-hit", 0.001)
    first = chromium.run("data.policies.curves[0]")
    words = chromium.tip().split("\n")
    assert words[0] == "epoch 1"
    expected = [f"{first[part][0]:.3f}" for part in ("mean", "low", "high")]
    assert words[1] == "bc on kept.npz: {} ({} to {})".format(*expected)
    chromium.run("document.querySelectorAll('#metrics button')[1].click()")
    chromium.move("[data-chart=learning] .chart-hit", 0.002)
    assert chromium.tip() != "\n".join(words)
    chromium.move("[data-chart=scores] .hit")
    assert "kept/bc" in chromium.tip()
    assert chromium.complaints() == []
