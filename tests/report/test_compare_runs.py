"""Runs side by side: each chart has the cut of what it draws."""

import json
from pathlib import Path

from pubc.report.compare_runs import comparison, comparison_payload
from pubc.runs.folder.run_reading import read_run
from pubc.storage import seal, write_sealed
from tests.report.build import make_run


def test_the_cut_of_a_chart_is_that_of_its_round(tmp_path: Path):
    """A run that was decided by other evidence has a threshold on the scale of that."""
    paths = [make_run(tmp_path / name, 40, 2, random_seed=n) for n, name in enumerate("ab")]
    document = json.loads((paths[0] / "run.json").read_text())
    write_sealed(paths[0] / "run.json", {**document, "threshold": 0.111})
    seal(paths[0], kind="filter")
    runs = [read_run(path) for path in paths]
    drawn = comparison_payload(runs, comparison(runs))["runs"]
    assert drawn[0]["threshold"] == 0.111
    for one, run in zip(drawn, runs, strict=True):
        assert one["last"]["threshold"] == run.rounds[run.decisive].threshold
        centres = one["last"]["centres"]
        assert centres[0] < one["last"]["threshold"] < centres[-1]
