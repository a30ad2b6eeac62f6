"""The embedded policies: they load without torch, fit their cards, and act as they say."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from pubc import zoo
from pubc.errors import DataError, UnknownNameError, UsageError
from pubc.zoo.actors import GaussianPolicy, TanhPolicy

EXPECTED = {
    "ant": ["expert", "other_expert", "weak"],
    "humanoid": ["expert", "other_expert", "weak"],
    "halfcheetah": ["expert", "medium"],
    "hopper": ["expert", "medium"],
    "walker2d": ["expert", "medium"],
}
SHARED = Path(__file__).parents[3] / "shared" / "zoo"


def test_the_zoo_holds_every_policy_of_the_recipes():
    assert zoo.names() == sorted(f"{e}/{role}" for e, roles in EXPECTED.items() for role in roles)


@pytest.mark.parametrize("name", zoo.names())
def test_a_card_says_where_how_and_how_well(name: str):
    card = zoo.card(name)
    assert card["name"] == name
    assert card["environment_id"].endswith("-v5")
    assert card["algorithm"] == ("td3" if name.startswith("ant/") else "sac")
    assert card["returns"]["trajectories"] == 100
    assert f"pubc zoo {name} --measure 100" in card["returns"]["command"]


@pytest.mark.parametrize("name", zoo.names())
def test_a_policy_acts_within_its_limit(name: str):
    policy, card = zoo.load(name), zoo.card(name)
    actor = policy.begin(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    actions = [
        actor(rng.normal(size=policy.observation_size).astype(np.float32), 0.0).copy()
        for _ in range(300)
    ]
    assert np.shape(actions) == (300, card["action_size"])
    assert np.abs(actions).max() <= card["action_limit"]
    assert np.abs(actions).max() > 0.5 * card["action_limit"]


@pytest.mark.parametrize("name", zoo.names())
@pytest.mark.skipif(not SHARED.exists(), reason="needs the original arrays in ../shared/zoo")
def test_the_arrays_are_those_that_were_trained(name: str):
    from safetensors.numpy import load_file

    ours = load_file(zoo.path_of(name))
    with np.load(SHARED / f"{name}.npz", allow_pickle=False) as theirs:
        assert set(ours) == set(theirs.files)
        assert all(np.array_equal(ours[key], theirs[key]) for key in ours)


ARRAYS = {
    "w0": np.array([[1.0, -1.0]]),
    "b0": np.array([0.0, 0.5]),
    "w1": np.array([[1.0, 0.0], [1.0, 0.0]]),
    "b1": np.array([0.25, 0.0]),
}


def test_the_deterministic_actor_is_relu_then_tanh_times_the_limit():
    arrays = {**ARRAYS, "w1": ARRAYS["w1"][:, :1], "b1": ARRAYS["b1"][:1]}
    actor = TanhPolicy(arrays, 2.0, "x").begin(np.random.default_rng(0))
    assert actor(np.array([1.0]), 0.0) == pytest.approx([2 * np.tanh(1 + 0 + 0.25)])
    assert actor(np.array([-1.0]), 0.0) == pytest.approx([2 * np.tanh(0 + 1.5 + 0.25)])


def test_the_sampled_actor_has_the_mean_and_spread_of_its_heads():
    arrays = {**ARRAYS, "b1": np.array([0.25, np.log(0.01)])}
    actor = GaussianPolicy(arrays, 1.0, "x").begin(np.random.default_rng(0))
    drawn = np.arctanh([actor(np.array([0.0]), 0.0)[0] for _ in range(3000)])
    assert drawn.mean() == pytest.approx(0.75, abs=0.001)
    assert drawn.std() == pytest.approx(0.01, rel=0.05)


def test_the_log_spread_is_limited():
    arrays = {**ARRAYS, "b1": np.array([0.0, 1000.0])}
    actor = GaussianPolicy(arrays, 1.0, "x").begin(np.random.default_rng(0))
    assert np.isfinite([actor(np.array([0.0]), 0.0)[0] for _ in range(100)]).all()


def test_a_written_policy_reads_back(tmp_path: Path):
    card = {
        "environment": "ant", "algorithm": "td3", "network": "tanh",
        "observation_size": 1, "action_size": 2,
    }  # fmt: skip
    zoo.write(tmp_path / "a.safetensors", ARRAYS, card)
    assert zoo.read(tmp_path / "a.safetensors").observation_size == 1
    assert zoo.read_card(tmp_path / "a.safetensors") == card
    with pytest.raises(UsageError, match="exists already"):
        zoo.write(tmp_path / "a.safetensors", ARRAYS, card)


@pytest.mark.parametrize(
    ("arrays", "card", "error", "words"),
    [
        ({}, {"action_size": 3}, DataError, "its card says 1 to 3"),
        ({}, {"network": "resnet"}, UnknownNameError, "policy network"),
        ({"w1": np.ones((5, 2))}, {}, DataError, "layer 1"),
        ({"b0": np.array([0.0, np.nan])}, {}, DataError, "not finite"),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(tmp_path: Path, arrays, card, error, words):
    facts = {
        "environment": "ant", "algorithm": "td3", "network": "tanh",
        "observation_size": 1, "action_size": 2,
    }  # fmt: skip
    zoo.write(tmp_path / "a.safetensors", {**ARRAYS, **arrays}, {**facts, **card})
    with pytest.raises(error, match=words):
        zoo.read(tmp_path / "a.safetensors")


def test_a_damaged_policy_is_refused_by_name(tmp_path: Path):
    path = tmp_path / "a.safetensors"
    card = dict.fromkeys(("environment", "algorithm", "observation_size", "action_size"), 1)
    path.with_suffix(".json").write_text(json.dumps({**card, "network": "tanh"}))
    path.write_bytes(b"\xff" * 40)
    with pytest.raises(DataError, match=r"a.safetensors: not readable as safetensors"):
        zoo.read(path)
    path.with_suffix(".json").write_text("{}")
    with pytest.raises(DataError, match="the card lacks environment"):
        zoo.read(path)


def test_an_unknown_policy_comes_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'ant/expert'"):
        zoo.load("ant/exprt")


def test_acting_needs_no_torch_and_no_gymnasium():
    code = (
        "import numpy as np, sys; from pubc import zoo;"
        "zoo.load('humanoid/expert').begin(np.random.default_rng(0))(np.zeros(348), 0.0);"
        "print([m for m in ('torch', 'gymnasium', 'mujoco') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
