"""A stack on disk: a policy folder for each seed, killed and resumed to the same bytes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch

from pubc.errors import DataError, UsageError
from pubc.policies import stacked_trainer, trainer
from pubc.policies.policy_folder import load
from pubc.policies.stacked.many_policies import Many, ManySession
from pubc.policies.train_options import TrainOptions
from pubc.policies.training_run import Session
from pubc.storage import read_manifest, verify
from tests.policies.sets import tiny

SEEDS = (0, 3)


def session(out: Path, *, resume: bool = False, epochs: int = 5, overwrite: bool = False):
    options = TrainOptions(epochs=epochs, batch_size=64, hidden=(16,))
    run = stacked_trainer("bc", tiny(), options, random_seeds=SEEDS, device="cpu")
    about = {"learner": "bc", "random_seeds": list(SEEDS)}
    return ManySession(run, out, about, resume=resume, overwrite=overwrite, every=0.0)


def files(folder: Path) -> dict:
    return {seed: read_manifest(folder / f"seed-{seed}")["files"] for seed in SEEDS}


def test_every_seed_has_the_policy_folder_of_a_training_alone(tmp_path: Path):
    told = list(session(tmp_path / "many").epochs())
    assert set(told[0].metrics) == {"loss", "held_out_loss", "learning_rate"}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["many"]
    for seed in SEEDS:
        folder = tmp_path / "many" / f"seed-{seed}"
        assert verify(folder) == []
        options = TrainOptions(epochs=5, batch_size=64, hidden=(16,))
        alone = trainer("bc", tiny(), options, random_seed=seed, device="cpu")
        about = {"learner": "bc", "random_seed": seed}
        list(Session(alone, tmp_path / f"alone-{seed}", about).epochs())
        ours, theirs = (
            json.loads((f / "config.json").read_text())
            for f in (folder, tmp_path / f"alone-{seed}")
        )
        assert ours == theirs
        rows = np.random.default_rng(0).normal(size=(8, 5))
        acts = [load(f).act(rows) for f in (folder, tmp_path / f"alone-{seed}")]
        assert np.abs(acts[0] - acts[1]).max() < 1e-4
        lines = (folder / "metrics.jsonl").read_text().splitlines()
        assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3, 4, 5]
        assert {"loss", "held_out_loss"} <= set(json.loads(lines[0]))


@pytest.mark.parametrize("stop", [1, 3])
def test_a_stopped_stack_ends_with_the_same_bytes(tmp_path: Path, stop: int):
    list(session(tmp_path / "whole").epochs())
    halves = session(tmp_path / "half").epochs()
    for _ in range(stop):
        next(halves)
    halves.close()
    assert not (tmp_path / "half").exists()
    list(session(tmp_path / "half", resume=True).epochs())
    assert files(tmp_path / "whole") == files(tmp_path / "half")


SCRIPT = """
import sys
from pathlib import Path
from tests.policies.stacked.test_many_policies import session
for epoch in session(Path(sys.argv[1]), epochs=40).epochs():
    print(epoch.number, flush=True)
"""


def test_a_killed_stack_ends_with_the_same_bytes(tmp_path: Path):
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "killed")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as running:
        assert running.stdout is not None
        while int(running.stdout.readline() or 40) < 5:
            time.sleep(0.001)
        running.send_signal(signal.SIGKILL)
    assert not (tmp_path / "killed").exists()
    list(session(tmp_path / "killed", epochs=40, resume=True).epochs())
    list(session(tmp_path / "whole", epochs=40).epochs())
    assert files(tmp_path / "killed") == files(tmp_path / "whole")


def test_what_exists_is_not_overwritten_unless_forced(tmp_path: Path):
    list(session(tmp_path / "p", epochs=1).epochs())
    with pytest.raises(UsageError, match="seed-0 exists already"):
        list(session(tmp_path / "p", epochs=1).epochs())
    list(session(tmp_path / "p", epochs=2, overwrite=True).epochs())
    assert len((tmp_path / "p" / "seed-0" / "metrics.jsonl").read_text().splitlines()) == 2


def test_a_run_killed_while_it_wrote_its_policies_goes_on(tmp_path: Path):
    begun = session(tmp_path / "p").epochs()
    for _ in range(4):
        next(begun)
    begun.close()
    # As if the first of two policies had been written when the process died.
    list(session(tmp_path / "other").epochs())
    (tmp_path / "p").mkdir()
    (tmp_path / "other" / "seed-0").rename(tmp_path / "p" / "seed-0")
    list(session(tmp_path / "p", resume=True).epochs())
    assert {p.name for p in (tmp_path / "p").iterdir()} == {"seed-0", "seed-3"}


def test_a_run_that_goes_on_replaces_no_other_policy(tmp_path: Path):
    begun = session(tmp_path / "p").epochs()
    for _ in range(4):
        next(begun)
    begun.close()
    list(session(tmp_path / "other", epochs=1).epochs())
    (tmp_path / "p").mkdir()
    (tmp_path / "other" / "seed-0").rename(tmp_path / "p" / "seed-0")
    before = files_of(tmp_path / "p" / "seed-0")
    with pytest.raises(UsageError, match="seed-0 exists already"):
        list(session(tmp_path / "p", resume=True).epochs())
    assert files_of(tmp_path / "p" / "seed-0") == before


def files_of(policy: Path) -> dict:
    return read_manifest(policy)["files"]


def test_a_loss_that_is_no_number_names_its_seed():
    class Broken:
        random_seeds, epochs, fingerprint = (4, 7), 1, ""

        def advance(self, epoch: int):
            return {"critic_loss": torch.tensor([1.0, float("nan")])}

    with pytest.raises(DataError, match="critic loss of random seed 7 became nan"):
        Many(Broken()).advance(0)


def test_a_learner_that_cannot_be_stacked_says_so():
    with pytest.raises(UsageError, match="one random seed at a time"):
        stacked_trainer("dt", tiny(), TrainOptions(), random_seeds=SEEDS)
