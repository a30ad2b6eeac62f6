"""Policy folders: whole, checked, and free of code."""

import json
from pathlib import Path

import numpy as np
import pytest

from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.policies.policy_folder import load, open_policy, read_config, save
from pubc.storage import seal
from tests.policies.sets import acts, random_policy


def saved(tmp_path: Path, **options) -> Path:
    save(tmp_path / "policy", random_policy(**options), about={"learner": "bc"})
    return tmp_path / "policy"


@pytest.mark.parametrize("options", [{}, {"gaussian": True}, {"latent": True}])
def test_a_policy_comes_back_as_it_was(tmp_path: Path, options: dict):
    folder = saved(tmp_path, **options)
    assert np.array_equal(acts(load(folder)), acts(random_policy(**options)))


def test_one_row_and_many_rows_act_alike():
    for options in ({}, {"gaussian": True}, {"latent": True}):
        policy = random_policy(**options)
        rows = np.random.default_rng(3).normal(size=(4, 5)).astype(np.float32)
        assert np.allclose(acts(policy), policy.act(rows), atol=1e-6)


def test_log_likelihood_is_a_density():
    policy = random_policy(actions=1, gaussian=True)
    grid = np.linspace(-9, 9, 20_001, dtype=np.float32)[:, None]
    rows = np.zeros((len(grid), 5), dtype=np.float32)
    density = np.exp(policy.log_likelihood(rows, grid))
    assert np.trapezoid(density, grid[:, 0]) == pytest.approx(1, abs=1e-3)


def test_a_flipped_bit_is_noticed(tmp_path: Path):
    folder = saved(tmp_path)
    weights = folder / "policy.safetensors"
    data = bytearray(weights.read_bytes())
    data[-5] ^= 1
    weights.write_bytes(data)
    with pytest.raises(DataError, match=r"policy\.safetensors: .*SHA-256 differs"):
        load(folder)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"form": "networks"}, UnknownNameError, "Did you mean 'network'"),
        ({"action_size": 3}, DataError, r"config\.json says 5 to 3"),
        ({"head": "gaussian"}, DataError, "layers take 5 numbers to 2"),
    ],
)
def test_a_description_that_does_not_fit_is_refused(
    tmp_path: Path, change: dict, error: type, words: str
):
    folder = saved(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **change}))
    seal(folder, kind="policy")
    with pytest.raises(error, match=words):
        load(folder)


def test_a_range_with_one_end_missing_is_refused():
    policy = random_policy()
    tensors = {**policy.tensors(), "action.high": np.zeros(0, np.float32)}
    with pytest.raises(DataError, match="2 lowest and 0 highest actions"):
        type(policy).build(policy.config(), tensors)


@pytest.mark.parametrize(
    "scale", [np.zeros(0), np.ones(1), np.ones(6), np.zeros(5), -np.ones(5)], ids=str
)
def test_a_scale_that_cannot_divide_is_refused(scale: np.ndarray):
    policy = random_policy()
    tensors = {**policy.tensors(), "observation.scale": scale.astype(np.float32)}
    with pytest.raises(DataError, match=r"observation\.scale must be one number above zero"):
        type(policy).build(policy.config(), tensors)


@pytest.mark.parametrize("said", [None, [None, None], [0, 5.5], [None, 3], [5, 1]])
def test_references_that_a_dataset_may_have_said_are_read(tmp_path: Path, said):
    save(tmp_path / "policy", random_policy(), about={"learner": "bc", "reference": said})
    assert read_config(tmp_path / "policy")["reference"] == said


def test_what_is_no_policy_says_so(tmp_path: Path):
    with pytest.raises(UsageError, match="no such policy folder"):
        load(tmp_path / "absent")
    with pytest.raises(DataError, match="not a policy folder"):
        load(tmp_path)


def test_a_zoo_policy_opens_by_its_name():
    assert open_policy("hopper/expert").action_size == 3
