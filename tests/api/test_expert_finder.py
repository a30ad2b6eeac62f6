"""A finder is an estimator, and a run folder: the same thing seen twice."""

import copy
import json
import pickle

import numpy as np
import pytest

import pubc
from pubc.cli.main import main
from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.pu.recipes import Paper
from pubc.storage import hash_file, verify
from tests.pu.piles import pile

QUICK = {"ensemble.classifiers": 1, "ensemble.schedule.epochs": 3, "cut": 0.5, "loop.max_rounds": 2}
MIXED = pile([6, 6], steps=40)
NEW = pile([2, 2], steps=40, random_seed=5)
FEW = pytest.mark.filterwarnings("ignore:The seed trajectories have")
pytestmark = FEW


def quick(**more) -> pubc.ExpertFinder:
    return pubc.ExpertFinder(recipe="paper", settings=QUICK, workers=1, **more)


@pytest.fixture(scope="module")
def fitted():
    return quick().fit(MIXED, seeds=[0, 1])


def test_it_finds_what_find_expert_finds(fitted):
    recipe = fitted._recipe()
    found = pubc.find_expert(MIXED, [0, 1], recipe=recipe, workers=1)
    assert np.array_equal(fitted.mask_, found.mask)
    assert np.array_equal(fitted.confidence_, found.confidence)
    assert fitted.status_ == found.status
    assert fitted.sound_ is found.sound
    assert fitted.result_.threshold == 0.5


def test_new_data_is_rated_by_the_same_networks(fitted):
    scores = fitted.score_samples(NEW)
    assert scores.shape == (4,)
    assert np.array_equal(fitted.predict(NEW), scores >= 0.5)
    steps = fitted.score_steps(NEW)
    assert steps.shape == (NEW.steps,)
    means = np.add.reduceat(steps, NEW.offsets[:-1]) / NEW.lengths
    assert np.allclose(means, scores, atol=1e-6)


def test_every_step_has_a_chance_and_a_sampler_draws_by_it(fitted):
    steps = fitted.steps_
    assert steps.shape == (MIXED.steps,)
    assert ((steps >= 0) & (steps <= 1)).all()
    drawn = list(fitted.sampler(500))
    assert len(drawn) == 500
    assert steps[drawn].mean() > steps.mean()
    assert len(fitted.sampler()) == round(float(steps.sum()))


