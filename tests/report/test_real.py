"""A run that `pubc filter` really made ends with its report."""

import csv
import dataclasses
import json
import shlex
from types import SimpleNamespace

import numpy as np
import pytest

import pubc
import tests.reliability.quick_recipe  # noqa: F401
from pubc.cli.filtering.filter_command import Filter
from pubc.cli.main import main
from pubc.cli.parsing import parse
from pubc.labels import Labels, Mark, save_labels
from pubc.report.sentences import asked, command
from pubc.runs.filter_config import FilterConfig
from pubc.runs.plan_run import plan
from pubc.storage import verify
from tests.brisk import quickened
from tests.pu.piles import pile
from tests.report.build import read_document
from tests.report.reading import Page, unpack


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("real")
    pubc.save(folder / "mixed.npz", pile([8, 8], steps=200, states=3))
    words = ["--seed-episodes", "0,1,2", "--truth", "0", "--random-seed", "3", "--json"]
    out = folder / "run"
    with quickened():
        assert main(["filter", str(folder / "mixed.npz"), "--out", str(out), *words]) == 0
    return out


def test_a_filter_run_ends_with_a_sealed_report_of_itself(made):
    assert verify(made) == []
    document, page = read_document(made), Page((made / "report.html").read_text())
    shown = {key: value for key, value, _ in page.numbers}
    for name in ("kept", "threshold", "rounds", "random_seed", "status"):
        assert shown[f"run.{name}"] == document[name]
    for name, value in document["quality"].items():
        if name not in ("held_out_seeds",):
            assert shown[f"run.quality.{name}"] == value
    assert shown["run.second_opinion.agreement"] == document["second_opinion"]["agreement"]
    assert shown["run.controls.start"] == document["controls"]["start"]
    assert "Expected wrong" not in (made / "report.html").read_text()
    with (made / "scores.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    confidence = unpack(page.data["run"]["confidence"]).tolist()
    assert confidence == [float(row["confidence"]) for row in rows]
    last = page.data["run"]["rounds"][page.data["run"]["decisive"]]
    assert last["kept"] == document["kept"]


def test_the_report_of_a_real_run_draws_without_a_complaint(made, chromium):
    chromium.open(made / "report.html")
    assert chromium.complaints() == []
    assert len(chromium.requests()) == 1
    assert chromium.run("document.querySelectorAll('[data-chart=histogram] .kept').length") > 0


@pytest.mark.usefixtures("brisk")
def test_the_command_in_the_report_makes_the_same_run_again(made, tmp_path, capsys):
    told = json.loads((made / "report.json").read_text())["run"]["command"]
    words = shlex.split(told)
    assert words[0] == "pubc"
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert main([*words[1:], "--json"]) == 0
    capsys.readouterr()
    for name in ("scores.csv", "keep.json", "rounds.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (made / name).read_bytes(), name


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"labels": True, "unsure": "keep"}, "what is marked good in "),
        ({"seed_steps_column": "mine", "segments": True, "drop_idle": True}, "'mine' marks (none"),
        ({"seed_episodes": "0", "segments": True, "min_segment": 4, "segment_margin": 0}, "(1 in"),
        ({"seed_source": "0", "mask": True, "per_step": True, "truth": "0"}, "(2 in the dataset)"),
    ],
)
def test_the_command_in_the_report_asks_for_all_that_was_asked(given, words, tmp_path):
    mixed = pile([8, 8])
    half = (np.arange(mixed.steps) % 20 < 10).astype(np.float32)
    columns = dataclasses.replace(mixed.columns, extras={"mine": half})
    data = tmp_path / "pile.hdf5"
    pubc.save(data, dataclasses.replace(mixed, columns=columns), format="robomimic")
    save_labels(tmp_path / "labels.json", Labels((Mark("0", "good"), Mark("9", "bad"))))
    if "labels" in given:
        given = {**given, "labels": tmp_path / "labels.json"}
    config = FilterConfig(**given)
    document = plan(config, data).document
    run = SimpleNamespace(document=document, place=tmp_path / "run")
    told = parse(Filter, "filter", shlex.split(command(run))[2:])
    assert told == Filter(data, out=tmp_path / "run", config=config)
    assert words in asked(document)


def test_a_report_that_fails_costs_no_run(tmp_path, capsys, monkeypatch):
    def fail(run, place):
        (place / "report.html").write_text("half")
        raise RuntimeError("no ink")

    monkeypatch.setattr("pubc.report.draw_report", fail)
    pubc.save(tmp_path / "mixed.npz", pile([4, 4]))
    words = ["--seed-episodes", "0,1", "--recipe", "quick", "--out", str(tmp_path / "run")]
    assert main(["filter", str(tmp_path / "mixed.npz"), *words]) in (0, 6)
    assert "no ink" in capsys.readouterr().err
    assert verify(tmp_path / "run") == []
    assert not (tmp_path / "run" / "report.html").exists()
