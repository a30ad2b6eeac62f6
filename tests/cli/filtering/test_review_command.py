"""`pubc review` and `pubc filter --labels` from the command line."""

import csv
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from pubc import formats
from pubc.cli.examples import EXAMPLES
from pubc.cli.filtering.demo_command import mixture
from pubc.formats import ReadOptions
from pubc.labels import Labels, Mark, save_labels
from pubc.review.desk import open_desk
from tests.cli.calling import run


@pytest.fixture
def pile(in_folder):
    mixed = mixture()
    formats.save(in_folder / "mixed.npz", mixed)
    return mixed


def filtered(capsys, *words):
    code, out, err = run(capsys, "filter", "mixed.npz", *words, "--json")
    return code, json.loads(out) if out else None, err


def test_good_marks_are_seeds_and_stretches_too(pile, in_folder, capsys):
    marks = (Mark("4", "good"), Mark("8", "good", 10, 90), Mark("3", "bad"))
    save_labels(in_folder / "labels.json", Labels(marks))
    code, plan, _ = filtered(capsys, "--labels", "labels.json", "--dry-run")
    assert code == 0
    assert plan["seed"]["how"] == "labels"
    assert plan["seed"]["ids"] == ["4"]


def test_seeds_that_are_marks_are_told_as_such(pile, in_folder, capsys):
    for marks, words in (
        ((Mark("4", "good"), Mark("8", "good"), Mark("3", "bad")), "2 marked good: 4, 8"),
        ((Mark("8", "good", 10, 90),), "marked good, none of them a whole trajectory of the data"),
    ):
        save_labels(in_folder / "labels.json", Labels(marks))
        code, out, _ = run(capsys, "filter", "mixed.npz", "--labels", "labels.json", "--dry-run")
        assert code == 0
        assert words in out


