"""What every command says of the data that it is given: its cached copy, the run that kept it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.formats import save_sealed
from pubc.formats.opening import cached_copies, trusted_copies
from pubc.storage import seal
from tests.cli.calling import run_line
from tests.pu.piles import pile
from tests.reliability import quick_recipe

assert quick_recipe  # imported for its recipe
FILTER = "filter {data} --seed-episodes 0,1 --recipe quick --workers 1"
LINES = {
    "inspect": "inspect {data} --json",
    "convert": "convert {data} new.npz --json",
    "train": "train {data} --out policy --updates 1 --device cpu --json",
    "dwbc": "train mixed.npz --algo dwbc --positives {data} --out policy --updates 1 --json",
    "score": "score {data} --filter run --json",
    "filter": f"{FILTER} --out new --json",
    "plan": f"{FILTER} --dry-run --json",
    "seeds": "filter mixed.npz --seed-from {data} --recipe quick --workers 1 --out new --json",
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    mixed = pile([4, 4], steps=30, states=3)
    pubc.save(folder / "mixed.npz", mixed)
    pubc.save(folder / "mixed.lerobot", mixed, format="lerobot")
    from pubc.cli.main import main

    line = FILTER.format(data=folder / "mixed.npz")
    assert main([*line.split(), "--out", str(folder / "run"), "--json"]) == 0
    return folder


@pytest.fixture
def world(made, in_folder) -> Path:
    shutil.copytree(made, in_folder, dirs_exist_ok=True)
    return in_folder


def call(name: str, data: str, capsys) -> tuple[int, str, str]:
    return run_line(LINES[name].format(data=data), capsys)


@pytest.mark.parametrize("name", [name for name in LINES if name != "inspect"])
def test_a_cached_copy_that_was_edited_is_announced(name, world, capsys, monkeypatch):
    monkeypatch.setenv("PUBC_CACHE", str(world / "cache"))
    assert run_line("inspect mixed.lerobot --json", capsys)[0] == 0
    edit_the_copy(monkeypatch)
    code, _, err = call(name, "mixed.lerobot", capsys)
    assert code == (2 if name == "seeds" else 0), err  # all would be seeds
    announced(err, "mixed.lerobot")


def test_so_is_that_of_the_data_behind_a_run(world, capsys, monkeypatch):
    monkeypatch.setenv("PUBC_CACHE", str(world / "cache"))
    line = FILTER.format(data="mixed.lerobot")
    assert run_line(f"{line} --out judged --json", capsys)[0] == 0
    edit_the_copy(monkeypatch)
    line = "weights judged --for d3rlpy --min-segment 5 --out segments.h5 --json"
    code, _, err = run_line(line, capsys)
    assert code == 0, err
    announced(err, str(world / "mixed.lerobot"))


def edit_the_copy(monkeypatch) -> None:
    (copy,) = cached_copies.copies()
    content = bytearray((copy.path / "actions.npy").read_bytes())
    content[-4] ^= 1
    (copy.path / "actions.npy").write_bytes(content)
    monkeypatch.setattr(trusted_copies, "_believed", set())


def announced(err: str, data: str) -> None:
    (line,) = [line for line in err.splitlines() if "copy in the cache was not used" in line]
    assert line.startswith(f"pubc: {data}: ")
    assert "actions.npy" in line


@pytest.mark.parametrize("name", LINES)
def test_what_a_run_kept_must_be_as_it_left_it(name, world, capsys):
    shutil.copy("mixed.npz", "run/kept.npz")
    code, _, err = call(name, "run/kept.npz", capsys)
    assert code == 3
    assert "kept.npz is not as `pubc filter` wrote it" in err
    assert not Path("new").exists()
    assert not Path("new.npz").exists()


@pytest.mark.parametrize("name", LINES)
def test_what_an_unfinished_run_kept_is_refused(name, world, capsys):
    Path("run/manifest.json").unlink()
    code, _, err = call(name, "run/kept.npz", capsys)
    assert code == 3
    assert "the run is not finished" in err


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("suffix", [".npz", ".store"])
def test_data_with_a_manifest_must_be_as_that_says(name, suffix, world, capsys):
    data = Path(f"sealed{suffix}")
    save_sealed(data, pubc.load("mixed.npz"))
    changed = data / "actions.npy" if data.is_dir() else data
    if data.is_dir():
        np.save(changed, -np.load(changed))
    else:
        with np.load(data) as archive:
            arrays = {**archive, "actions": -archive["actions"]}
        np.savez(data, **arrays)
    code, _, err = call(name, str(data), capsys)
    assert code == 3
    assert f"{changed.name} is not as pubc wrote it" in err


def test_a_folder_of_data_may_be_added_to(world, capsys):
    save_sealed(Path("sealed.lerobot"), pubc.load("mixed.npz"), format="lerobot")
    Path("sealed.lerobot/README.md").write_text("mine")
    code, _, err = call("convert", "sealed.lerobot", capsys)
    assert (code, err) == (0, "")


def make_unsound() -> None:
    document = json.loads(Path("run/run.json").read_text())
    document |= {"sound": False, "status": "no_valley"}
    Path("run/run.json").write_text(json.dumps(document))
    shutil.copy("mixed.npz", "run/kept.npz")
    seal(Path("run"), kind="filter")


@pytest.mark.parametrize("name", LINES)
def test_what_an_unsound_run_kept_is_announced(name, world, capsys):
    make_unsound()
    code, _, err = call(name, "run/kept.npz", capsys)
    told = [line for line in err.splitlines() if "run is not sound (status no_valley)" in line]
    assert code == (2 if name == "seeds" else 0), err  # all would be seeds
    assert told
    if name == "train":
        config = json.loads(Path("policy/config.json").read_text())
        assert config["data"]["run"] == {"name": "run", "sound": False, "status": "no_valley"}


@pytest.mark.parametrize("name", LINES)
def test_so_is_what_was_converted_from_it_twice(name, world, capsys):
    make_unsound()
    assert run_line("convert run/kept.npz copy.store --json", capsys)[0] == 0
    assert run_line("convert copy.store again.hdf5 --to d4rl --json", capsys)[0] == 0
    _, _, err = call(name, "again.hdf5", capsys)
    announced_second_hand(err, "again.hdf5")
    if name == "train":
        config = json.loads(Path("policy/config.json").read_text())
        assert config["data"]["run"] == {"name": "run", "sound": False, "status": "no_valley"}


@pytest.mark.parametrize("format", ["npz", "lerobot", "minari"])
def test_so_is_a_copy_in_any_format(format, world, capsys):
    make_unsound()
    assert run_line(f"convert run/kept.npz copy.npz --to {format} --json", capsys)[0] == 0
    announced_second_hand(call("inspect", "copy.npz", capsys)[2], "copy.npz")


def announced_second_hand(err: str, data: str) -> None:
    told = f"pubc: {data} was selected by the run run, whose selection is not sound (status no_"
    assert told in err


@pytest.mark.parametrize("told", ["no run", ["a"], {"sound": "no"}, {"sound": False, "name": {}}])
def test_a_manifest_that_says_nonsense_of_a_run_stops_nothing(told, world, capsys):
    save_sealed(Path("odd.npz"), pubc.load("mixed.npz"), about={"selected_by": told})
    for name in ("convert", "train"):
        assert call(name, "odd.npz", capsys)[0] == 0


@pytest.mark.parametrize("name", ["inspect", "convert"])
@pytest.mark.parametrize("words", ["nobody's JSON", '{"kind": "another program"}'])
def test_data_beside_somebody_elses_files_is_read_as_ever(words, name, world, capsys):
    Path("theirs").mkdir()
    shutil.copy("mixed.npz", "theirs/kept.npz")
    for file in ("run.json", "manifest.json"):
        Path("theirs", file).write_text(words)
    code, _, err = call(name, "theirs/kept.npz", capsys)
    assert (code, err) == (0, "")


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("how", ["linked from the run", "linked to the run", "a chain"])
def test_a_link_hides_no_unsound_run(how, name, world, capsys):
    make_unsound()
    data = "run/kept.npz" if how == "linked from the run" else "link.npz"
    if how != "linked to the run":
        Path("run/kept.npz").rename("moved.npz")
        Path("run/kept.npz").symlink_to("../moved.npz")
    if how != "linked from the run":
        Path("link.npz").symlink_to("run/kept.npz")
    code, _, err = call(name, data, capsys)
    if how == "linked to the run":
        assert f"the selection of {world / 'run'} is not sound" in " ".join(err.split())
    else:
        assert code == 3
        assert "kept.npz is not as `pubc filter` wrote it" in err


@pytest.mark.parametrize("name", LINES)
def test_a_link_hides_no_changed_data_and_no_second_hand(name, world, capsys):
    make_unsound()
    assert run_line("convert run/kept.npz copy.npz --json", capsys)[0] == 0
    Path("link.npz").symlink_to("copy.npz")
    announced_second_hand(call(name, "link.npz", capsys)[2], "link.npz")
    with np.load("copy.npz") as archive:
        arrays = {**archive, "actions": -archive["actions"]}
    np.savez("copy.npz", **arrays)
    for made in ("new", "policy"):
        shutil.rmtree(made, ignore_errors=True)
    for made in ("new.npz", "new.npz.manifest.json"):
        Path(made).unlink(missing_ok=True)
    code, _, err = call(name, "link.npz", capsys)
    assert code == 3
    assert "copy.npz is not as pubc wrote it" in " ".join(err.split())


def test_links_to_data_and_to_its_manifest_are_read(world, capsys):
    save_sealed(Path("far/data.npz"), pubc.load("mixed.npz"))
    for name in ("data.npz", "data.npz.manifest.json"):
        Path(name).symlink_to(f"far/{name}")
    assert call("inspect", "data.npz", capsys)[0] == 0


@pytest.mark.parametrize("words", ["", "{}", "null", "[" * 100_000, "cut", "renamed", "folder"])
@pytest.mark.parametrize("name", ["inspect", "train"])
def test_a_manifest_that_was_damaged_is_not_none(words, name, world, capsys):
    save_sealed(Path("data.npz"), pubc.load("mixed.npz"))
    beside = Path("data.npz.manifest.json")
    whole = beside.read_text()
    if words == "folder":
        beside.unlink()
        beside.mkdir()
    else:
        others = {"cut": whole[:100], "renamed": whole.replace('"dataset"', '"datasat"')}
        beside.write_text(others.get(words, words))
    code, _, err = call(name, "data.npz", capsys)
    assert code == 3, err
    assert "Whether data.npz is as it was written cannot be told" in " ".join(err.split())
