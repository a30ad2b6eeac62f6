"""`pubc evaluate` and `pubc compare`: what cannot be scored is refused before anything plays."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

import pubc
from pubc.acting import evaluate as acting
from pubc.policies.policy_folder import save
from pubc.storage import seal
from tests.cli.calling import run_line
from tests.policies.sets import random_policy, tiny

pytest.importorskip("gymnasium")
WORDS = "--env Pendulum-v1 --episodes 1"


@pytest.fixture(autouse=True)
def policies(in_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two policies, and nothing that may play."""

    def played(*given, **named):
        raise AssertionError("a trajectory was played")

    monkeypatch.setattr(acting, "play", played)
    for name in ("a", "b"):
        save(in_folder / name, random_policy(observations=3, actions=1), about={"learner": "bc"})


def edit(folder: Path, **change) -> None:
    config = folder / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **change}))
    seal(folder, kind="policy")


@pytest.mark.parametrize(
    "reference", ["0 inf", "-inf inf", "0 5e-324", "nan 1", "2 1", "-1e308 1e308"]
)
@pytest.mark.parametrize("command", ["evaluate a", "compare a b"])
def test_references_without_a_score_are_refused(command: str, reference: str, capsys):
    code, _, err = run_line(f"{command} {WORDS} --record r.jsonl --reference {reference}", capsys)
    assert (code, err.count("\n")) == (2, 1)
    assert "reference returns must rise" in err
    assert not Path("r.jsonl").exists()


@pytest.mark.parametrize(
    "said",
    [1e308, "x", [[None]], [{"key": "a"}], {"a": 1, "b": 2}, [True, 2], [1], [0, "1"]],
)
@pytest.mark.parametrize("command", ["evaluate b", "compare a b"])
def test_odd_references_of_a_strangers_policy_are_refused(command: str, said, capsys):
    edit(Path("b"), reference=said)
    code, _, err = run_line(f"{command} {WORDS}", capsys)
    assert (code, err.count("\n")) == (3, 1)
    assert "reference must be two returns" in err


@pytest.mark.parametrize("size", [0, 1, 4])
def test_a_scale_that_does_not_fit_its_mean_is_refused(size: int, capsys):
    weights = Path("a/policy.safetensors")
    save_file({**load_file(weights), "observation.scale": np.ones(size, np.float32)}, weights)
    seal(Path("a"), kind="policy")
    code, _, err = run_line(f"evaluate a {WORDS}", capsys)
    assert (code, err.count("\n")) == (3, 1)
    assert "observation.scale" in err


def test_the_interface_refuses_references_before_it_plays():
    with pytest.raises(pubc.PubcError, match="must rise"):
        pubc.evaluate("a", "Pendulum-v1", episodes=1, reference=(0.0, float("inf")))


def test_odd_references_of_a_dataset_are_not_written_into_its_policy(capsys):
    data = tiny(observations=3, actions=1)
    for name, pair, kept in (("odd", ["x", 5], [None, None]), ("fine", [0, 5], [0, 5])):
        facts = dict(zip(("ref_min_score", "ref_max_score"), pair, strict=True))
        pubc.save(f"{name}.npz", dataclasses.replace(data, metadata=facts))
        assert run_line(f"train {name}.npz --out {name} --epochs 1", capsys)[0] == 0
        assert json.loads(Path(name, "config.json").read_text())["reference"] == kept
