"""Policies from files: every kind that pubc reads, and what it refuses to open."""

from pathlib import Path

import numpy as np
import pytest

from pubc import zoo
from pubc.acting import environments
from pubc.collect.policy_files import NoisyPolicy, check_fits, fingerprint, open_policy
from pubc.errors import DataError, UsageError

RNG = np.random.default_rng(0)


def act(policy, observation):
    return policy.begin(np.random.default_rng(0))(np.asarray(observation, np.float32), 0.0)


def trifinger_arrays(**more):
    """Reads observation 2 and 0, doubles, one unit per layer; out = 0.5 u + 0.1."""
    arrays = {
        "obs_index": np.array([2, 0]),
        "obs_scale": np.full(2, 2.0, np.float32),
        "obs_offset": np.array([0.0, 1.0], np.float32),
        "out_scale": np.full(1, 0.5, np.float32),
        "out_offset": np.full(1, 0.1, np.float32),
        "w0": np.array([[1.0], [1.0]], np.float32),
        **{f"w{i}": np.ones((1, 1), np.float32) for i in range(1, 5)},
        **{f"b{i}": np.zeros(1, np.float32) for i in range(5)},
    }
    return {**arrays, **more}


def test_a_zoo_name_and_its_file_are_the_same_policy():
    by_name = open_policy("ant/weak")
    by_file = open_policy(str(zoo.path_of("ant/weak")))
    seen = RNG.normal(size=27)
    assert np.array_equal(act(by_name, seen), act(by_file, seen))
    assert fingerprint("ant/weak") == fingerprint(str(zoo.path_of("ant/weak")))


@pytest.mark.parametrize(
    ("observation", "expected"),
    [
        ([0.1, 9, 0.05], 0.5 * 1.0 + 0.1),  # 0.1 + 1.2 = 1.3, limited to 1
        ([-0.6, 9, 0.2], 0.5 * 0.2 + 0.1),  # 0.4 - 0.2
        ([-0.6, 9, -0.4], 0.5 * np.expm1(np.expm1(np.expm1(np.expm1(-1)))) + 0.1),
        ([-9, 9, 0], 0.5 * np.expm1(np.expm1(np.expm1(np.expm1(-5)))) + 0.1),  # limited to -5
    ],
)
def test_trifinger_arrays_follow_their_formula(tmp_path: Path, observation, expected):
    np.savez(tmp_path / "p.npz", **trifinger_arrays())
    assert act(open_policy(str(tmp_path / "p.npz")), observation) == pytest.approx([expected])


def test_trifinger_arrays_say_when_the_task_is_another(tmp_path: Path):
    np.savez(tmp_path / "p.npz", **trifinger_arrays())
    with pytest.raises(DataError, match="reads observation 2, but there are 2"):
        act(open_policy(str(tmp_path / "p.npz")), [0, 0])


def test_other_archives_are_not_taken_for_trifinger_policies(tmp_path: Path):
    np.savez(tmp_path / "p.npz", observations=np.zeros(3))
    with pytest.raises(DataError, match="not a TriFinger policy; it lacks obs_index"):
        open_policy(str(tmp_path / "p.npz"))
    np.savez(tmp_path / "q.npz", obs_index=np.array([{}], dtype=object))
    with pytest.raises(DataError, match="not readable"):
        open_policy(str(tmp_path / "q.npz"))


@pytest.fixture
def script(tmp_path: Path) -> Path:
    torch = pytest.importorskip("torch")
    import warnings

    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh())
    with torch.no_grad():
        net[0].weight[:] = torch.tensor([[1.0, 0, 0], [0, 2.0, 0]])
        net[0].bias[:] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.script(net).save(str(tmp_path / "p.pt"))
    return tmp_path / "p.pt"


def test_torchscript_acts(script: Path):
    assert act(open_policy(str(script)), [0.5, 0.25, 9]) == pytest.approx([np.tanh(0.5)] * 2)


def test_torchscript_says_when_observations_do_not_fit(script: Path):
    with pytest.raises(DataError, match="fails on 5 observations"):
        act(open_policy(str(script)), [0] * 5)


def test_a_file_that_is_no_torchscript_is_refused(tmp_path: Path):
    (tmp_path / "p.pt").write_bytes(b"no")
    with pytest.raises(DataError, match="not readable as TorchScript"):
        open_policy(str(tmp_path / "p.pt"))


def test_an_archive_of_pickles_is_not_opened_without_trust(tmp_path: Path):
    (tmp_path / "model.zip").write_bytes(b"PK")
    with pytest.raises(UsageError, match="--i-trust-this-pickle"):
        open_policy(str(tmp_path / "model.zip"))


def test_unknown_references_are_usage_errors(tmp_path: Path):
    (tmp_path / "p.h5").touch()
    with pytest.raises(UsageError, match="neither a zoo policy"):
        open_policy("nowhere.pt")
    with pytest.raises(UsageError, match=r"reads policies from .safetensors"):
        open_policy(str(tmp_path / "p.h5"))


def test_a_policy_of_another_environment_does_not_fit():
    pytest.importorskip("mujoco")
    with pytest.raises(DataError, match="made for 27 observations, but hopper has 11"):
        check_fits(open_policy("ant/expert"), "E+", environments.make("hopper"))


def test_action_noise_has_the_spread_asked_for():
    quiet = open_policy("hopper/expert")
    noisy = NoisyPolicy(quiet, np.array([0.5, 0.5, 0.0], dtype=np.float32))

    class Still:
        def begin(self, rng):
            return lambda observation, reward: np.zeros(3, np.float32)

    actor = NoisyPolicy(Still(), noisy.scale).begin(np.random.default_rng(0))
    drawn = np.array([actor(np.zeros(11), 0.0) for _ in range(4000)])
    assert drawn.std(axis=0) == pytest.approx([0.5, 0.5, 0.0], rel=0.05)
