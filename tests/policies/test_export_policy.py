"""One file for a robot, acting as the policy it came from."""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch

from pubc.errors import DataError, MissingExtraError, UnknownNameError, UsageError
from pubc.policies import export_policy as exports
from pubc.policies import trainer
from pubc.policies.export_policy import TOLERANCE, export
from pubc.policies.train_options import TrainOptions
from tests.policies.sets import random_policy, tiny

FORMS = {"deterministic": {}, "gaussian": {"gaussian": True}, "latent": {"latent": True}}


@pytest.mark.parametrize("suffix", [".onnx", ".pt"])
@pytest.mark.parametrize("form", FORMS)
def test_an_export_acts_like_its_policy(form: str, suffix: str, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    written = export(random_policy(**FORMS[form]), tmp_path / f"p{suffix}")
    assert written.difference <= TOLERANCE
    assert written.milliseconds > 0
    assert {p.name for p in tmp_path.iterdir()} == {f"p{suffix}", f"p{suffix}.manifest.json"}


def test_the_onnx_file_stands_alone_and_takes_any_number_of_rows(tmp_path: Path):
    onnxruntime = pytest.importorskip("onnxruntime")
    policy = random_policy()
    export(policy, tmp_path / "p.onnx")
    session = onnxruntime.InferenceSession(
        (tmp_path / "p.onnx").read_bytes(), providers=["CPUExecutionProvider"]
    )
    rows = 3 * np.random.default_rng(0).normal(size=(7, 5)).astype(np.float32)
    (actions,) = session.run(None, {"observation": rows})
    assert np.abs(actions - policy.act(rows)).max() <= TOLERANCE


@pytest.mark.parametrize("suffix", [".onnx", ".pt"])
def test_a_decision_transformer_exports(suffix: str, tmp_path: Path):
    pytest.importorskip("onnxruntime")
    pytest.importorskip("d3rlpy")
    run = trainer("dt", tiny(), TrainOptions(updates=1, batch_size=4))
    run.advance(0)
    written = export(run.policy(), tmp_path / f"dt{suffix}")
    assert written.difference <= TOLERANCE
    assert written.inputs[0] == "observations"


def test_an_export_that_acts_differently_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(exports, "_original", lambda *_: lambda inputs: np.ones((1, 2)))
    with pytest.raises(DataError, match="acts differently"):
        export(random_policy(), tmp_path / "p.pt")
    assert not list(tmp_path.iterdir())


def test_a_missing_extra_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match="needs the extra 'onnx'"):
        export(random_policy(), tmp_path / "p.onnx")
    assert not list(tmp_path.iterdir())


def test_an_unknown_suffix_names_the_nearest(tmp_path: Path):
    with pytest.raises(UnknownNameError, match=r"Did you mean '\.onnx'"):
        export(random_policy(), tmp_path / "p.onx")


def test_an_existing_file_is_kept(tmp_path: Path):
    (tmp_path / "p.pt").write_text("mine")
    with pytest.raises(UsageError, match="--force"):
        export(random_policy(), tmp_path / "p.pt")
    with pytest.raises(UsageError, match="pubc did not write"):
        export(random_policy(), tmp_path / "p.pt", overwrite=True)
    assert (tmp_path / "p.pt").read_text() == "mine"
    export(random_policy(), tmp_path / "q.pt")
    export(random_policy(), tmp_path / "q.pt", overwrite=True)


ABOUT = {
    "learner": "bc",
    "random_seed": 7,
    "data": {
        "name": "kept.npz",
        "observation_keys": [{"key": "joints", "size": 3}, {"key": "cube", "size": 2}],
        "action_key": "torque",
    },
}


def check_card(told: dict) -> None:
    policy = random_policy()
    assert told["observation"]["keys"] == [
        {"key": "joints", "size": 3, "from": 0, "to": 3},
        {"key": "cube", "size": 2, "from": 3, "to": 5},
    ]
    assert told["normalisation"]["mean"] == policy.normaliser.mean.tolist()
    assert told["normalisation"]["inside"] is True
    assert told["action"]["key"] == "torque"
    assert told["action"]["low"] == policy.actions.low.tolist()
    assert told["action"]["high"] == policy.actions.high.tolist()
    assert told["provenance"] == ABOUT
    assert told["inputs"] == ["observation"]


def test_e6_an_onnx_file_says_what_a_robot_has_to_know(tmp_path: Path):
    onnxruntime = pytest.importorskip("onnxruntime")
    export(random_policy(), tmp_path / "p.onnx", about=ABOUT)
    session = onnxruntime.InferenceSession(
        (tmp_path / "p.onnx").read_bytes(), providers=["CPUExecutionProvider"]
    )
    texts = session.get_modelmeta().custom_metadata_map
    assert texts["pubc.version"]
    check_card(
        {k.removeprefix("pubc."): json.loads(v) for k, v in texts.items() if k != "pubc.version"}
    )


def test_e6_a_torchscript_file_says_what_a_robot_has_to_know(tmp_path: Path):
    export(random_policy(), tmp_path / "p.pt", about=ABOUT)
    told = {"pubc.json": ""}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch speaks of its own age
        torch.jit.load(str(tmp_path / "p.pt"), _extra_files=told)
    check_card(json.loads(told["pubc.json"]))


def test_e6_the_parts_of_a_named_observation_reach_the_policy(tmp_path: Path, capsys):
    from pubc.cli.main import main
    from tests.formats.lerobot_sets import write_v3

    pytest.importorskip("pyarrow")
    root = write_v3(tmp_path / "set", [(0, 0, [0, 1, 2, 3])], [20, 20, 20, 20])
    words = ["train", root, "--out", tmp_path / "p", "--epochs", "1", "--isolate", "off"]
    assert main([str(word) for word in words]) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["export", str(tmp_path / "p"), str(tmp_path / "p.pt"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["card"]
    config = json.loads((tmp_path / "p/config.json").read_text())
    assert config["data"]["observation_keys"] == [{"key": "observation.state", "size": 3}]
    assert config["data"]["action_key"] == "action"
    assert [part["key"] for part in told["observation"]["keys"]] == ["observation.state"]
    assert told["provenance"]["data"]["fingerprint"]
