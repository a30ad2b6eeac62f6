"""Evaluations on the way: when they are due, where they lie, and that a stop changes none."""

from pathlib import Path

import pytest

from pubc.errors import UsageError
from pubc.policies import trainer
from pubc.policies.checkpoints_scored import ScoredCheckpoints
from pubc.policies.train_options import TrainOptions
from pubc.policies.training_run import Session
from pubc.results import Record, read
from pubc.storage import read_manifest
from tests.policies.sets import tiny


def session(out: Path, *, every: int = 20, resume: bool = False, epochs: int = 6) -> Session:
    run = trainer("bc", tiny(), TrainOptions(epochs=epochs, batch_size=64, held_out=0.0))

    def measure(policy, updates: int) -> Record:
        action = policy.begin(None)(tiny().columns.observations[0], 0.0)
        return Record({"kind": "evaluate", "updates": updates}, {"action": action.tolist()})

    return Session(
        run, out, {}, resume=resume, every=0.0, checkups=ScoredCheckpoints(every, measure)
    )


def looked_at(folder: Path) -> list[int]:
    return [one.cell["updates"] for one in read(folder / "evaluations.jsonl")]


def test_a_policy_is_looked_at_when_updates_pass_a_multiple_and_at_the_end(tmp_path: Path):
    run = session(tmp_path / "p")
    per_epoch = run.trainer.updates_after(1)
    list(run.epochs())
    ends = [per_epoch * n for n in range(1, 7)]
    due = [now for before, now in zip([0, *ends], ends, strict=False) if now // 20 > before // 20]
    assert 1 < len(due) < 6
    assert looked_at(tmp_path / "p") == sorted({*due, ends[-1]})


def test_looks_see_the_policy_of_that_moment(tmp_path: Path):
    list(session(tmp_path / "p", every=1).epochs())
    actions = [tuple(one.values["action"]) for one in read(tmp_path / "p" / "evaluations.jsonl")]
    assert len(set(actions)) == 6


def test_looking_changes_nothing_of_the_policy(tmp_path: Path):
    list(session(tmp_path / "looked", every=1).epochs())
    plain = session(tmp_path / "plain")
    list(Session(plain.trainer, plain.out, {}).epochs())
    for name in ("policy.safetensors", "metrics.jsonl"):
        assert (tmp_path / "looked" / name).read_bytes() == (tmp_path / "plain" / name).read_bytes()


@pytest.mark.parametrize("stop", [1, 3, 5])
def test_a_run_that_was_stopped_has_the_same_looks(tmp_path: Path, stop: int):
    list(session(tmp_path / "whole").epochs())
    half = session(tmp_path / "half").epochs()
    for _ in range(stop):
        next(half)
    half.close()
    list(session(tmp_path / "half", resume=True).epochs())
    files = [read_manifest(tmp_path / name)["files"] for name in ("whole", "half")]
    assert files[0] == files[1]
    assert "evaluations.jsonl" in files[0]


def test_looking_every_zero_updates_is_refused():
    with pytest.raises(UsageError, match="every 1 or more updates"):
        ScoredCheckpoints(0, lambda policy, updates: Record({}, {}))
