"""Kill it, stop it, run it twice: a filter run ends up the same.

Goals R5 and R17 of docs/dev/check-full.md. What is judged is the end of a run, not its selection,
so CI uses `auto` with little training in forks of a warm process; the fifty kills of
`make check-full` strike `auto` itself, started anew.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import pubc
import tests.reliability.quick_recipe  # noqa: F401
from pubc.cli.main import main
from pubc.labels import Labels, Mark, save_labels
from pubc.storage import verify
from tests.cli.filtering.test_filter_command import outputs
from tests.pu.piles import pile

CODE = "import sys; from pubc.cli.main import main; sys.exit(main())"
ROOT = Path(__file__).parents[3]
BRISK, USUAL = (sys.executable, "-m", "tests.brisk"), (sys.executable, "-c", CODE)


def start(*words: str, by: tuple[str, ...]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*by, "filter", *words, "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(*words: str, by: tuple[str, ...]) -> int:
    process = start(*words, by=by)
    _, error = process.communicate(timeout=240)
    assert "Traceback" not in error, error
    return process.returncode


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "mixed.npz"
    pubc.save(path, pile([8, 8], steps=200, states=3))
    return path


@pytest.fixture(scope="module")
def quick(warm: list[str]) -> tuple[str, ...]:
    return (*warm, "pubc")


@pytest.fixture(scope="module")
def whole(data: Path, quick) -> tuple[Path, float]:
    return uninterrupted(data, data.parent / "whole", quick)


def uninterrupted(data: Path, out: Path, by: tuple[str, ...]) -> tuple[Path, float]:
    """A run without a kill, and how long it took after its folder appeared."""
    process = start(str(data), "--out", str(out), *SEEDS, by=by)
    while not (out / "run.json").exists() and process.poll() is None:
        time.sleep(0.01)
    began = time.monotonic()
    _, error = process.communicate(timeout=240)
    assert process.returncode == 0, error
    return out, time.monotonic() - began


SEEDS = ("--seed-episodes", "0,1,2", "--random-seed", "3")


def kill_and_resume(
    data: Path,
    out: Path,
    seconds: float,
    kills: int,
    draw: random.Random,
    by: tuple[str, ...],
) -> int:
    """Start once, then kill and resume until that many kills have struck; returns hits."""
    words: tuple[str, ...] = (str(data), "--out", str(out), *SEEDS)
    hits = 0
    for _ in range(kills):
        process = start(*words, by=by)
        while not (out / ".lock").exists() and process.poll() is None:
            time.sleep(0.005)
        time.sleep(draw.uniform(0, seconds))
        process.kill()
        process.communicate()
        hits += process.returncode == -signal.SIGKILL
        if (out / "run.json").exists():
            words = ("--resume", str(out))
    assert finish(*words, by=by) == 0
    return hits


def struck(
    data: Path,
    whole: tuple[Path, float],
    tmp_path: Path,
    kills: int,
    by: tuple[str, ...],
) -> None:
    reference, seconds = whole
    draw = random.Random(7)
    hits = number = 0
    while hits < kills:
        number += 1
        out = tmp_path / f"run-{number}"
        # A few kills for each run: more, and progress would have to outrun them.
        hits += kill_and_resume(data, out, 0.6 * seconds, min(3, kills - hits), draw, by)
        assert outputs(out) == outputs(reference)
        assert not verify(out)
        assert not list(out.rglob(".*tmp*"))


@pytest.mark.timeout(600)
def test_four_kills_change_nothing(data: Path, whole, tmp_path: Path, quick):
    struck(data, whole, tmp_path, 4, quick)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_fifty_kills_change_nothing(data: Path, tmp_path: Path):
    struck(data, uninterrupted(data, tmp_path / "whole", USUAL), tmp_path, 50, USUAL)


@pytest.mark.parametrize(
    # The others reach the same handler: tests/cli/test_startup.py strikes with each.
    "name",
    ["SIGINT", *(pytest.param(name, marks=pytest.mark.slow) for name in ("SIGTERM", "SIGHUP"))],
)
def test_a_polite_stop_is_prompt_and_resumable(data: Path, whole, tmp_path: Path, quick, name: str):
    out = tmp_path / "run"
    process = start(str(data), "--out", str(out), *SEEDS, by=quick)
    while not (out / "run.json").exists():
        time.sleep(0.01)
    time.sleep(0.3 * whole[1])
    began = time.monotonic()
    process.send_signal(getattr(signal, name))
    _, error = process.communicate(timeout=60)
    if process.returncode != 0:  # else it was done before the signal came
        assert time.monotonic() - began < 10
        assert process.returncode == 5, error
        assert f"pubc filter --resume {out}" in error
        assert "Traceback" not in error
        assert finish("--resume", str(out), by=quick) == 0
    assert outputs(out) == outputs(whole[0])


def test_a_second_run_in_the_same_folder_is_refused(data: Path, tmp_path: Path, quick):
    out = tmp_path / "run"
    process = start(str(data), "--out", str(out), *SEEDS, by=BRISK)
    while not (out / "run.json").exists():
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        second = start("--resume", str(out), by=quick)
        document, error = second.communicate(timeout=120)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert second.returncode == 4, error
    assert json.loads(document)["error"]["kind"] == "LockedError"
    process.communicate(timeout=240)
    assert process.returncode == 0


def test_changed_data_cannot_be_resumed(data: Path, tmp_path: Path, capsys):
    moved = tmp_path / "mixed.npz"
    pubc.save(moved, pubc.load(data))
    out = tmp_path / "run"
    assert main(["filter", str(moved), "--out", str(out), *SEEDS, "--recipe", "quick"]) in (0, 6)
    (out / "manifest.json").rename(out / "coming.json")
    pubc.save(moved, pile([8, 8], steps=200, states=3, random_seed=1), overwrite=True)
    assert main(["filter", "--resume", str(out)]) == 2
    assert "changed since the run began" in capsys.readouterr().err


def test_a_network_that_changed_in_an_unfinished_run_is_named(data: Path, tmp_path: Path, capsys):
    out = tmp_path / "run"
    assert main(["filter", str(data), "--out", str(out), *SEEDS, "--recipe", "quick"]) in (0, 6)
    (out / "manifest.json").rename(out / "coming.json")
    network = next((out / "classifiers").glob("*.safetensors"))
    changed = bytearray(network.read_bytes())
    changed[-3] ^= 1
    network.write_bytes(bytes(changed))
    assert main(["filter", "--resume", str(out)]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert f"holds classifiers/{network.name}, which is not as this unfinished run wrote" in said


def test_an_unfinished_run_whose_words_were_changed_does_not_go_on(data, tmp_path, capsys):
    out = tmp_path / "run"
    assert main(["filter", str(data), "--out", str(out), *SEEDS, "--recipe", "quick"]) in (0, 6)
    (out / "manifest.json").rename(out / "coming.json")
    document = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps({**document, "status": "running"}))
    assert main(["filter", "--resume", str(out)]) == 3
    assert "run.json: not as pubc wrote it" in " ".join(capsys.readouterr().err.split())
    assert not (out / "manifest.json").exists()


@pytest.mark.parametrize("what", ["arrays", "line"])
def test_a_round_that_changed_in_an_unfinished_run_is_named(data, tmp_path, capsys, what: str):
    out = tmp_path / "run"
    assert main(["filter", str(data), "--out", str(out), *SEEDS, "--recipe", "quick"]) in (0, 6)
    (out / "manifest.json").rename(out / "coming.json")
    arrays, lines = out / "rounds/round-001.npz", out / "rounds.jsonl"
    if what == "arrays":
        with np.load(arrays) as file:
            held = dict(file)
        held["selected"][:], held["confidence"][:] = True, 0.99
        np.savez(arrays, **held)
    else:
        first, *rest = lines.read_text().splitlines()
        edited = json.dumps({**json.loads(first), "threshold": 0.01})
        lines.write_text("\n".join([edited, *rest, ""]))
    assert main(["filter", "--resume", str(out)]) == 3
    said = " ".join(capsys.readouterr().err.split())
    name = "rounds/round-001.npz" if what == "arrays" else "rounds.jsonl"
    assert f"holds {name}, which is not as this unfinished run wrote it" in said
    assert not (out / "manifest.json").exists()


@pytest.mark.parametrize("what", ["rounds", "run.json", "networks", "a network renamed"])
def test_parts_of_another_run_are_not_taken_for_its_own(data, tmp_path, capsys, what: str):
    other = tmp_path / "other.npz"
    pubc.save(other, pile([8, 8], steps=200, states=3, random_seed=5))
    runs = tmp_path / "run", tmp_path / "stranger"
    for file, out in zip((data, other), runs, strict=True):
        words = ["filter", str(file), "--out", str(out), *SEEDS, "--recipe", "quick"]
        assert main(words) in (0, 6)
        (out / "manifest.json").rename(out / "coming.json")
    out, stranger = runs
    if what == "rounds":
        shutil.copytree(stranger / "rounds", out / "rounds", dirs_exist_ok=True)
        shutil.copy(stranger / "rounds.jsonl", out)
    elif what == "run.json":
        shutil.copy(stranger / "run.json", out)
    elif what == "networks":
        shutil.copytree(stranger / "classifiers", out / "classifiers", dirs_exist_ok=True)
    else:
        first, *_ = sorted((out / "classifiers").iterdir())
        shutil.copy(first, first.with_name("round-001-member-7.safetensors"))
    capsys.readouterr()
    assert main(["filter", "--resume", str(out)]) == 3
    said = " ".join(capsys.readouterr().err.split())
    assert "which is not as this unfinished run wrote it" in said
    assert not (out / "manifest.json").exists()


def test_marks_that_were_changed_in_an_unfinished_run_are_not_sealed(data, tmp_path, capsys):
    out, labels = tmp_path / "run", tmp_path / "labels.json"
    save_labels(labels, Labels((Mark("0", "good"), Mark("1", "good"), Mark("9", "bad"))))
    words = ["filter", str(data), "--out", str(out), "--labels", str(labels), "--recipe", "quick"]
    assert main(words) in (0, 6)
    (out / "manifest.json").rename(out / "coming.json")
    told = (out / "labels.json").read_bytes()
    fewer = Labels((Mark("0", "good"), Mark("1", "good")))
    save_labels(out / "labels.json", fewer)
    assert main(["filter", "--resume", str(out)]) == 3
    assert "holds labels.json, which is not as" in " ".join(capsys.readouterr().err.split())
    (out / "labels.json").write_bytes(told)
    save_labels(labels, fewer)
    assert main(["filter", "--resume", str(out)]) == 2
    assert "changed since the run began" in capsys.readouterr().err
