"""A stage computes what its version number promises, and records of before are found."""

import json
from pathlib import Path

import pytest

from pubc.experiments.stage_versions import NUMBERS, versions
from tests.experiments import golden

KEPT = json.loads(golden.FILE.read_text())


@pytest.mark.parametrize("stage", golden.STAGES)
def test_a_stage_computes_what_its_number_promises(stage: str):
    told = KEPT[stage]
    assert golden.compute(stage) == told["results"], (
        f"The results of the stage {stage!r} changed. If they should: raise its number in "
        "src/pubc/experiments/stage_versions.py, then python -m tests.experiments.golden."
    )
    assert told["number"] == NUMBERS[stage], "python -m tests.experiments.golden writes it anew"


def test_records_from_before_there_were_numbers_are_those_of_version_one():
    root = Path(__file__).parents[2]
    head = json.loads((root / "docs" / "records" / "policy-scores.json").read_text())
    assert NUMBERS["dataset"] == 1
    assert versions().dataset == head["code"]["dataset"]


def test_another_number_is_another_version(monkeypatch):
    before = versions()
    raised = {**NUMBERS, "filter": NUMBERS["filter"] + 1}
    monkeypatch.setattr("pubc.experiments.stage_versions.NUMBERS", raised)
    assert versions().filter == str(raised["filter"]) != before.filter
    assert versions().dataset == before.dataset
