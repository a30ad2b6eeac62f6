"""One file for a robot, acting as the policy it came from."""

import sys
from pathlib import Path

import numpy as np
import pytest

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
    assert [p.name for p in tmp_path.iterdir()] == [f"p{suffix}"]


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
    with pytest.raises(MissingExtraError, match=r"pip install 'pubc\[onnx\]'"):
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
