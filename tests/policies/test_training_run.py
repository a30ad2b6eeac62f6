"""A training run on disk: whole or resumable, and the same bytes either way."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pubc.errors import EnvironmentFailure, InterruptedRun, UsageError
from pubc.policies import trainer
from pubc.policies import training_run as sessions
from pubc.policies.train_options import TrainOptions
from pubc.policies.training_run import Session
from pubc.storage import read_manifest, verify
from tests.policies.sets import tiny


def session(out: Path, *, name: str = "bc", resume: bool = False, seed: int = 0, **options):
    chosen = TrainOptions(**{"epochs": 6, "updates": None, "batch_size": 64, **options})
    data = tiny()
    run = trainer(name, data, chosen, random_seed=seed, positives=data[:2])
    about = {"learner": name, "random_seed": seed}
    return Session(run, out, about, resume=resume, every=0.0)


def files(folder: Path) -> dict:
    return read_manifest(folder)["files"]


def test_a_finished_run_leaves_a_policy_and_nothing_else(tmp_path: Path):
    epochs = list(session(tmp_path / "p").epochs())
    assert [one.number for one in epochs] == [1, 2, 3, 4, 5, 6]
    assert [p.name for p in tmp_path.iterdir()] == ["p"]
    assert verify(tmp_path / "p") == []
    assert set(files(tmp_path / "p")) == {"config.json", "policy.safetensors", "metrics.jsonl"}
    assert len((tmp_path / "p" / "metrics.jsonl").read_text().splitlines()) == 6


@pytest.mark.parametrize("stop", [1, 3, 5])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("bc", {}),
        ("dwbc", {"updates": 55, "hidden": (4,), "batch_size": 4}),
        ("dwbc-paper", {"updates": 55, "hidden": (4,), "batch_size": 4}),
    ],
)
def test_a_run_that_was_stopped_ends_with_the_same_bytes(
    tmp_path: Path, stop: int, name: str, options: dict, monkeypatch: pytest.MonkeyPatch
):
    for module in ("cloning.dwbc", "stacked.stacked_dwbc"):
        monkeypatch.setattr(f"pubc.policies.{module}._PER_EPOCH", 10)
    list(session(tmp_path / "whole", name=name, **options).epochs())
    halves = session(tmp_path / "half", name=name, **options).epochs()
    for _ in range(stop):
        next(halves)
    halves.close()
    assert not (tmp_path / "half").exists()
    list(session(tmp_path / "half", name=name, resume=True, **options).epochs())
    assert files(tmp_path / "whole") == files(tmp_path / "half")


SCRIPT = """
import sys
from pathlib import Path
from tests.policies.test_training_run import session
for epoch in session(Path(sys.argv[1]), epochs=60).epochs():
    print(epoch.number, flush=True)
