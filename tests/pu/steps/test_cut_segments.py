"""Segments cover a trajectory, and what is kept of them keeps its distance from faults."""

import numpy as np

from pubc.pu.steps.cut_segments import cut_trajectory, expert_stretches, worst_of
from pubc.pu.steps.step_model import JudgedSteps


def judged(confidence: list[float], columns: np.ndarray | None = None, known: float = 1.0):
    values = np.asarray(confidence, dtype=np.float32)
    size = len(values)
    made = np.zeros((size, 2), np.float32) if columns is None else columns.astype(np.float32)
    known_values = np.full(size, known, np.float32)
    return JudgedSteps(3, 0, values, made, known_values, np.zeros((size, 2), np.float32))


def test_segments_cover_all_steps_in_order():
    rows = cut_trajectory([judged([0.9, 0.8, 0.1, 0.3, 0.7])])
    assert [(int(r["first"]), int(r["end"])) for r in rows] == [(0, 2), (2, 4), (4, 5)]
    assert rows["trajectory"].tolist() == [3, 3, 3]
    assert np.allclose(rows["confidence"], [0.85, 0.2, 0.7])
    assert rows["reason"][0] == ""
    assert rows["reason"][1] == "acts unlike the expert"


def test_the_parts_of_a_long_trajectory_make_one_segment():
    rows = cut_trajectory([judged([0.9, 0.8]), judged([0.9])])
    assert len(rows) == 1
    assert int(rows["end"][0]) == 3


def test_reasons_name_what_speaks_against_a_segment():
    one = np.array([[0.1, -2.0]] * 3)
    assert cut_trajectory([judged([0.1] * 3, one)])["reason"][0] == (
        "action dimension 1 is unlike the expert's"
    )
    assert cut_trajectory([judged([0.1] * 3, known=0.2)])["reason"][0] == (
        "in situations that no step of the expert covers"
    )


def test_margins_lie_next_to_faults_and_not_at_the_ends():
    confidence = np.array([0.9] * 10 + [0.1] * 3 + [0.9] * 10, dtype=np.float32)
    assert expert_stretches(confidence, shortest=5, margin=2) == [(0, 8), (15, 23)]
    assert expert_stretches(confidence, shortest=9, margin=2) == []
    assert expert_stretches(confidence[:10], shortest=5, margin=2) == [(0, 10)]


def test_the_worst_trajectory_has_most_steps_of_others():
    rows = np.concatenate([cut_trajectory([judged([0.9, 0.1])])])
    assert worst_of(rows, 5).tolist() == [0, 0, 0, 0.5, 0]
