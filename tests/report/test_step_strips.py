"""Strips show where a trajectory is the expert's, and say why where it is not."""

import numpy as np
import pytest

from pubc.pu.steps.cut_segments import SEGMENT
from pubc.report.page import render
from pubc.report.step_strips import WIDTH, most_doubtful, step_strips, text_strip
from pubc.runs.folder.run_reading import read_run
from pubc.storage import seal
from tests.report.build import make_run


@pytest.fixture
def run(tmp_path):
    """A run of 40 trajectories, the first of which is wrong in its second half."""
    folder = make_run(tmp_path / "run", count=40)
    lengths = read_run(folder).scores.lengths
    confidence = np.full(int(lengths.sum()), 0.95, dtype=np.float32)
    half = int(lengths[0]) // 2
    confidence[half : lengths[0]] = 0.05
    rows = [(0, 0, half, 0.95, ""), (0, half, lengths[0], 0.05, "acts <b>unlike</b> the expert")]
    rows += [(at, 0, int(length), 0.95, "") for at, length in enumerate(lengths) if at]
    np.savez(folder / "steps.npz", confidence=confidence, segments=np.array(rows, dtype=SEGMENT))
    seal(folder, kind="filter")
    return folder


def test_the_worst_strip_comes_first_and_says_why(run):
    first = step_strips(read_run(run))[0]
    assert first.name == "demo_0"
    assert first.share == pytest.approx(0.5, abs=0.02)
    assert first.pieces[0][2] == 0
    assert first.pieces[-1][2] == 4
    assert sum(wide for _, wide, _ in first.pieces) == pytest.approx(WIDTH, abs=1)
    assert "acts <b>unlike</b> the expert (confidence 0.05)" in first.segments[1][2]


def test_the_page_draws_them_and_escapes_their_words(run):
    page = render(read_run(run))
    assert 'id="strips"' in page
    assert "acts &lt;b&gt;unlike&lt;/b&gt; the expert" in page
    assert "<b>unlike</b>" not in page


def test_a_run_without_steps_has_no_such_section(tmp_path):
    folder = make_run(tmp_path / "old", count=40)
    assert step_strips(read_run(folder)) == []
    assert 'id="steps"' not in render(read_run(folder))


def test_steps_of_another_run_are_not_drawn(run):
    with np.load(run / "steps.npz", allow_pickle=False) as stored:
        confidence, segments = stored["confidence"], stored["segments"].copy()
    segments["trajectory"][-1] = 999
    np.savez(run / "steps.npz", confidence=confidence, segments=segments)
    seal(run, kind="filter")
    assert step_strips(read_run(run)) == []
    assert "does not fit its trajectories" in render(read_run(run))


def test_one_line_of_text_shows_a_trajectory():
    values = np.array([0.9] * 10 + [0.1] * 10 + [0.5] * 10, dtype=np.float32)
    assert text_strip(values, 6) == "##..++"
    assert text_strip(values[:2], 6) == "##"


def test_the_most_divided_trajectories_are_the_doubtful_ones():
    rows = [(0, 0, 10, 0.9, ""), (1, 0, 5, 0.9, ""), (1, 5, 10, 0.1, ""), (2, 0, 9, 0.9, "")]
    rows += [(2, 9, 10, 0.1, ""), (3, 0, 10, 0.1, "")]
    segments = np.array(rows, dtype=SEGMENT)
    lengths = np.full(4, 10)
    assert most_doubtful(np.zeros(40, np.float32), segments, lengths) == [1, 2]
