"""Training: the zoo's format comes out, it acts as the trained network does, archives open."""

from pathlib import Path

import numpy as np
import pytest

from pubc import zoo
from pubc.collect.policy_files import open_policy
from pubc.collect.train_experts import _model, _stable_baselines, training
from pubc.errors import DataError, MissingExtraError, UsageError

pytest.importorskip("stable_baselines3")
RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def one_thread():
    """Networks this small only wait for one another on several threads."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("algorithm", ["td3", "sac"])
def test_training_writes_an_expert_and_a_weak_policy(algorithm, tmp_path: Path, monkeypatch):
    (aside := tmp_path / "aside").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(aside))
    reports = list(training("Pendulum-v1", tmp_path, algorithm=algorithm, steps=50, random_seed=1))
    written = [report.written for report in reports if report.written]
    assert [path.name for path in written] == ["weak.safetensors", "expert.safetensors"]
    assert reports[-1].steps == 50
    weak, expert = (zoo.read_card(path) for path in written)
    assert (weak["training_steps"], expert["training_steps"]) == (10, 50)
    assert expert["algorithm"] == algorithm
    assert expert["hidden_sizes"] == ([400, 300] if algorithm == "td3" else [256, 256])
    assert expert["action_limit"] == 2.0
    assert not list(aside.glob("SB3*"))
    with pytest.raises(UsageError, match="exists already"):
        next(training("Pendulum-v1", tmp_path, steps=10))


def test_the_same_seed_trains_the_same_policy(tmp_path: Path):
    for name in ("a", "b"):
        list(training("Pendulum-v1", tmp_path / name, steps=40, random_seed=4))
    files = [tmp_path / name / "expert.safetensors" for name in ("a", "b")]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("algorithm", ["td3", "sac"])
def test_the_written_arrays_act_as_the_trained_network(algorithm, tmp_path: Path):
    from pubc.collect import train_experts as experts

    model = _model("Pendulum-v1", algorithm, 100, 0)
    arrays = experts._arrays(model, algorithm)
    card = experts._card("Pendulum-v1", algorithm, 100, 0, "expert", arrays, model)
    if algorithm == "sac":
        arrays["b2"][1:] = -30  # no spread left: the sample is the mean
        arrays["w2"][:, 1:] = 0
    zoo.write(tmp_path / "p.safetensors", arrays, card)
    actor = zoo.read(tmp_path / "p.safetensors").begin(RNG)
    for _ in range(20):
        seen = RNG.normal(size=3).astype(np.float32)
        expected, _ = model.predict(seen, deterministic=True)
        assert actor(seen, 0.0) == pytest.approx(expected, abs=1e-5)


def test_an_archive_of_stable_baselines_opens_when_trusted(tmp_path: Path):
    model = _model("Pendulum-v1", "td3", 100, 0)
    model.save(tmp_path / "model.zip")
    with pytest.raises(UsageError, match="--i-trust-this-pickle"):
        open_policy(str(tmp_path / "model.zip"))
    policy = open_policy(str(tmp_path / "model.zip"), trusted=True)
    seen = RNG.normal(size=3).astype(np.float32)
    expected, _ = model.predict(seen, deterministic=True)
    assert policy.begin(np.random.default_rng(0))(seen, 0.0) == pytest.approx(expected)
    assert (policy.observation_size, policy.action_size) == (3, 1)


def test_a_sampled_archive_policy_depends_on_its_stream_alone(tmp_path: Path):
    _model("Pendulum-v1", "sac", 100, 0).save(tmp_path / "model.zip")
    policy = open_policy(str(tmp_path / "model.zip"), trusted=True)
    seen = np.ones(3, dtype=np.float32)
    drawn = [policy.begin(np.random.default_rng(seed))(seen, 0.0)[0] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]


def test_another_zip_is_not_an_archive_of_stable_baselines(tmp_path: Path):
    np.savez(tmp_path / "x.npz", a=1)
    (tmp_path / "x.npz").rename(tmp_path / "x.zip")
    with pytest.raises(DataError, match="not an archive of stable-baselines3"):
        open_policy(str(tmp_path / "x.zip"), trusted=True)


def test_without_the_extra_the_install_line_is_given(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "stable_baselines3", None)
    with pytest.raises(MissingExtraError, match="needs the extra 'sb3'"):
        _stable_baselines()


def test_a_weak_policy_beyond_the_end_is_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="within the 100 steps"):
        next(training("Pendulum-v1", tmp_path, steps=100, weak_at=200))
