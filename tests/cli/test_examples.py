"""Every example at the end of a `--help` runs as it stands there."""

import os
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import pubc
from pubc.cli.commands import COMMANDS
from pubc.cli.examples import EXAMPLES
from pubc.cli.filtering.demo_command import mixture
from pubc.cli.main import main
from pubc.labels import Labels, Mark, save_labels
from tests.brisk import quickened

LINES = [(name, line) for name, lines in EXAMPLES.items() for line in lines]
SERVED = "review"
"""A server ends when it is interrupted; tests/cli/filtering/test_review_command.py does that."""
NEEDS = {"collect": "mujoco", "evaluate": "mujoco", "compare": "mujoco", "zoo": "mujoco",
         "experts": "stable_baselines3"}  # fmt: skip
SLOW = tuple(f"pubc {word}" for word in
             ("demo", "collect", "evaluate", "compare", "zoo ant", "experts"))  # fmt: skip


def test_every_command_has_examples_of_itself():
    assert set(EXAMPLES) == set(COMMANDS)
    for name, line in LINES:
        assert shlex.split(line)[:2] == ["pubc", name]


def short(mixed: pubc.TrajectorySet, steps: int) -> pubc.TrajectorySet:
    """The first steps of every trajectory: enough for every command, in less time."""
    seen, acted, earned = (
        getattr(mixed.columns, name).reshape(len(mixed), mixed.lengths[0], -1)[:, :steps]
        for name in ("observations", "actions", "rewards")
    )
    made = pubc.from_arrays(seen, acted, rewards=earned[..., 0], sources=mixed.sources)
    return replace(made, metadata=mixed.metadata)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the examples speak of."""
    folder = tmp_path_factory.mktemp("examples")
    mixed = short(mixture(), 40)
    pubc.save(folder / "mixed.npz", mixed)
    expert = (mixed.sources == "expert").nonzero()[0]
    pubc.save(folder / "good.npz", mixed[expert[:3]])
    good = [str(mixed.ids[n]) for n in expert[:4]]
    named = ",".join(good)
    save_labels(folder / "labels.json", Labels(tuple(Mark(name, "good") for name in good)))
    for out, seed in (("run", "0"), ("other-run", "1")):
        words = ["--seed-episodes", named, "--out", str(folder / out), "--random-seed", seed]
        with quickened():
            assert main(["filter", str(folder / "mixed.npz"), *words, "--json"]) == 0
    policy = ["--out", str(folder / "policy"), "--epochs", "2", "--json"]
    assert main(["train", str(folder / "run"), *policy]) == 0
    return folder


def runs(name: str, line: str) -> object:
    marks = [pytest.mark.slow] if line.startswith(SLOW) else []
    return pytest.param(name, line, marks=marks, id=line)


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize(("name", "line"), [runs(*pair) for pair in LINES if pair[0] != SERVED])
def test_an_example_runs(name: str, line: str, prepared: Path, tmp_path: Path, monkeypatch, capsys):
    pytest.importorskip(NEEDS.get(name, "numpy"))
    if line.endswith(".onnx"):
        pytest.importorskip("onnxruntime")
    if "lerobot" in line:
        pytest.importorskip("pyarrow")
    work = tmp_path / "work"
    shutil.copytree(prepared, work)
    monkeypatch.chdir(work)
    monkeypatch.setenv("PUBC_CACHE", str(tmp_path / "cache"))
    words, _, redirected = line.partition(" > ")
    _, *arguments = shlex.split(words)
    if "--out" in arguments and name not in ("reproduce", "score"):
        shutil.rmtree(arguments[arguments.index("--out") + 1], ignore_errors=True)
    capsys.readouterr()
    assert main(arguments) == 0, capsys.readouterr().err
    if redirected:
        assert capsys.readouterr().out.strip()
    else:
        assert set(os.listdir(work)) >= {"mixed.npz", "good.npz"}