"""


def test_a_run_killed_at_any_moment_ends_with_the_same_bytes(tmp_path: Path):
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "killed")]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for line in killed.stdout:
        if int(line) == 20:
            break
    time.sleep(0.013)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    assert not (tmp_path / "killed").exists()
    again = list(session(tmp_path / "killed", epochs=60, resume=True).epochs())
    assert 20 <= again[0].number <= 60
    list(session(tmp_path / "whole", epochs=60).epochs())
    assert files(tmp_path / "whole") == files(tmp_path / "killed")


def stopped(out: Path, epochs: int = 4) -> list[Path]:
    """The checkpoints of a run that was stopped after some epochs."""
    halves = session(out)
    steps = halves.epochs()
    for _ in range(epochs):
        next(steps)
    steps.close()
    return sorted(halves.folder.glob("checkpoint-*"))


def test_a_changed_checkpoint_is_named_and_neither_believed_nor_removed(tmp_path: Path):
    list(session(tmp_path / "whole").epochs())
    newest = stopped(tmp_path / "half")[-1]
    edited = newest.read_bytes()[:-3] + b"xyz"
    newest.write_bytes(edited)
    with pytest.raises(UsageError, match=rf"{newest.name}, which is not as pubc wrote it"):
        next(session(tmp_path / "half", resume=True).epochs())
    assert newest.read_bytes() == edited
    newest.rename(tmp_path / "moved")
    again = list(session(tmp_path / "half", resume=True).epochs())
    assert again[0].number == 4
    assert files(tmp_path / "whole") == files(tmp_path / "half")


def test_a_checkpoint_under_the_name_of_another_epoch_is_not_believed(tmp_path: Path):
    older, newest = stopped(tmp_path / "half")
    older.rename(newest.with_name("checkpoint-000005.safetensors"))
    with pytest.raises(UsageError, match=r"checkpoint-000005\.safetensors, which is not as pubc"):
        next(session(tmp_path / "half", resume=True).epochs())


def test_checkpoints_edited_while_a_run_lasts_stay(tmp_path: Path):
    one = session(tmp_path / "p")
    steps = one.epochs()
    next(steps)
    mine = one.folder / "checkpoint-000001.safetensors"
    next(steps)
    mine.write_text("mine")
    with pytest.warns(UserWarning, match=rf"p\.training stays: it holds {mine.name}"):
        list(steps)
    assert verify(tmp_path / "p") == []
    assert [path for path in one.folder.rglob("*") if path.is_file()] == [mine]
    assert mine.read_text() == "mine"


def test_what_came_to_the_name_of_the_next_checkpoint_is_not_replaced(tmp_path: Path):
    one = session(tmp_path / "p")
    steps = one.epochs()
    next(steps)
    mine = one.folder / "checkpoint-000002.safetensors"
    mine.write_text("mine")
    with pytest.raises(UsageError, match=r"checkpoint-000002\.safetensors exists already"):
        next(steps)
    assert mine.read_text() == "mine"


def test_a_stopped_run_is_neither_overwritten_nor_mixed_up(tmp_path: Path):
    steps = session(tmp_path / "p").epochs()
    next(steps)
    next(steps)
    steps.close()
    with pytest.raises(UsageError, match="Pass --resume"):
        next(session(tmp_path / "p").epochs())
    with pytest.raises(UsageError, match="other data or options"):
        next(session(tmp_path / "p", seed=1, resume=True).epochs())
    with pytest.raises(UsageError, match="other data or options"):
        next(session(tmp_path / "p", learning_rate=0.1, resume=True).epochs())


@pytest.mark.parametrize("name", ["bc", "dwbc-paper"])
@pytest.mark.parametrize("layout", [None, "every layer alike"])
def test_a_state_whose_weights_lie_in_another_order_is_refused(name: str, layout: str | None):
    one = session(Path("p"), name=name, updates=2).trainer
    one.advance(0)
    arrays, facts = one.state()
    one.restore(arrays, facts)
    kept = {key: value for key, value in facts.items() if key != "layout"}
    with pytest.raises(UsageError, match=r"another version of pubc.*Delete its \.training folder"):
        one.restore(arrays, kept if layout is None else {**kept, "layout": layout})


def test_an_existing_policy_is_not_overwritten(tmp_path: Path):
    list(session(tmp_path / "p").epochs())
    before = files(tmp_path / "p")
    with pytest.raises(UsageError, match="--force"):
        next(session(tmp_path / "p", seed=1).epochs())
    assert files(tmp_path / "p") == before


def test_an_interrupt_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    one = session(tmp_path / "p")
    advance = one.trainer.advance

    def interrupted(epoch: int) -> dict[str, float]:
        if epoch == 3:
            raise KeyboardInterrupt
        return advance(epoch)

    monkeypatch.setattr(one.trainer, "advance", interrupted)
    with pytest.raises(InterruptedRun, match=r"Stopped in epoch 4 of 6.*--resume.*epoch 3"):
        list(one.epochs())


def test_a_full_disk_leaves_no_policy_and_a_run_to_go_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(path: Path, *given: object, **named: object) -> None:
        if "policy.safetensors" in path.name:
            raise OSError(errno.ENOSPC, "No space left on device")
        written(path, *given, **named)

    written = Path.write_bytes
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_bytes", full)
        with pytest.raises(EnvironmentFailure, match="disk is full"):
            list(session(tmp_path / "p").epochs())
    assert not (tmp_path / "p").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["p.training"]
    list(session(tmp_path / "p", resume=True).epochs())
    assert verify(tmp_path / "p") == []


def test_only_the_last_checkpoints_are_kept(tmp_path: Path):
    one = session(tmp_path / "p")
    steps = one.epochs()
    for _ in range(5):
        next(steps)
    steps.close()
    kept = sorted(p.name for p in one.folder.glob("checkpoint-*"))
    assert len(kept) == sessions._KEEP


@pytest.mark.parametrize(
    "name", ["metrics.jsonl", "checkpoint-000500.safetensors", ".env", "checkpoint-1/model.bin"]
)
def test_a_training_folder_of_somebody_else_is_refused(tmp_path: Path, name: str):
    mine = tmp_path / "p.training" / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    for resume in (False, True):
        with pytest.raises(UsageError, match=r"p\.training was not made by pubc"):
            sessions.check_unfinished(tmp_path / "p", resume=resume)
        with pytest.raises(UsageError, match=r"p\.training was not made by pubc"):
            next(session(tmp_path / "p", resume=resume).epochs())
    assert mine.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["p.training"]


@pytest.mark.parametrize("name", ["model.bin", "metrics.jsonl", "manifest.json"])
def test_what_somebody_puts_into_a_training_folder_stays(tmp_path: Path, name: str):
    one = session(tmp_path / "p")
    steps = one.epochs()
    next(steps)
    mine = one.folder / name
    mine.write_text("mine")
    with pytest.warns(UserWarning, match=r"p\.training stays: it holds"):
        list(steps)
    assert verify(tmp_path / "p") == []
    assert mine.read_text() == "mine"
    assert [p for p in one.folder.rglob("*") if p.is_file()] == [mine]


def test_what_lies_in_a_training_folder_before_a_run_goes_on_stops_it(tmp_path: Path):
    one = session(tmp_path / "p")
    steps = one.epochs()
    next(steps)
    steps.close()
    (one.folder / "model.bin").write_text("mine")
    with pytest.raises(UsageError, match=r"holds model\.bin"):
        next(session(tmp_path / "p", resume=True).epochs())
