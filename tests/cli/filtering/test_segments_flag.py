"""`pubc filter --segments`: the good parts of trajectories, from the command line."""

import json

import numpy as np
import pytest

import pubc
import tests.reliability.quick_recipe  # noqa: F401
from pubc.cli.main import main
from tests.pu.steps.lapsing import lapsing

QUICK = ["--recipe", "quick", "--workers", "1"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    pile, own = lapsing(14, clean=4)
    path = tmp_path_factory.mktemp("data") / "pile.npz"
    pubc.save(path, pile)
    return path, pile, own


def run(path, out, *more: str) -> int:
    words = ["filter", str(path), "--out", str(out), "--seed-episodes", "0,1,2,3", *QUICK]
    return main([*words, "--json", *more])


def test_kept_consists_of_segments_that_are_the_experts(data, tmp_path, capsys):
    path, pile, own = data
    assert run(path, tmp_path / "run", "--segments", "--min-segment", "8") == 0
    document = json.loads(capsys.readouterr().out)
    kept = pubc.load(tmp_path / "run" / "kept.npz")
    assert len(kept) == document["kept_segments"]
    assert kept.steps == document["kept_steps"]
    assert kept.lengths.min() >= 8
    flat = kept.flat()
    rows = flat.extras["source_trajectory"] * 80 + flat.extras["source_step"]
    assert np.array_equal(flat.observations, pile.flat().observations[rows])
    assert own[rows].mean() > 0.95
    assert own[rows].sum() > 0.6 * own.sum()


def test_segments_that_are_too_short_everywhere_end_in_one_sentence(data, tmp_path, capsys):
    path, _, _ = data
    assert run(path, tmp_path / "run", "--segments", "--min-segment", "500") == 0
    told = capsys.readouterr()
    assert "no segment of the expert has 500 steps (the longest has" in told.err
    document = json.loads(told.out)
    assert document["kept_path"] is None
    assert document["kept_segments"] == 0


def test_a_length_that_means_nothing_is_refused_before_any_work(data, tmp_path, capsys):
    path, _, _ = data
    assert run(path, tmp_path / "run", "--segments", "--min-segment", "0") == 2
    assert "--min-segment must be at least 1 step. Got 0." in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
