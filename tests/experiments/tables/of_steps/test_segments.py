"""The table of segments through `pubc reproduce`, at a tiny scale, and the one of its filters."""

import json
from dataclasses import replace

import pytest

from pubc.experiments import get_table
from pubc.experiments.cell import SCALES
from pubc.experiments.tables.of_steps import segments, step_evidence
from tests.cli.calling import run

pytest.importorskip("mujoco")

COLUMNS = {"segments", "weights", "everything", "best 10 %", "expert steps", "clean steps"}


@pytest.fixture
def tiny(brisk, monkeypatch, tmp_path) -> None:
    small = replace(segments.QUICK, updates=5, evaluation_trajectories=1)
    for module in (segments, step_evidence):
        monkeypatch.setattr(module, "TABLE", replace(module.TABLE, quick=small))
    monkeypatch.chdir(tmp_path)


def reproduced(capsys, table: str, *words: object) -> list[dict]:
    asked = ("reproduce", table, "--quick", "--only", "Hopper", "--out", "made", *words)
    code, out, err = run(capsys, *asked, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)["results"]


@pytest.mark.usefixtures("tiny")
def test_every_column_has_a_return_and_the_steps_are_measured(capsys):
    found = {one["column"]: one for one in reproduced(capsys, "segments")}
    assert set(found) == COLUMNS
    for one in found.values():
        assert one["measure"] == "return"
        assert one["return"]["mean"] > 0
    learned = {column: one["learned_from"] for column, one in found.items()}
    assert learned["clean steps"]["steps"] == learned["segments"]["steps"]
    assert learned["expert steps"]["expert_share"] == 1.0
    assert learned["best 10 %"]["trajectories"] < learned["everything"]["trajectories"]
    # Lapses take about a third of the steps of every trajectory.
    assert 0.5 < learned["everything"]["expert_share"] < 0.85
    judged = found["segments"]
    # The seeds, which are learned from too, are the expert's from end to end.
    assert judged["precision"] < learned["segments"]["expert_share"] <= 1
    assert learned["weights"]["steps"] > learned["everything"]["steps"]
    assert 0.5 < judged["step_auc"] <= 1
    assert found["weights"]["step_auc"] == judged["step_auc"]
    assert "step_auc" not in found["everything"]

    # The filters of both tables are the same, so the second computes nothing.
    told = {one["column"]: one for one in reproduced(capsys, "steps")}
    assert told["step AUC"]["step_auc"] == judged["step_auc"]
    assert told["border"]["border"] == judged["border"]
    assert told["kept"]["seconds"] == judged["filter_seconds"]

    shown = run(capsys, "reproduce", "segments", "--quick", "--only", "Hopper", "--out", "made")
    percent = 100 * judged["return"]["mean"] / found["clean steps"]["return"]["mean"]
    assert f"{judged['return']['mean']:,.0f}, {percent:.0f} %" in shown[1]


def test_the_full_table_has_the_sizes_that_it_states():
    cells = get_table("segments").cells(SCALES["small"], 3, {})
    assert len(cells) == 3 * 6 * 3
    assert {one.learner.evaluation_trajectories for one in cells} == {50}
    assert {one.dataset.steps_per_source for one in cells} == {50_000}
    assert {one.learner.options["updates"] for one in cells} == {20_000}
    # As many clean steps as the pile has: segments never hold more.
    assert all(one.dataset.seed_steps >= one.dataset.steps_per_source for one in cells)


def test_whatever_learns_from_judged_steps_shares_one_filter():
    cells = get_table("segments").cells(SCALES["small"], 1, {})
    steps = get_table("steps").cells(SCALES["small"], 1, {})
    for row in ("Ant", "HalfCheetah", "Hopper"):
        parts = [one for one in cells if one.row == row and one.part is not None]
        assert len(parts) == 4
        assert {repr(one.filter) for one in parts} == {
            repr(one.filter) for one in steps if one.row == row
        }
