"""What `pubc train` takes from a run besides what it kept: seeds that came from another file."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pubc
import tests.reliability.quick_recipe  # noqa: F401
from pubc.cli.main import main
from pubc.cli.policies import from_run
from pubc.cli.policies.from_run import read_lesson, read_weights
from pubc.formats import ReadOptions
from pubc.storage import seal, write_sealed
from pubc.trajectory import concatenate
from tests.pu.piles import pile

pytestmark = pytest.mark.usefixtures("in_folder")
TRAIN = ["--out", "p", "--epochs", "1", "--updates", "5", "--device", "cpu", "--json"]


@pytest.fixture
def run(in_folder: Path) -> Path:
    """A run whose three seeds came from another file; the second of them is in the data too."""
    mixed = pile([8, 8], steps=40, states=2)
    pubc.save("mixed.npz", mixed)
    others = pile([3], steps=50, states=2, random_seed=5)
    seeds = concatenate([others[:1], mixed[2:3], others[1:]])
    pubc.save("seeds.npz", replace(seeds, ids=np.array(["a", "b", "c", "d"])))
    words = ["filter", "mixed.npz", "--seed-from", "seeds.npz", "--recipe", "quick", "--workers"]
    assert main([*words, "1", "--out", "run", "--json"]) == 0
    return Path("run")


def trained(capsys, *words: str) -> dict:
    capsys.readouterr()
    assert main(["train", *words, *TRAIN]) == 0
    return json.loads(capsys.readouterr().out)


def test_seeds_of_another_file_are_cloned_too(run: Path, capsys):
    told = json.loads((run / "run.json").read_text())["seed"]
    assert told["positions"] == [2]
    assert told["outside"]["positions"] == [0, 2, 3]
    kept = len(pubc.load(run / "kept.npz"))
    document = trained(capsys, "run")
    assert (document["trajectories"], document["seeds"]) == (kept + 3, 3)
    config = json.loads(Path("p/config.json").read_text())
    assert (config["data"]["trajectories"], config["data"]["seeds"]) == (kept + 3, 3)


def test_they_are_left_out_where_asked_and_by_learners_that_choose_for_themselves(run, capsys):
    kept = len(pubc.load(run / "kept.npz"))
    for words in (["--no-seeds"], ["--algo", "50%bc", "--force"]):
        document = trained(capsys, "run", *words)
        assert document["trajectories"] == kept
        assert "seeds" not in document
    # A file inside the run is a dataset as any other.
    assert "seeds" not in trained(capsys, "run/kept.npz", "--force")


def test_they_weigh_one_where_steps_are_weighed(run: Path, capsys):
    lesson = read_lesson(Path("mixed.npz"), ReadOptions(), run)
    weights = read_weights(run, "soft", lesson)
    assert lesson.seeds is not None
    assert len(weights) == lesson.trajectories.steps == lesson.given.steps + lesson.seeds.steps
    assert (weights[-lesson.seeds.steps :] == 1).all()
    last = lesson.trajectories[-3:]
    assert np.array_equal(last.flat().actions, pubc.load("seeds.npz")[[0, 2, 3]].flat().actions)
    document = trained(capsys, "--weights", "run")
    assert document["trajectories"] == 16 + 3


def test_a_file_that_is_gone_or_holds_others_is_one_sentence(run: Path, capsys):
    whole = pubc.load("seeds.npz")
    Path("seeds.npz").rename("moved.npz")
    assert main(["train", "run", *TRAIN]) == 2
    assert "is gone. Put it back, or learn from what was kept alone with --no-seeds" in (
        capsys.readouterr().err
    )
    for others in (whole[[0, 1, 3, 2]], whole[:2]):
        pubc.save("seeds.npz", others, overwrite=True)
        assert main(["train", "run", *TRAIN]) == 3
        assert "seeds.npz: not the seeds that run was made with" in capsys.readouterr().err
    assert not Path("p").exists()


def test_nobody_copies_a_large_set_for_a_handful_of_seeds(run: Path, capsys, monkeypatch):
    monkeypatch.setattr(from_run, "_LARGE", 100)
    document = trained(capsys, "run")
    assert "seeds" not in document


def test_a_run_does_not_go_on_with_other_seeds(run: Path, capsys):
    (run / "manifest.json").rename(run / "coming.json")  # as a kill leaves it
    seeds = pubc.load("seeds.npz")
    pubc.save("seeds.npz", seeds[[0, 1, 2]], overwrite=True)
    assert main(["filter", "--resume", "run"]) == 2
    assert "changed since the run began" in capsys.readouterr().err


@pytest.mark.parametrize(
    "odd",
    [
        {"from": None}, {"from": ""}, {"outside": {}}, {"outside": {"positions": []}},
        {"outside": {"positions": [0, 2.0, 3]}}, {"outside": {"positions": [-1]}},
        {"outside": {"positions": [True]}}, {"outside": {"positions": [9]}},
        {"outside": {"positions": ["0"]}}, {"outside": None}, {"outside": [0]},
    ],
)  # fmt: skip
def test_odd_words_of_a_stranger_about_seeds_are_one_sentence(run: Path, capsys, odd: dict):
    document = json.loads((run / "run.json").read_text())
    document["seed"] |= odd
    write_sealed(run / "run.json", document)
    seal(run, kind="filter")
    assert main(["train", "run", *TRAIN]) in (2, 3)
    assert capsys.readouterr().err.count("\n") <= 2
    assert not Path("p").exists()
