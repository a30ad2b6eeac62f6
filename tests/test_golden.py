"""Tiny runs whose outcome is written down: what a change of code must not change.

`benchmarks/golden.py` compares versions byte by byte on one machine. The last bits of networks
depend on the processor, so here decisions are compared exactly and confidences roughly. Whoever
changes a recipe on purpose writes its new outcome here, in the same commit.
"""

import numpy as np
import pytest

import pubc
from pubc.pu.judge import Bench
from pubc.pu.recipes import Recipe, get_recipe, with_settings
from pubc.runs.find_expert import prepare
from pubc.streams import Key
from pubc.trajectory import TrajectorySet

SEEDS = [0, 1, 2]
SETTINGS = {
    "paper": {
        "ensemble.classifiers": 1,
        "ensemble.schedule.epochs": 12,
        "ensemble.schedule.batch": 128,
    },
    "auto": {},
}
QUICK = {
    "paper": {**SETTINGS["paper"], "ensemble.schedule.epochs": 2, "loop.max_rounds": 2},
    "auto": {},
}
"""For tests that compare runs with one another, however well they judge."""
GOLDEN = {
    "paper": {
        "kept_by_round": [8, 8],
        "threshold": 0.901,
        "expert": 0.953,
        "others": 0.122,
        "within": 0.03,
    },
    "auto": {
        "kept_by_round": [8, 8],
        "threshold": 0.121,
        "expert": 2.723,
        "others": -2.491,
        "within": 0.2,
    },
}


def tiny() -> TrajectorySet:
    """Eight trajectories each of two linear policies; the expert's come first."""
    rng = np.random.default_rng(7)
    policies = rng.normal(size=(2, 3, 2))
    states = rng.normal(size=(16, 120, 3))
    actions = np.tanh(np.einsum("nts,nsa->nta", states, policies[np.arange(16) // 8]))
    return pubc.from_arrays(states.astype(np.float32), actions.astype(np.float32))


def recipe(name: str, settings: dict = SETTINGS) -> Recipe:
    return with_settings(get_recipe(name), settings[name])


@pytest.mark.parametrize("name", GOLDEN)
def test_a_tiny_run_comes_out_as_it_did(name: str):
    found, golden = pubc.find_expert(tiny(), SEEDS, recipe=recipe(name)), GOLDEN[name]
    assert found.status == "converged"
    assert np.flatnonzero(found.mask).tolist() == list(range(8))
    assert [done.kept for done in found.rounds] == golden["kept_by_round"]
    assert found.threshold == pytest.approx(golden["threshold"], abs=2 * golden["within"])
    assert found.confidence[:8].mean() == pytest.approx(golden["expert"], abs=golden["within"])
    assert found.confidence[8:].mean() == pytest.approx(golden["others"], abs=golden["within"])


def test_a_file_of_another_format_gives_the_same_bits(tmp_path):
    pubc.save(tmp_path / "tiny.hdf5", tiny(), format="robomimic")
    read = pubc.load(tmp_path / "tiny.hdf5")
    quick = recipe("paper", QUICK)
    one, other = (pubc.find_expert(data, SEEDS, recipe=quick) for data in (tiny(), read))
    assert np.array_equal(one.confidence, other.confidence)


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("name", GOLDEN)
def test_rounds_that_were_done_are_the_same_without_being_done_again(name: str, tmp_path):
    ready = prepare(tiny(), tiny()[SEEDS])
    shelf, chosen = tmp_path / "shelf", recipe(name, QUICK)
    whole = list(chosen.rounds(ready.pile(Bench(shelf=shelf)), Key(0)))
    assert len(whole) > 1
    rest = chosen.rounds(ready.pile(Bench(shelf=shelf), whole[:1]), Key(0))
    for before, now in zip(whole, rest, strict=True):
        assert np.array_equal(before.verdict.confidence, now.verdict.confidence, equal_nan=True)
        assert np.array_equal(before.selected, now.selected)
        assert (before.number, before.status, before.changed, before.threshold) == (
            now.number,
            now.status,
            now.changed,
            now.threshold,
        )
