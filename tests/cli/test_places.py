"""Every place that a command writes to: what is somebody else's there stays."""

import contextlib
import dataclasses
import importlib
import shutil
from pathlib import Path

import pytest

import pubc
from pubc.cli.commands import COMMANDS, module_of
from pubc.cli.main import main
from pubc.policies.policy_folder import save
from pubc.storage import verify
from tests.policies.sets import random_policy
from tests.pu.piles import pile
from tests.reliability import quick_recipe

assert quick_recipe  # imported for its recipe

FILTER = "filter d.npz --seed-episodes 0,1 --recipe quick --workers 1"
PLAY = "--env Pendulum-v1 --episodes 1"
WRITTEN = {
    ("filter", "out"): f"{FILTER} --out folder",
    ("score", "out"): "score d.npz --filter run --out file.csv",
    ("weights", "out"): "weights run --for torch --out file.npy",
    ("convert", "target"): "convert d.npz file.npz",
    ("inspect", "plot"): "inspect d.npz --plot file.png",
    ("report", "out"): "report run --out folder",
    ("train", "out"): "train d.npz --out folder --updates 1 --device cpu",
    ("export", "out"): "export policy file.pt",
    ("evaluate", "frames"): f"evaluate policy {PLAY} --frames folder",
    ("evaluate", "record"): f"evaluate policy {PLAY} --record file.jsonl",
    ("compare", "plot"): f"compare policy other {PLAY} --plot file.png",
    ("compare", "record"): f"compare policy other {PLAY} --record file.jsonl",
    ("collect", "out"): "collect ant:E+W file.npz --trajectories-per-source 1",
}
"""A command line for each; the last word that begins with `folder` or `file` is the place."""
ELSEWHERE = {
    ("demo", "out"): "tests/cli/filtering/test_demo_command.py",
    ("review", "out"): "tests/review/test_filter_job.py",
    ("review", "labels"): "tests/review/test_desk.py",
    ("report", "figures"): "tests/report/test_write_report.py",
    ("experts", "out"): "tests/collect/test_train_experts.py",
    ("train", "tensorboard"): "written by TensorBoard itself, under names of its own",
    ("reproduce", "out"): "tests/cli/test_reproduce_command.py",
}
"""Folders into which several things go, each of which is looked at by itself."""
INSIDE = [
    *(line.replace(" folder", " run/folder").replace(" file.", " run/file.")
      for line in WRITTEN.values()),
    "report run --figures policy/figures",
    "train d.npz --out new --tensorboard run",
    "train d.npz --out new --tensorboard run/classifiers",
    "review d.npz --out run/marks",
    "review d.npz --labels run/marks.json",
    "demo --out run/demo",
    "experts train Pendulum-v1 run/experts",
]  # fmt: skip
"""Command lines whose result would lie in a folder that pubc sealed."""
WORLD = ("d.npz", "run", "policy", "other")
READ = {
    ("report", "paths"), ("score", "filter"), ("weights", "run_folder"), ("filter", "resume"),
    ("export", "policy"), ("train", "weights"), ("verify", "path"), ("collect", "policies"),
}  # fmt: skip
"""Places that are only read, or gone on with."""


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    pubc.save(folder / "d.npz", pile([4, 4], steps=30, states=3))
    for seed, name in enumerate(("policy", "other")):
        save(folder / name, random_policy(3, 1, seed=seed), about={"learner": "bc"})
    with contextlib.chdir(folder):
        assert main([*FILTER.split(), "--out", "run", "--json"]) == 0
    return folder


def place_of(line: str, world: Path, folder: Path) -> Path:
    """The place of a command line, with all that it reads beside it."""
    for name in WORLD:
        (folder / name).symlink_to(world / name)
    return folder / next(w for w in line.split() if w.startswith(("folder", "file")))


def occupied(line: str, world: Path, folder: Path) -> Path:
    """The place of a command line, with something of somebody else's there."""
    place = place_of(line, world, folder)
    if place.suffix:
        place.write_text("mine")
    else:
        place.mkdir()
        (place / "thesis.txt").write_text("mine")
    return place


def contents(folder: Path) -> dict[str, str]:
    """Every name below a folder, with what is there."""
    found = {}
    for path in sorted(folder.rglob("*")):
        told = f"to {path.readlink()}" if path.is_symlink() else ""
        found[str(path.relative_to(folder))] = told or ("" if path.is_dir() else path.read_text())
    return found


