"""A run that `pubc filter` really made ends with its report."""

import csv
import json

import pytest

import pubc
import tests.reliability.quick_recipe  # noqa: F401
from pubc.cli.main import main
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
    import shlex

    told = json.loads((made / "report.json").read_text())["run"]["command"]
    words = shlex.split(told)
    assert words[0] == "pubc"
    words[words.index("--out") + 1] = str(tmp_path / "again")
    assert main([*words[1:], "--json"]) == 0
    capsys.readouterr()
    for name in ("scores.csv", "keep.json", "rounds.jsonl"):
        assert (tmp_path / "again" / name).read_bytes() == (made / name).read_bytes(), name


def test_a_report_that_fails_costs_no_run(tmp_path, capsys, monkeypatch):
    def fail(path):
        raise RuntimeError("no ink")

    monkeypatch.setattr("pubc.report.draw_report", fail)
    pubc.save(tmp_path / "mixed.npz", pile([4, 4]))
    words = ["--seed-episodes", "0,1", "--recipe", "quick", "--out", str(tmp_path / "run")]
    assert main(["filter", str(tmp_path / "mixed.npz"), *words]) in (0, 6)
    assert "no ink" in capsys.readouterr().err
    assert verify(tmp_path / "run") == []
    assert not (tmp_path / "run" / "report.html").exists()