def test_a_saved_finder_is_the_folder_of_a_run(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    assert not verify(tmp_path / "run")
    loaded = pubc.ExpertFinder.load(tmp_path / "run")
    assert np.array_equal(loaded.mask_, fitted.mask_)
    assert np.array_equal(loaded.confidence_, fitted.confidence_)
    assert (loaded.status_, loaded.sound_) == (fitted.status_, fitted.sound_)
    assert np.array_equal(loaded.score_samples(NEW), fitted.score_samples(NEW))
    assert np.array_equal(loaded.steps_, fitted.steps_)
    assert np.array_equal(loaded.result_.quality.borderline, fitted.result_.quality.borderline)
    assert len(loaded.result_.rounds) == len(fitted.result_.rounds)
    assert loaded.recipe == fitted._recipe()
    kept = pubc.load(tmp_path / "run" / "kept.npz")
    assert np.array_equal(kept.flat().actions, MIXED[fitted.mask_].flat().actions)
    again = tmp_path / "again"
    loaded.save(again)
    names = [path.relative_to(again) for path in again.rglob("*") if path.is_file()]
    for name in names:
        assert hash_file(again / name) == hash_file(tmp_path / "run" / name)


def test_commands_take_a_saved_finder(fitted, tmp_path, capsys):
    fitted.save(tmp_path / "run")
    pubc.save(tmp_path / "new.npz", NEW)
    assert main(["report", str(tmp_path / "run"), "--json"]) == 0
    words = ["score", str(tmp_path / "new.npz"), "--filter", str(tmp_path / "run"), "--json"]
    capsys.readouterr()
    assert main(words) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["confidence"] == fitted.score_samples(NEW).tolist()
    document = json.loads((tmp_path / "run" / "run.json").read_text())
    assert document["data"]["path"] is None
    assert document["seed"]["ids"] == ["0", "1"]
    assert "ExpertFinder" in (tmp_path / "run" / "report.md").read_text()


def test_what_the_command_writes_is_a_finder(tmp_path):
    data, run = tmp_path / "mixed.npz", tmp_path / "run"
    pubc.save(data, MIXED)
    words = ["--recipe", "paper", "--classifiers", "1", "--max-rounds", "1", "--workers", "1"]
    words += ["--seed-episodes", "0,1", "--bad-episodes", "8", "--per-step", "--json"]
    assert main(["filter", str(data), "--out", str(run), *words]) == 0
    finder = pubc.ExpertFinder.load(run)
    document = json.loads((run / "run.json").read_text())
    assert int(finder.mask_.sum()) == document["kept"]
    assert finder.recipe == Paper(ensemble=finder.recipe.ensemble, loop=finder.recipe.loop)
    assert finder.recipe.ensemble.classifiers == 1
    per_step = np.load(run / "steps.npy", allow_pickle=False)
    assert np.allclose(per_step, finder.score_steps(pubc.load(data)), atol=1e-6)
    assert finder.steps_.shape == per_step.shape
    assert document["bad"]["ids"] == ["8"]
    assert any(problem.code == "bad_ignored" for problem in finder.result_.problems)


def test_a_folder_that_is_taken_is_not_replaced_unasked(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    with pytest.raises(UsageError, match="holds a run already"):
        fitted.save(tmp_path / "run")
    fitted.save(tmp_path / "run", overwrite=True)
    assert not verify(tmp_path / "run")


def test_a_network_that_was_changed_is_not_loaded(fitted, tmp_path):
    fitted.save(tmp_path / "run")
    network = next((tmp_path / "run" / "classifiers").iterdir())
    network.write_bytes(network.read_bytes() + b" ")
    with pytest.raises(DataError, match="is not as `pubc filter` wrote it"):
        pubc.ExpertFinder.load(tmp_path / "run")


def test_seeds_are_named_in_four_ways():
    def masks():
        mask = np.zeros(len(MIXED), dtype=bool)
        mask[[0, 1]] = True
        for seeds in (["0", "1"], [0, 1], mask, MIXED[[0, 1]]):
            yield quick().fit(MIXED, seeds=seeds).confidence_

    first, *others = masks()
    assert all(np.array_equal(first, other) for other in others)


def test_fits_that_mean_nothing_are_refused():
    with pytest.raises(UsageError, match="Pass seeds"):
        quick().fit(MIXED)
    with pytest.raises(UsageError, match=r"takes a TrajectorySet\. Got ndarray"):
        quick().fit(np.zeros((3, 2)), seeds=[0])
    with pytest.raises(UsageError, match="Got integers and numbers"):
        quick().fit(MIXED, seeds=[1.5, 8])
    with pytest.raises(UsageError, match="not fitted yet"):
        quick().predict(NEW)
    with pytest.raises(UnknownNameError, match="No recipe named 'best'"):
        pubc.ExpertFinder(recipe="best").fit(MIXED, seeds=[0])
    assert not hasattr(quick(), "mask_")
    assert not hasattr(quick(), "steps_")


def test_the_bad_reach_the_recipe():
    seen = []

    class Watching(Paper):
        uses_known_bad = True

        def rounds(self, pile, key):
            seen.append(pile.known_bad)
            return super().rounds(pile, key)

    from pubc.pu.recipes import with_settings

    recipe = with_settings(Watching(), QUICK)
    pubc.find_expert(MIXED, [0, 1], bad=["8"], recipe=recipe, workers=1)
    assert np.flatnonzero(seen[0]).tolist() == [8]
    with pytest.warns(UserWarning, match="recipe paper does not look at them"):
        quick().fit(MIXED, seeds=[0, 1], bad=[8])


def test_data_of_another_robot_is_refused(fitted):
    with pytest.raises(DataError, match="observation size 4, this data has 5"):
        fitted.predict(pile([2], steps=10, states=5))


def test_parameters_are_as_scikit_learn_wants_them():
    finder = quick(random_seed=3)
    assert set(finder.get_params()) == {"recipe", "settings", "random_seed", "device", "workers"}
    assert finder.set_params(random_seed=4) is finder
    assert finder.random_seed == 4
    with pytest.raises(UnknownNameError, match="No parameter of ExpertFinder named 'seed'"):
        finder.set_params(seed=1)
    assert repr(pubc.ExpertFinder(random_seed=4)) == "ExpertFinder(random_seed=4)"
    twin = type(finder)(**finder.get_params())
    assert twin.get_params() == finder.get_params()


def test_scikit_learn_clones_it(fitted):
    base = pytest.importorskip("sklearn.base")
    validation = pytest.importorskip("sklearn.utils.validation")
    twin = base.clone(fitted)
    assert twin.get_params() == fitted.get_params()
    assert not hasattr(twin, "mask_")
    validation.check_is_fitted(fitted)


def test_fitting_again_forgets_the_first_fit():
    finder = quick().fit(MIXED, seeds=[0, 1])
    first = finder.confidence_
    finder.fit(MIXED[6:], seeds=[0, 1])
    assert finder.confidence_.shape == (6,)
    assert np.array_equal(finder.fit(MIXED, seeds=[0, 1]).confidence_, first)


def test_copies_share_their_networks_and_pickles_point_to_save(fitted):
    finder = quick().fit(MIXED, seeds=[0, 1])
    twin = copy.deepcopy(finder)
    del finder
    assert twin.score_samples(NEW).shape == (4,)
    with pytest.raises(TypeError, match=r"finder\.save"):
        pickle.dumps(twin)
    assert pickle.loads(pickle.dumps(quick())).get_params() == quick().get_params()


def test_networks_go_when_the_finder_goes():
    finder = quick().fit(MIXED, seeds=[0, 1])
    place = finder._home.place.path
    assert place.exists()
    del finder
    assert not place.exists()