@pytest.mark.parametrize("forced", [False, True], ids=["", "--force"])
@pytest.mark.parametrize("line", WRITTEN.values(), ids=lambda line: " ".join(line.split()[::4]))
def test_what_is_somebody_elses_stays(line, forced, world, tmp_path, capsys):
    place = occupied(line, world, tmp_path)
    with contextlib.chdir(tmp_path):
        code = main([*line.split(), *["--force"] * forced])
    told = " ".join(capsys.readouterr().err.split())
    assert code in (2, 3), told
    assert place.name in told or "--force" in told
    kept = place if place.suffix else place / "thesis.txt"
    assert kept.read_text() == "mine"
    assert {path.name for path in tmp_path.iterdir()} == {*WORLD, place.name}
    if not place.suffix:
        assert [path.name for path in place.iterdir()] == ["thesis.txt"]
    shutil.rmtree(tmp_path)


def refused(words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a command line says that is refused and leaves everything as it was."""
    before = contents(folder)
    with contextlib.chdir(folder):
        code = main(words)
    told = " ".join(capsys.readouterr().err.split())
    assert code in (2, 3), told
    assert contents(folder) == before
    return told


@pytest.mark.parametrize("forced", [False, True], ids=["", "--force"])
@pytest.mark.parametrize(
    "line",
    [line for line in WRITTEN.values() if " folder" in line],
    ids=lambda line: " ".join(line.split()[::4]),
)
def test_hidden_names_are_somebody_elses_too(line, forced, world, tmp_path, capsys):
    place = place_of(line, world, tmp_path)
    (place / ".git").mkdir(parents=True)
    (place / ".git" / "HEAD").write_text("mine")
    (place / ".env").write_text("mine")
    refused([*line.split(), *["--force"] * forced], tmp_path, capsys)


@pytest.mark.parametrize("forced", [False, True], ids=["", "--force"])
@pytest.mark.parametrize("line", WRITTEN.values(), ids=lambda line: " ".join(line.split()[::4]))
def test_a_link_is_neither_followed_nor_replaced(line, forced, world, tmp_path, capsys):
    place = place_of(line, world, tmp_path)
    target = tmp_path / f"target{place.suffix}"
    if place.suffix:
        target.write_text("mine")
    else:
        target.mkdir()
    place.symlink_to(target.name)
    refused([*line.split(), *["--force"] * forced], tmp_path, capsys)


TRAIN = WRITTEN["train", "out"]
SCORE = f"{WRITTEN['score', 'out']} --engine processes --workers 1"
COLLECT = WRITTEN["collect", "out"]
BESIDE = [
    (TRAIN, "folder.training", "metrics.jsonl"),
    (TRAIN, "folder.training", "checkpoint-000500.safetensors"),
    (f"{TRAIN} --resume", "folder.training", "checkpoint-000500.safetensors"),
    (f"{TRAIN} --resume", "folder.training", ".env"),
    (f"{TRAIN} --random-seeds 0,1", "folder.training", "metrics.jsonl"),
    (f"{TRAIN} --random-seeds 0,1 --resume", "folder.training", "checkpoint-000501.safetensors"),
    (SCORE, ".file.csv.shards", "thesis"),
    (SCORE, ".file.csv.shards", ".git/HEAD"),
    (COLLECT, ".file.npz.parts", "00-E-0000000x1.safetensors"),
    (COLLECT, ".file.npz.parts", "plan.json"),
    (COLLECT, ".file.npz.parts", ".lock"),
]
"""Command lines, the folder beside the result that each works in, and a name inside it."""


@pytest.mark.parametrize("forced", [False, True], ids=["", "--force"])
@pytest.mark.parametrize("linked", [False, True], ids=["", "link"])
@pytest.mark.parametrize(("line", "beside", "name"), BESIDE)
def test_a_folder_beside_the_result_that_is_somebody_elses_stays(
    line, beside, name, linked, forced, world, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("pubc.formats.read", no_work)
    monkeypatch.setattr("pubc.collect.mixtures.WorkerPool", no_work)
    place_of(line, world, tmp_path)
    mine = tmp_path / ("elsewhere" if linked else beside) / name
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    if linked:
        (tmp_path / beside).symlink_to("elsewhere")
    told = refused([*line.split(), *["--force"] * forced], tmp_path, capsys)
    assert f"{beside} {'is not a folder' if linked else 'was not made by pubc'}" in told


def no_work(*given, **named):
    raise AssertionError("work was done")


def test_every_path_of_every_command_is_known_here():
    found = set()
    for name in COMMANDS:
        command = importlib.import_module(module_of(name)).COMMAND
        if dataclasses.is_dataclass(command):
            fields = dataclasses.fields(command)
            found |= {(name, field.name) for field in fields if "Path" in str(field.type)}
    assert found == {*WRITTEN, *ELSEWHERE, *READ}


@pytest.mark.parametrize("line", WRITTEN.values(), ids=lambda line: " ".join(line.split()[::4]))
def test_a_foreign_place_is_refused_before_any_work(line, world, tmp_path, capsys, monkeypatch):
    """Nothing is read, played or trained for a result that could not be kept (L7)."""
    for place in (
        "pubc.formats.read", "pubc.formats.opening.open_dataset.open_dataset",
        "pubc.acting.evaluate.evaluate", "pubc.collect.mixtures.WorkerPool",
        "pubc.policies.export_policy.torch.jit.trace",
    ):  # fmt: skip
        monkeypatch.setattr(place, no_work)
    occupied(line, world, tmp_path)
    forced = ["--force"] if "--frames" not in line and "--record" not in line else []
    with contextlib.chdir(tmp_path):
        code = main([*line.split(), *forced])
    assert code in (2, 3), capsys.readouterr().err


@pytest.mark.parametrize("line", INSIDE, ids=lambda line: " ".join(line.split()[::4]))
def test_nothing_goes_into_a_sealed_folder(line, world, capsys):
    """`pubc verify` would call the folder damaged."""
    with contextlib.chdir(world):
        assert main(line.split()) == 2
        told = capsys.readouterr().err
        assert "lies inside" in told.splitlines()[-1]
        assert not any(verify(world / name) for name in WORLD)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (f"{FILTER.replace('d.npz', 'run/kept.npz')} --out run", "holds run/kept.npz"),
        ("convert d.npz d.npz", "d.npz is what is read"),
        ("convert run/kept.npz run", "holds run/kept.npz"),
        ("score d.npz --filter run --out d.npz", "d.npz is what is read"),
        ("train d.npz --positives policy/x.npz --out policy", "holds policy/x.npz"),
    ],
)
def test_a_result_does_not_replace_its_source(line, told, world, capsys):
    with contextlib.chdir(world):
        assert main([*line.split(), "--force"]) == 2
        assert told in capsys.readouterr().err
        assert not any(verify(world / name) for name in WORLD)


@pytest.mark.parametrize(
    "line",
    [
        f"compare policy other {PLAY} --plot x.png --record x.png",
        f"compare policy other {PLAY} --plot x.png --record x.png/r.jsonl",
        f"evaluate policy {PLAY} --frames y.gif --record y.gif",
        f"evaluate policy {PLAY} --frames z --record ./z/r.jsonl",
        f"evaluate policy {PLAY} --frames z/a --record z",
        "report run --out new --figures new",
        "report run --out new --figures new/figures",
        "report policy other --figures policy-vs-other-report",
        f"{TRAIN} --tensorboard folder",
        f"{TRAIN} --tensorboard folder/events",
        f"{TRAIN} --tensorboard folder.training",
        f"{TRAIN} --random-seeds 0,1 --tensorboard folder/seed-1/events",
    ],
)
def test_each_result_of_a_command_has_a_place_of_its_own(line, world, capsys, monkeypatch):
    for place in ("pubc.formats.read", "pubc.acting.evaluate.evaluate"):
        monkeypatch.setattr(place, no_work)
    before = {*world.rglob("*")}
    with contextlib.chdir(world):
        assert main(line.split()) == 2
    assert "needs a place of its own" in capsys.readouterr().err
    assert {*world.rglob("*")} == before


def test_a_folder_for_figures_may_hold_the_report_too(world):
    with contextlib.chdir(world):
        assert main(["report", "run", "--out", "both/report", "--figures", "both", "--json"]) == 0


def test_the_report_of_a_run_goes_into_it_as_ever(world):
    with contextlib.chdir(world):
        assert main(["report", "run", "--json"]) == 0
    assert not verify(world / "run")
