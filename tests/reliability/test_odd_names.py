"""Names of files are bytes: a folder whose name is no text is read and written as any other."""

import json
import os
from pathlib import Path

import pytest

import pubc
from pubc.storage import seal
from tests.cli.calling import run
from tests.policies.sets import tiny
from tests.pu.piles import pile
from tests.reliability import quick_recipe
from tests.report.build import make_run

assert quick_recipe  # imported for its recipe


@pytest.fixture
def odd(tmp_path) -> Path:
    """A folder as another machine, with another character set, may have named it."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/M\xfcnchen"))
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes no such name")
    return folder


def test_a_run_there_is_filtered_reported_scored_and_learned_from(odd, capsys):
    pubc.save(odd / "mixed.npz", pile([4, 4], steps=30, states=2))
    words = ("--seed-episodes", "0,1", "--recipe", "quick", "--workers", "1", "--json")
    code, _, err = run(capsys, "filter", odd / "mixed.npz", "--out", odd / "run", *words)
    assert (code, "not its report" in err) == (0, False), err
    page = (odd / "run" / "report.html").read_text(encoding="utf-8")
    assert "M\\udcfcnchen" in page
    for line in (
        ("report", odd / "run"),
        ("report", odd / "run", "--out", odd / "page"),
        ("score", odd / "mixed.npz", "--filter", odd / "run", "--workers", "1"),
        ("verify", odd / "run"),
    ):
        code, _, err = run(capsys, *line)
        assert code == 0, (line[0], err)


@pytest.mark.parametrize("to", ["npz", "store", "d4rl", "minari", "lerobot"])
def test_every_kind_of_dataset_is_written_there_and_read_back(to, odd, capsys):
    pytest.importorskip("pyarrow")
    pubc.save(odd / "mixed.npz", tiny(3, 10, observations=3, actions=1))
    out = odd / (f"out.{'hdf5' if to == 'd4rl' else to}")
    for line in (("convert", odd / "mixed.npz", out, "--to", to), ("inspect", out)):
        code, _, err = run(capsys, *line)
        assert code == 0, (line[0], err)


def test_a_policy_there_is_trained_and_exported(odd, capsys):
    pubc.save(odd / "set.npz", tiny(6, 10, observations=3, actions=1))
    size = ("--updates", "4", "--batch-size", "8", "--device", "cpu")
    for line in (
        ("train", odd / "set.npz", "--out", odd / "policy", *size),
        ("export", odd / "policy", odd / "policy.pt"),
        ("report", odd / "policy", "--out", odd / "page"),
    ):
        code, _, err = run(capsys, *line)
        assert code == 0, (line[0], err)


def test_half_a_character_in_a_strangers_run_is_spelled_out_on_the_page(tmp_path, capsys):
    path = make_run(tmp_path / "run", 12, 1)
    document = json.loads((path / "run.json").read_text())
    document["truth_report"] = {**(document["truth_report"] or {}), "recall": "\ud800"}
    (path / "run.json").write_text(json.dumps(document))
    seal(path, kind="filter")
    code, _, err = run(capsys, "report", path, "--out", tmp_path / "page")
    assert code == 0, err
