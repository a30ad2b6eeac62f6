"""From zero marks to a sound selection by following the page, and nothing lost on the way."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pubc import formats
from pubc.formats import ReadOptions
from pubc.labels import Labels, Mark, read_labels
from pubc.review import filter_child
from pubc.review.desk import open_desk
from pubc.review.filter_job import FilterJob
from pubc.review.serve import serving
from tests.pu.piles import pile
from tests.report.build import make_run
from tests.review.asking import ask, mark, told, until

CLICKS = 8


@pytest.mark.timeout(600)
@pytest.mark.parametrize("training", ["brisk", pytest.param("usual", marks=pytest.mark.slow)])
def test_eight_clicks_on_what_the_page_proposes_find_the_expert(training, desk, demo, request):
    """The scripted user knows the truth and answers what is asked, nothing else."""
    if training == "brisk":
        request.getfixturevalue("brisk_runs")
    truth = desk.trajectories.sources == "expert"
    clicks = 0
    with serving(desk) as address:
        while clicks < CLICKS:
            for proposal in told(address, "proposals")[: CLICKS - clicks]:
                mark(address, "good" if truth[proposal["at"]] else "bad", proposal["at"])
                clicks += 1
        told(address, "run", {})
        assert until(address, "finished")["run"]["sound"]
    assert clicks <= CLICKS
    assert np.array_equal(desk.run.scores.keep, truth)
    again = open_desk(demo, ReadOptions())
    assert len(again.labels) == CLICKS
    assert np.array_equal(again.run.scores.keep, truth)


@pytest.mark.timeout(600)
def test_a_kill_in_the_middle_of_a_run_loses_nothing(tmp_path, warm):
    data = tmp_path / "small.npz"
    formats.save(data, pile([12, 12], steps=60))
    server, address = started(data, warm)
    marked = [("good", 2), ("good", 4), ("good", 17), ("bad", 3)]
    for label, at in marked:
        mark(address, label, at)
    told(address, "run", {})
    server.send_signal(signal.SIGKILL)
    server.wait()
    server.stderr.close()
    wanted = {Mark(str(at), label) for label, at in marked}
    labels = tmp_path / "small.npz-review/labels.json"
    assert set(read_labels(labels).marks) == wanted
    server, address = started(data, warm)
    try:
        _, _, raw = ask(address)
        block = json.loads(raw.decode().split('id="data">')[1].split("</script>")[0])
        assert {int(at) for at in block["marks"]} == {at for _, at in marked}
        # The run stopped with its server; it goes on with the same marks.
        assert until(address, "interrupted", "finished")["number"] == 1
        if told(address, "run")["state"] == "interrupted":
            told(address, "run", {})
        assert until(address, "finished")["number"] == 1
    finally:
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
        server.stderr.close()


def started(data, warm):
    """A server in a process of its own, whose runs train little, and its address."""
    words = [json.dumps(warm), "review", str(data), "--no-browser", "--json"]
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.review.brisk_runs", *words],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    line = server.stderr.readline().decode().strip()
    assert line.startswith("http://127.0.0.1:"), line
    return server, line


@pytest.mark.usefixtures("brisk_runs")
def test_a_stopped_run_goes_on_only_with_the_marks_it_began_with(tmp_path, demo):
    job = FilterJob(tmp_path / "work", demo, ReadOptions(isolate="auto"))
    (tmp_path / "work").mkdir()
    good = Labels((Mark("2", "good"), Mark("4", "good")))
    assert job.progress().state == "none"
    assert job.start(good) == 1
    job.stop()
    assert job.progress().state == "interrupted"
    assert job.start(good) == 1
    job.stop()
    assert job.start(Labels((*good.marks, Mark("3", "bad")))) == 2
    job.stop()
    assert FilterJob(tmp_path / "work", demo, ReadOptions()).progress().state == "interrupted"


@pytest.mark.usefixtures("brisk_runs")
def test_a_log_of_somebody_else_stays(tmp_path, demo):
    work = tmp_path / "work"
    work.mkdir()
    (work / "run-001.log").write_text("mine")
    job = FilterJob(work, demo, ReadOptions(isolate="auto"))
    assert "run-002" in job.words()
    assert job.start(Labels((Mark("2", "good"), Mark("4", "good")))) == 2
    job.stop()
    assert (work / "run-001.log").read_text() == "mine"


@pytest.mark.usefixtures("brisk_runs")
def test_a_failed_run_says_why(tmp_path, demo):
    (tmp_path / "work").mkdir()
    job = FilterJob(tmp_path / "work", tmp_path / "gone.npz", ReadOptions(isolate="auto"))
    job.start(Labels((Mark("2", "good"),)))
    while (now := job.progress()).state == "running":
        time.sleep(0.05)
    job.stop()
    assert now.state == "failed"
    assert "does not exist" in now.error


def test_the_words_are_a_command_with_every_option_of_reading(tmp_path, demo):
    reading = ReadOptions(
        isolate="auto", observation_keys=("a b", "c"), trailing="drop", cache=False, strict=True
    )
    words = FilterJob(tmp_path, demo, reading).words()
    assert words.startswith(f"pubc filter {demo} --labels {tmp_path / 'labels.json'} --out")
    for flag in ("--observation-keys 'a b' c", "--trailing drop", "--no-cache", "--strict"):
        assert flag in words
    assert "isolate" not in words


def test_a_child_of_a_finished_run_has_nothing_to_do(tmp_path):
    """The one before it was killed after its last word."""
    run = make_run(tmp_path / "run-001")
    before = (run / "manifest.json").read_bytes()
    request = {"out": str(run), "data": "gone.npz", "labels": "gone.json", "reading": {}}
    filter_child._filter(request)
    assert (run / "manifest.json").read_bytes() == before
