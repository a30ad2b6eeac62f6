"""`pubc collect`, `pubc zoo`, `pubc experts`: exit codes, sentences and documents."""

import json
from pathlib import Path

import pytest

import pubc
from tests.cli.calling import run_line

pytest.importorskip("mujoco")
pytestmark = pytest.mark.usefixtures("in_folder")


def test_a_collection_says_what_it_wrote(capsys, in_folder: Path):
    command = "collect hopper:medium-expert x.npz --steps-per-source 80 --seed-steps 40"
    code, out, err = run_line(command, capsys)
    assert code == 0
    assert "expert" in out
    assert "x-seed.npz" in out
    assert "steps/s" in err
    written = sorted(p.name for p in in_folder.iterdir() if p.suffix != ".json")
    assert written == ["x-seed.npz", "x.npz"]
    assert pubc.load("x.npz").steps == 160


def test_json_is_one_document_and_nothing_else(capsys):
    command = "collect hopper:medium-expert x.hdf5 --steps-per-source 30 --seed-steps 0 --json"
    code, out, err = run_line(command, capsys)
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["steps"] == 60
    assert document["seed_positives"] is None
    assert document["sources"] == ["expert", "medium"]


def test_a_custom_collection_takes_policies_shares_and_noise(capsys):
    command = (
        "collect custom x.npz --environment hopper --policy a=hopper/expert "
        "--policy b=hopper/medium --policy N=noise --share b=0.5 "
        "--action-noise b=0.3 --steps-per-source 40 --seed-steps 0"
    )
    assert run_line(command, capsys)[0] == 0
    mixed = pubc.load("x.npz")
    steps = {name: mixed[mixed.sources == name].steps for name in ("a", "b", "N")}
    assert steps == {"a": 40, "b": 20, "N": 40}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("collect ant:E+M x.npz", 2, "Did you mean 'ant:E"),
        ("collect ant:E x.npz --policy a=b", 2, "belong to the recipe custom"),
        ("collect custom x.npz", 2, "needs --environment"),
        ("collect custom x.npz --environment ant", 2, "at least one policy"),
        ("collect custom x.npz --environment ant --policy a", 2, "takes NAME=VALUE"),
        ("collect custom x.npz --environment ant --policy a=b --share a=x", 2, "NAME=NUMBER"),
        ("collect custom x.npz --environment ant --policy a=gone.pt", 2, "neither a zoo policy"),
        ("collect custom x.npz --environment ant --policy a=hopper/expert", 3, "11 observations"),
        ("collect ant:E x.npz --steps-per-source 5 --trajectories-per-source 5", 2, "either"),
        ("collect ant:E x.npz --processes 0", 2, "--processes must be at least 1"),
        ("collect trifinger-lift:mixed x.npz", 2, "lift_expert or lift"),
        ("zoo ant/exprt", 2, "Did you mean 'ant/expert'"),
        ("experts train CartPole-v1 out", 2, "vectors"),
        ("experts train trifinger-push out", 2, "not for training"),
    ],
)
def test_mistakes_are_one_sentence_and_the_right_code(words, code, said, capsys, in_folder):
    found, _, err = run_line(words, capsys)
    assert found == code
    assert said in err
    assert "Traceback" not in err
    assert not list(in_folder.iterdir())


def test_an_existing_target_needs_force(capsys, in_folder: Path):
    (in_folder / "x.npz").write_text("mine")
    command = "collect hopper:medium-expert x.npz --steps-per-source 20 --seed-steps 0"
    assert run_line(command, capsys)[0] == 2
    assert (in_folder / "x.npz").read_text() == "mine"
    code, _, err = run_line(command + " --force", capsys)
    assert code == 2
    assert "pubc did not write" in err
    assert (in_folder / "x.npz").read_text() == "mine"
    (in_folder / "x.npz").unlink()
    assert run_line(command, capsys)[0] == 0
    assert run_line(command + " --force", capsys)[0] == 0


def test_the_zoo_lists_every_card_and_measures(capsys):
    code, out, _ = run_line("zoo", capsys)
    assert code == 0
    assert "humanoid/other_expert" in out
    code, out, _ = run_line("zoo hopper/medium --measure 2 --json", capsys)
    (policy,) = json.loads(out)["policies"]
    assert policy["measured"]["trajectories"] == 2
    assert 300 < policy["measured"]["mean"] < 2500


def test_measuring_does_not_depend_on_the_number_of_processes(capsys):
    documents = [
        json.loads(run_line(f"zoo hopper/medium --measure 3 --processes {n} --json", capsys)[1])
        for n in (1, 2)
    ]
    assert documents[0] == documents[1]
