"""A run says enough of itself to be made again, to the last bit (R16)."""

import json

import pytest

from pubc.cli.main import main
from pubc.storage import read_manifest
from tests.reliability.fault_scenes import write_pile

TOLD_ANEW = ("run.json", "report.html", "report.md", "report.json", "rounds.jsonl")
"""What says when the run was made and how long it took."""


@pytest.mark.usefixtures("brisk")
def test_a_run_made_again_from_what_it_says_has_the_same_digests(tmp_path, capsys):
    write_pile(tmp_path)
    asked = ("--seed-episodes", "0,1", "--random-seed", "11", "--json")
    first = ("filter", str(tmp_path / "mixed.npz"), "--out", str(tmp_path / "first"), *asked)
    assert main(list(first)) == 0
    told = json.loads((tmp_path / "first" / "run.json").read_text())
    words = [
        "filter", told["data"]["path"], "--out", str(tmp_path / "second"), "--json",
        "--seed-episodes", ",".join(map(str, told["seed"]["ids"])),
        "--recipe", told["recipe"]["name"], "--random-seed", str(told["random_seed"]),
    ]  # fmt: skip
    assert main(words) == 0
    capsys.readouterr()
    one, two = (read_manifest(tmp_path / name)["files"] for name in ("first", "second"))
    assert one.keys() == two.keys()
    same = [name for name in one if name not in TOLD_ANEW]
    assert {"scores.csv", "keep.json", "kept.npz"} <= set(same)
    assert {name: one[name]["sha256"] for name in same} == {
        name: two[name]["sha256"] for name in same
    }