@pytest.mark.usefixtures("brisk")
def test_what_is_marked_bad_is_never_kept_and_the_run_remembers_its_marks(pile, in_folder, capsys):
    """Also where the filter would have kept it: one and a half of the expert's are marked here."""
    expert = np.flatnonzero(pile.sources == "expert")
    good, bad, partly = expert[:3], int(expert[3]), int(expert[4])
    marks = [Mark(str(at), "good") for at in good] + [Mark(str(bad), "bad")]
    marks.append(Mark(str(partly), "bad", 20, 60))
    marks.append(Mark(str(expert[5]), "good", 10, 90))
    save_labels(in_folder / "labels.json", Labels(tuple(marks)))
    code, out, err = run(capsys, "filter", "mixed.npz", "--labels", "labels.json", "--out", "run")
    assert code == 0, err
    kept = json.loads((in_folder / "run/keep.json").read_text())
    assert not {bad, partly} & set(kept["episodes"])
    assert partly in kept["unsure"]
    document = json.loads((in_folder / "run/run.json").read_text())
    assert document["kept"] == len(kept["episodes"]) > 10
    told = formats.read(in_folder / "run" / document["kept_path"])
    assert len(told) == len(kept["episodes"])

    # Who looks finds that it was the marks, and a mark of steps holds for steps.
    words = f"1 as a whole: {bad}; 1 stretch"
    assert words in out
    assert words in (in_folder / "run/report.html").read_text()
    with (in_folder / "run/scores.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert rows[bad]["reason"] == "named or marked as bad"
    assert rows[partly]["reason"] == "steps 20 to 59 are marked bad"
    confidence = np.load(in_folder / "run/steps.npz")["confidence"]
    own = confidence[pile.offsets[partly] : pile.offsets[partly + 1]]
    assert np.flatnonzero(own == 0).tolist() == list(range(20, 60))
    (in_folder / "labels.json").unlink()
    assert open_desk(in_folder / "run", ReadOptions()).labels.marks == tuple(marks)


def test_flags_alone_leave_the_seeds_to_the_other_flags(pile, in_folder, capsys):
    (in_folder / "flags.txt").write_text("0, 1, 2")
    words = ("--labels", "flags.txt", "--seed-episodes", "4,8", "--dry-run")
    code, plan, _ = filtered(capsys, *words)
    assert code == 0
    assert plan["seed"]["ids"] == ["4", "8"]


@pytest.mark.parametrize("words", [("--seed-top", "0.1"), ("--seed-source", "expert")])
def test_seeds_that_pubc_chooses_are_none_of_the_bad_ones(pile, in_folder, capsys, words):
    code, plan, _ = filtered(capsys, *words, "--dry-run")
    chosen = plan["seed"]["ids"]
    (in_folder / "flags.txt").write_text(", ".join(chosen))
    code, plan, err = filtered(capsys, *words, "--labels", "flags.txt", "--dry-run")
    assert code == 0, err
    assert not set(chosen) & set(plan["seed"]["ids"])
    assert plan["bad"]["ids"] == sorted(chosen, key=int)


def test_two_ways_to_name_seeds_are_refused(pile, in_folder, capsys):
    save_labels(in_folder / "labels.json", Labels((Mark("4", "good"),)))
    code, _, err = filtered(
        capsys, "--labels", "labels.json", "--seed-episodes", "8", "--out", "run"
    )
    assert code == 2
    assert "Name seeds in one way" in err
    assert "--labels" in err


@pytest.mark.parametrize(
    ("text", "code"), [("{", 3), ('{"kind": "labels", "version": 1, "marks": [7]}', 3), (None, 3)]
)
def test_a_file_that_holds_no_labels_ends_with_a_sentence(pile, in_folder, capsys, text, code):
    if text is not None:
        (in_folder / "labels.json").write_text(text)
    found, _, err = filtered(capsys, "--labels", "labels.json", "--out", "run")
    assert found == code
    assert "labels.json" in err
    assert not (in_folder / "run").exists()


def taken(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@pytest.mark.usefixtures("brisk")
@pytest.mark.parametrize("line", EXAMPLES["review"])
def test_the_examples_serve_until_they_are_interrupted(pile, in_folder, capsys, line):
    """The address is read from a pipe, which Python fills in large blocks if left to itself."""
    pytest.importorskip("uvicorn")
    words, marks = shlex.split(line)[1:], 0
    if "run" in words:
        told = ("--seed-episodes", "4,8", "--bad-episodes", "3", "--out", "run")
        code, _, err = filtered(capsys, *told)
        assert code == 0, err
        marks = 3
    if "--port" in words and taken(int(words[words.index("--port") + 1])):
        words[words.index("--port") + 1] = "0"
    server = subprocess.Popen(
        [sys.executable, "-m", "pubc.cli.main", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "BROWSER": "true", "PYTHONUNBUFFERED": ""},
        text=True,
    )
    said = []
    for read in server.stdout:
        said.append(read)
        if "Ctrl-C ends it" in read:
            break
    assert any("http://127.0.0.1:" in text for text in said), said
    time.sleep(0.1)
    server.send_signal(signal.SIGINT)
    assert server.wait(60) == 0
    assert server.stdout.read().startswith(f"{marks} marks in")
    server.stdout.close()


def test_a_file_of_marks_that_is_not_there_is_said(pile, in_folder, capsys, monkeypatch):
    pytest.importorskip("uvicorn")
    monkeypatch.setattr("pubc.review.serve.serve", lambda *asked: None)
    for name, words in (("typo.json", "typo.json does not exist yet"), ("labels.json", "")):
        save_labels(in_folder / "labels.json", Labels((Mark("4", "good"),)))
        code, _, err = run(capsys, "review", "mixed.npz", "--no-browser", "--labels", name)
        assert code == 0
        assert (words in err) if words else (err == "")


@pytest.mark.parametrize("there", [True, False])
def test_marks_are_not_saved_to_a_link(pile, in_folder, capsys, monkeypatch, there):
    pytest.importorskip("uvicorn")
    monkeypatch.setattr("pubc.review.serve.serve", lambda *asked: None)
    if there:
        save_labels(in_folder / "real.json", Labels((Mark("4", "good"),)))
    (in_folder / "link.json").symlink_to("real.json")
    code, _, err = run(capsys, "review", "mixed.npz", "--no-browser", "--labels", "link.json")
    assert code == 2
    assert "link.json is a link" in err


def test_a_taken_port_ends_with_a_sentence(pile, in_folder, capsys):
    pytest.importorskip("uvicorn")
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        code, _, err = run(capsys, "review", "mixed.npz", "--no-browser", "--port", port)
    assert code == 4
    assert "--port" in err


@pytest.mark.parametrize("port", [80_000, -5])
def test_a_port_that_is_none_is_refused_before_anything_is_read(capsys, port):
    code, _, err = run(capsys, "review", "nothing.npz", "--no-browser", "--port", port)
    assert code == 2
    assert f"--port: expected a number from 0 to 65535, found {port}." in err


def test_without_the_extra_the_command_says_how_to_get_it(pile, in_folder, capsys, monkeypatch):
    for name in ("pubc.review.app", "pubc.review.serve"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "starlette", None)
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    code, _, err = run(capsys, "review", "mixed.npz", "--no-browser")
    assert code == 2
    assert "review" in err
    assert "pip install" in err
