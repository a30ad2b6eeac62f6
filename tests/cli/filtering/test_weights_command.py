"""`pubc weights` and `pubc train --weights`: judged steps in the hands of trainers."""

import json

import h5py
import numpy as np
import pytest

import pubc
import tests.reliability.quick_recipe  # noqa: F401
from pubc.cli.main import main
from pubc.formats.parquet.parquet_read import arrow
from pubc.storage import verify
from tests.pu.steps.lapsing import lapsing

QUICK = ["--recipe", "quick", "--workers", "1"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A run over the same data in several formats."""
    place = tmp_path_factory.mktemp("runs")
    pile, own = lapsing(12, clean=4)
    for name, path in (("npz", "a.npz"), ("lerobot", "b"), ("robomimic", "c.hdf5")):
        pubc.save(place / path, pile, format=name)
        words = ["filter", str(place / path), "--out", str(place / name), *QUICK, "--json"]
        assert main([*words, "--seed-episodes", "0,1,2,3"]) == 0
    return place, pile, own


def told(capsys) -> dict:
    return json.loads(capsys.readouterr().out)


def test_torch_gets_a_flat_array(runs, tmp_path, capsys):
    place, pile, own = runs
    capsys.readouterr()
    out = tmp_path / "w.npy"
    assert main(["weights", str(place / "npz"), "--for", "torch", "--out", str(out), "--json"]) == 0
    weights = np.load(out, allow_pickle=False)
    assert weights.shape == (pile.steps,)
    assert weights[own].mean() > weights[~own].mean() + 0.3
    assert str(out) in told(capsys)["next"]
    assert main(["weights", str(place / "npz"), "--for", "torch", "--out", str(out)]) == 2
    again = ["--weighting", "hard", "--force", "--json"]
    assert main(["weights", str(place / "npz"), "--for", "torch", "--out", str(out), *again]) == 0
    assert set(np.unique(np.load(out, allow_pickle=False))) == {0.0, 1.0}


def test_lerobot_gets_its_table_and_the_line_to_type(runs, tmp_path, capsys):
    place, pile, _ = runs
    capsys.readouterr()
    out = tmp_path / "t.parquet"
    words = ["--for", "lerobot", "--out", str(out), "--chunk", "8", "--json"]
    assert main(["weights", str(place / "lerobot"), *words]) == 0
    line = told(capsys)["next"]
    assert line.startswith("lerobot-train --policy.type=smolvla --policy.push_to_hub=false")
    assert f"--sample_weighting.progress_path={out}" in line
    table = arrow().parquet.read_table(out)
    assert table.num_rows == pile.steps
    assert {"index", "episode_index", "progress_sparse"} <= set(table.column_names)
    assert table.column("episode_index").to_pylist()[-1] == 11


def test_d3rlpy_gets_segments(runs, tmp_path, capsys):
    place, _, _ = runs
    capsys.readouterr()
    out = tmp_path / "s.h5"
    words = ["--for", "d3rlpy", "--out", str(out), "--json"]
    assert main(["weights", str(place / "npz"), *words]) == 0
    made = pubc.load(out)
    assert len(made) == told(capsys)["segments"]
    assert "source_step" in made.columns.extras
    short = ["--for", "d3rlpy", "--out", str(tmp_path / "n.h5"), "--min-segment", "900"]
    assert main(["weights", str(place / "npz"), *short]) == 2
    assert "No segment of the expert has 900 steps" in capsys.readouterr().err


def test_robomimic_gets_a_mask(runs, tmp_path, capsys):
    place, _, _ = runs
    capsys.readouterr()
    out = tmp_path / "m.hdf5"
    words = ["--for", "robomimic", "--out", str(out), "--json"]
    assert main(["weights", str(place / "robomimic"), *words]) == 0
    with h5py.File(out) as file:
        names = {name.decode() for name in file["mask/pubc_expert"][:]}
    assert len(names) == told(capsys)["demonstrations"]
    assert {"demo_0", "demo_1"} <= names
    assert not verify(out)
    assert main(["weights", str(place / "robomimic"), *words, "--force"]) == 0


@pytest.mark.parametrize("trainer", ["lerobot", "robomimic"])
def test_a_trainer_that_reads_another_format_is_refused(runs, trainer, tmp_path, capsys):
    place, _, _ = runs
    out = str(tmp_path / "x.parquet")
    assert main(["weights", str(place / "npz"), "--for", trainer, "--out", out]) == 2
    assert "is npz" in capsys.readouterr().err


def test_cloning_is_weighted_by_the_steps_of_a_run(runs, tmp_path, capsys):
    place, pile, own = runs
    few = ["--updates", "300", "--hidden", "32", "--held-out", "0", "--device", "cpu", "--json"]
    for name, more in (
        ("all", []),
        ("weighted", ["--weights", str(place / "npz"), "--weighting", "hard"]),
    ):
        words = ["train", *([str(place / "a.npz")] if name == "all" else []), *more]
        assert main([*words, "--out", str(tmp_path / name), *few]) == 0
    assert not verify(tmp_path / "weighted")
    flat = pile.flat()
    errors = {}
    for name in ("all", "weighted"):
        policy = pubc.load_policy(tmp_path / name)
        guess = policy.predict(flat.observations[own][:300])[0]
        errors[name] = float(np.abs(guess - flat.actions[own][:300]).mean())
    assert errors["weighted"] < errors["all"]


def test_weights_of_other_data_are_refused(runs, tmp_path, capsys):
    place, _, _ = runs
    other, _ = lapsing(12, clean=4, random_seed=9)
    pubc.save(tmp_path / "other.npz", other)
    words = ["train", str(tmp_path / "other.npz"), "--weights", str(place / "npz")]
    assert main([*words, "--out", str(tmp_path / "p")]) == 3
    assert "judged other data" in capsys.readouterr().err
    assert main(["train", "--out", str(tmp_path / "p")]) == 2
    assert "Say what to learn from" in capsys.readouterr().err
    many = ["--random-seeds", "0-1", "--out", str(tmp_path / "p")]
    assert main(["train", "--weights", str(place / "npz"), *many]) == 2
    assert "--weights is for --algo bc with one --random-seed" in capsys.readouterr().err
