"""LeRobot's difference of progress is positive exactly where the expert acts."""

import numpy as np
import pytest

from pubc.errors import UsageError
from pubc.runs.segments.trainer_tables import rabc_progress
from pubc.runs.segments.weights import step_sampler, weigh_steps


@pytest.mark.parametrize("chunk", [1, 3, 7, 50])
def test_progress_over_a_chunk_rises_for_the_experts_frames_and_falls_for_others(chunk: int):
    rng = np.random.default_rng(0)
    confidence = rng.random(60).astype(np.float32)
    lengths = np.array([25, 35])
    progress = rabc_progress(confidence, lengths, chunk)
    for start, length in ((0, 25), (25, 35)):
        last = start + length - 1
        for step in range(start, last):
            rise = progress[min(step + chunk, last)] - progress[step]
            # 0.01 is the threshold above which LeRobot gives full weight.
            assert rise > 0.01 if confidence[step] >= 0.5 else rise < 0


def test_weights_are_the_confidence_or_its_side_of_one_half():
    confidence = np.array([0.2, 0.5, 0.9], dtype=np.float32)
    assert np.array_equal(weigh_steps(confidence), confidence)
    assert weigh_steps(confidence, "hard").tolist() == [0, 1, 1]


def test_nothing_to_learn_from_is_said_in_one_sentence():
    with pytest.raises(UsageError, match="No step of the run looks like the expert's"):
        weigh_steps(np.array([0.1, 0.2], dtype=np.float32), "hard")
    with pytest.raises(UsageError, match="at least one step"):
        step_sampler(np.ones(3, dtype=np.float32), 0)
