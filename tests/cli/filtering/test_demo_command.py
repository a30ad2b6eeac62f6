"""`pubc demo`: data that came with pubc, end to end."""

import json
from pathlib import Path

import numpy as np
import pytest

import pubc
import tests.reliability.quick_recipe  # noqa: F401
from pubc import formats
from pubc.cli.filtering.demo_command import _refuse_others, mixture
from pubc.cli.main import main
from pubc.errors import UsageError
from pubc.runs.filter_config import FilterConfig
from pubc.storage import successor
from tests.brisk import quickened
from tests.report.build import make_run


def test_the_demo_finds_one_expert_among_three_policies(tmp_path: Path, capsys):
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["status"] == "converged"
    assert document["truth_report"]["accuracy"] == 1.0
    kept = pubc.load(out / "run" / document["kept_path"])
    assert set(kept.sources.tolist()) == {"expert"}
    # It can be repeated in the same place, and speaks.
    with quickened():
        assert main(["demo", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "accuracy" in said
    assert "the expert's       20        0" in said
    assert str(out / "run" / "scores.csv") in said


@pytest.mark.parametrize("name", ["mixture.npz", "run"])
def test_the_demo_replaces_nothing_but_an_earlier_demo(name, tmp_path, capsys):
    theirs = tmp_path / name
    if name == "run":
        make_run(theirs, 12, 1)
    else:
        pubc.save(tmp_path / "own.npz", mixture()[:8])
        assert main(["convert", str(tmp_path / "own.npz"), str(theirs)]) == 0
    before = _content(tmp_path)
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert f"{name} is not of an earlier demo" in " ".join(capsys.readouterr().err.split())
    assert _content(tmp_path) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [("--recipe nonsense", "No recipe named 'nonsense'"), ("--workers -3", "Workers are at least")],
)
def test_what_cannot_be_is_refused_before_anything_is_written(words, told, tmp_path, capsys):
    out = tmp_path / "new"
    assert main(["demo", "--out", str(out), *words.split()]) == 2
    assert told in capsys.readouterr().err
    pubc.save(tmp_path / "d.npz", mixture()[:8])
    line = ["filter", str(tmp_path / "d.npz"), "--seed-episodes", "0", "--out", str(out)]
    assert main([*line, *words.split()]) == 2
    assert not out.exists()


def test_what_a_demo_killed_at_once_left_is_no_obstacle(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / ".lock").write_text('{"pid": 1}')
    (run / ".run.json.tmp-0bbfd16a-27330-4e7ff1f3").write_text("{")
    _refuse_others(tmp_path / "demo.npz", run, mixture(), FilterConfig())
    (run / ".env").write_text("SECRET=1")
    with pytest.raises(UsageError, match="not of an earlier demo"):
        _refuse_others(tmp_path / "demo.npz", run, mixture(), FilterConfig())


def test_a_run_that_is_to_take_the_place_of_the_demos_stays(tmp_path):
    coming = successor(tmp_path / "run")
    coming.mkdir()
    (coming / "run.json").write_text('{"kind": "filter"}')
    with pytest.raises(UsageError, match=r"\.run\.next is not of an earlier demo"):
        _refuse_others(tmp_path / "demo.npz", tmp_path / "run", mixture(), FilterConfig())


def test_a_run_that_says_too_little_is_not_an_earlier_demo(tmp_path, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"kind": "filter"}')
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "run is not of an earlier demo" in " ".join(capsys.readouterr().err.split())


def test_a_run_of_the_mixture_that_was_asked_for_otherwise_is_no_demo(tmp_path, capsys):
    data, run = tmp_path / "mixture.npz", tmp_path / "run"
    formats.save_sealed(data, mixture(), about={"demo": True})
    words = ["--seed-source", "expert", "--truth", "expert", "--recipe", "quick"]
    short = ["--seed-count", "6", "--workers", "1"]
    assert main(["filter", str(data), "--out", str(run), *words, *short, "--json"]) in (0, 6)
    before = _content(run)
    assert main(["demo", "--out", str(tmp_path)]) == 2
    assert "run is not of an earlier demo" in " ".join(capsys.readouterr().err.split())
    assert _content(run) == before


def _content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_returns_alone_cannot_do_it():
    mixed = mixture()
    returns = mixed.total_rewards()
    best = np.argsort(-returns)[:20]
    assert np.mean(mixed.sources[best] == "expert") < 0.9
