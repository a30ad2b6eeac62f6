"""A run folder may come from a stranger: it is refused in words, never by a crash (L5, L6)."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.api.expert_finder import ExpertFinder
from pubc.errors import DataError
from pubc.policies.policy_folder import save
from pubc.storage import seal
from tests.cli.calling import run
from tests.policies.sets import random_policy
from tests.pu.piles import pile
from tests.reliability import quick_recipe
from tests.report.build import make_run

assert quick_recipe  # imported for its recipe


def edit(path, key: str, value) -> None:
    """Change a key of run.json, and seal the folder anew as its owner could."""
    file = path / "run.json"
    document = json.loads(file.read_text())
    place = document
    *outer, last = key.split(".")
    for word in outer:
        place = place[word]
    place[last] = value
    file.write_text(json.dumps(document))
    seal(path, kind="filter")


@pytest.mark.parametrize(
    "key",
    ["data", "data.trajectories", "kept", "kept_path", "round", "quality", "advice", "seed",
     "recipe", "settings", "times", "threshold", "status", "random_seed", "problems"],
)  # fmt: skip
@pytest.mark.parametrize("value", [[], {"a": 1}, "text", -7, True], ids=str)
def test_odd_types_in_the_document_are_refused_in_words(key, value, tmp_path, capsys):
    path = make_run(tmp_path / "run", 12, 1)
    edit(path, key, value)
    code, _, err = run(capsys, "report", path, "--out", tmp_path / "page")
    assert code in (0, 2, 3), err
    assert "fault in pubc itself" not in err


@pytest.mark.parametrize(
    ("key", "value"),
    [("problems", [{"outcome": "warned"}]), ("problems", ["odd"]), ("truth_report", {"a": 1})],
    ids=str,
)
def test_what_a_page_shows_and_the_document_lacks_is_told(key, value, tmp_path, capsys):
    path = make_run(tmp_path / "run", 12, 1)
    edit(path, key, value)
    code, _, err = run(capsys, "report", path, "--out", tmp_path / "page")
    assert code == 3, err
    assert "pubc verify" in err


def promise(shape: str) -> bytes:
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode()


@pytest.mark.parametrize("how", ["truncated", "empty", "header", "packed", "gone"])
def test_a_damaged_round_is_refused_in_words(how, tmp_path, capsys):
    import zipfile

    path = make_run(tmp_path / "run", 12, 1)
    file = path / "rounds" / "round-001.npz"
    content = file.read_bytes()
    if how == "truncated":
        file.write_bytes(content[: len(content) // 2])
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "header":
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr("confidence.npy", promise("(1000000000000,)"))
    elif how == "packed":
        np.savez_compressed(file, confidence=np.zeros((3, 1 << 20)))
    else:
        file.unlink()
    seal(path, kind="filter")
    code, _, err = run(capsys, "report", path, "--out", tmp_path / "page")
    assert code == 3, err


def test_a_field_beyond_the_limit_of_csv_and_deep_json_are_refused(tmp_path, capsys):
    path = make_run(tmp_path / "run", 12, 1)
    scores, rounds = path / "scores.csv", path / "rounds.jsonl"
    text = scores.read_text()
    scores.write_text(text.replace("demo_1,", "x" * 200_000 + ",", 1))
    seal(path, kind="filter")
    assert run(capsys, "report", path, "--out", tmp_path / "page")[0] == 3
    scores.write_text(text)
    rounds.write_text("[" * 100_000 + "]" * 100_000 + "\n")
    seal(path, kind="filter")
    assert run(capsys, "report", path, "--out", tmp_path / "page")[0] == 3


def test_training_refuses_swapped_trajectories_and_names_them(tmp_path, capsys):
    path = make_run(tmp_path / "run", 12, 1)
    document = json.loads((path / "run.json").read_text())
    kept = path / "kept.npz"
    if not kept.exists():
        kept.write_bytes(b"PK")
    edit(path, "kept_path", "kept.npz")
    assert document
    kept.write_bytes(b"PK swapped")
    code, _, err = run(capsys, "train", path, "--out", tmp_path / "policy")
    assert code == 3
    assert "kept.npz is not as `pubc filter` wrote it" in err


def users(path, folder):
    """Every command that believes a finished run."""
    return {
        "score": ("score", folder / "absent.npz", "--filter", path),
        "weights": ("weights", path, "--for", "torch", "--out", folder / "weights.npy"),
        "train": ("train", path, "--out", folder / "policy"),
        "train --weights": ("train", "--weights", path, "--out", folder / "policy"),
        "report": ("report", path),
        "report --out": ("report", path, "--out", folder / "page"),
        "review": ("review", path, "--no-browser"),
    }


USERS = list(users("", Path()))


@pytest.mark.parametrize("user", USERS)
def test_an_edited_document_is_believed_by_nobody(user, tmp_path, capsys):
    path = make_run(tmp_path / "run", 12, 1)
    document = json.loads((path / "run.json").read_text())
    document |= {"network_threshold": -9, "sound": True}
    (path / "run.json").write_text(json.dumps(document))
    code, _, err = run(capsys, *users(path, tmp_path)[user])
    assert code == 3, err
    assert "run.json is not as `pubc filter` wrote it" in err
    assert [file.name for file in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize("user", USERS)
def test_a_run_without_a_manifest_is_not_finished(user, tmp_path, capsys):
    path = make_run(tmp_path / "run", 12, 1)
    (path / "manifest.json").unlink()
    code, _, err = run(capsys, *users(path, tmp_path)[user])
    assert code == 3, err
    assert f"the run is not finished. Go on with: pubc filter --resume {path}" in err
    assert [file.name for file in tmp_path.iterdir()] == ["run"]
    assert not (path / "report.html").exists()


@pytest.mark.parametrize("how", ["edited", "no manifest"])
def test_a_finder_is_not_loaded_from_such_a_run(how, tmp_path):
    path = make_run(tmp_path / "run", 12, 1)
    if how == "edited":
        with (path / "run.json").open("a") as file:
            file.write("\n")
    else:
        (path / "manifest.json").unlink()
    words = {"edited": r"run\.json is not as", "no manifest": "the run is not finished"}
    with pytest.raises(DataError, match=words[how]):
        ExpertFinder.load(path)


def test_going_on_with_a_finished_run_names_what_changed(tmp_path, capsys):
    path = make_run(tmp_path / "run", 12, 1)
    assert run(capsys, "filter", "--resume", path)[0] == 0
    with (path / "scores.csv").open("a") as file:
        file.write("\n")
    code, _, err = run(capsys, "filter", "--resume", path)
    assert code == 3
    assert "scores.csv is not as" in err


def test_an_unsound_run_is_announced_by_every_command_that_uses_it(capsys, tmp_path):
    data, path = tmp_path / "one.npz", tmp_path / "run"
    pubc.save(data, pile([8], steps=30, states=3, actions=1))
    words = ("filter", data, "--out", path, "--seed-episodes", "0,1", "--recipe", "quick")
    assert run(capsys, *words, "--workers", "1")[0] == 0
    status = json.loads((path / "run.json").read_text())["status"]
    trained = ("--updates", "1", "--device", "cpu")
    for words in (
        ("filter", "--resume", path),
        ("score", data, "--filter", path),
        ("report", path, "--out", tmp_path / "page"),
        ("weights", path, "--for", "torch", "--out", tmp_path / "weights.npy"),
        ("train", path, "--out", tmp_path / "policy", *trained),
        ("train", data, "--weights", path, "--out", tmp_path / "other", *trained),
    ):
        code, _, err = run(capsys, *words)
        assert code == 0, err
        assert f"is not sound (status {status})" in " ".join(err.split()), words
    played = ("--env", "Pendulum-v1", "--episodes", "1")
    policy, other = tmp_path / "policy", tmp_path / "other"
    for words, told in (
        (("export", policy, tmp_path / "policy.pt"), {policy}),
        (("evaluate", policy, *played), {policy}),
        (("compare", policy, other, *played), {policy, other}),
        (("report", policy, "--out", tmp_path / "learned"), {policy}),
    ):
        code, _, err = run(capsys, *words)
        assert code == 0, err
        for name in told:
            said = (
                f"{name} learned from the run run, whose selection is not sound (status {status})"
            )
            assert said in " ".join(err.split()), words
    provenance = json.loads((policy / "config.json").read_text())["data"]["run"]
    assert provenance == {"name": "run", "sound": False, "status": status}


def test_positives_of_an_unsound_run_are_announced_by_whoever_uses_the_policy(capsys, tmp_path):
    data, path, policy = (tmp_path / name for name in ("one.npz", "run", "policy"))
    pubc.save(data, pile([8], steps=30, states=3, actions=1))
    words = ("filter", data, "--out", path, "--seed-episodes", "0,1", "--recipe", "quick")
    assert run(capsys, *words, "--workers", "1")[0] == 0
    words = ("train", data, "--algo", "dwbc", "--positives", path / "kept.npz", "--out", policy)
    assert run(capsys, *words, "--updates", "1", "--device", "cpu")[0] == 0
    code, _, err = run(capsys, "export", policy, tmp_path / "policy.pt")
    assert code == 0, err
    assert "learned from the run run, whose selection is not sound" in " ".join(err.split())


def test_a_policy_of_a_sound_run_says_nothing_of_it(capsys, tmp_path):
    save(
        tmp_path / "policy",
        random_policy(3, 1),
        about={"learner": "bc", "data": {"run": {"name": "r", "sound": True, "status": "settled"}}},
    )
    code, _, err = run(capsys, "export", tmp_path / "policy", tmp_path / "policy.pt")
    assert code == 0
    assert err == ""


@pytest.mark.parametrize(
    ("column", "word"),
    [("confidence", "nan"), ("return", "inf"), ("votes", ""), ("keep", "nan"), ("length", "")],
)
def test_a_cell_of_the_scores_that_is_no_number_is_named(column, word, capsys, tmp_path):
    path = make_run(tmp_path / "run", 12, 1)
    with (path / "scores.csv").open(newline="") as file:
        rows = list(csv.reader(file))
    rows[3][rows[0].index(column)] = word
    with (path / "scores.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)
    seal(path, kind="filter")
    code, _, err = run(capsys, "report", path)
    assert code == 3
    assert f"scores.csv: {column} of row 3 is '{word}', not a number" in err
    assert "Warning" not in err


@pytest.mark.parametrize("key", ["data.path", "kept_path", "seed.from"])
def test_a_character_of_zero_in_a_path_is_refused_with_its_key(key, tmp_path, capsys):
    path = make_run(tmp_path / "run", 12, 1)
    edit(path, key, "a\0b")
    for words in (("report", path, "--out", tmp_path / "page"), ("train", path, "--out", "p")):
        code, _, err = run(capsys, *words)
        assert code == 3
        assert f"{key} holds a character of zero" in err


@pytest.mark.parametrize(("length", "limit"), [(20_000_000, "1,000,000"), (20_000, "10,000")])
def test_a_path_that_no_disk_can_hold_is_refused_before_it_is_drawn_or_repeated(
    length, limit, tmp_path, capsys
):
    path = make_run(tmp_path / "run", 12, 1)
    edit(path, "data.path", "x" * length)
    for words in (("report", path, "--out", tmp_path / "page"), ("filter", "--resume", path)):
        code, _, err = run(capsys, *words)
        assert code == 3
        assert f"a text of {length:,} characters; the limit is {limit}." in err
        assert len(err) < 1000
