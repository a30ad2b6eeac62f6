"""`pubc demo`: data that came with pubc, end to end."""

import json
from pathlib import Path

import numpy as np

import pubc
from pubc.cli.filtering.demo_command import mixture
from pubc.cli.main import main
from tests.brisk import quickened


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


def test_returns_alone_cannot_do_it():
    mixed = mixture()
    returns = mixed.total_rewards()
    best = np.argsort(-returns)[:20]
    assert np.mean(mixed.sources[best] == "expert") < 0.9
