"""Steps that a column marks are the seeds."""

import dataclasses
import json

import numpy as np
import pytest

import pubc
from pubc.cli.main import main
from pubc.errors import DataError, UnknownNameError
from pubc.metrics import roc_auc
from pubc.runs.segments.seed_steps import marked_steps, marked_stretches
from pubc.trajectory import TrajectorySet
from tests.pu.steps.lapsing import lapsing


def with_column(pile: TrajectorySet, **columns: np.ndarray) -> TrajectorySet:
    return dataclasses.replace(pile, columns=dataclasses.replace(pile.columns, extras=columns))


@pytest.fixture(scope="module")
def marked():
    """Twenty trajectories without a clean one; the expert's steps of the first six are marked."""
    pile, own = lapsing(20)
    marks = own & np.repeat(np.arange(20) < 6, pile.lengths)
    return with_column(pile, intervention=marks.astype(np.float32)), own, marks


def test_stretches_end_with_their_trajectory(marked):
    pile, _, marks = marked
    assert np.array_equal(marked_steps(pile, "intervention"), marks)
    made = marked_stretches(pile, marks, "intervention")
    assert made.steps == marks.sum()
    assert len(made) == 12
    assert made.ids[0].startswith("0#0-")
    assert made.ids[-1].endswith("-80")
    whole = marks.copy()
    whole[:160] = True
    both = marked_stretches(pile, whole, "intervention")
    assert both.ids[:2].tolist() == ["0#0-80", "1#0-80"]


def test_the_command_takes_marked_steps_as_seeds(marked, tmp_path, capsys):
    pile, own, _ = marked
    pubc.save(tmp_path / "pile.npz", pile)
    words = ["--seed-steps-column", "intervention", "--recipe", "paper", "--classifiers", "1"]
    words += ["--max-rounds", "1", "--workers", "1", "--json"]
    assert main(["filter", str(tmp_path / "pile.npz"), "--out", str(tmp_path / "run"), *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["seed"]["how"] == "steps_column"
    with np.load(tmp_path / "run" / "steps.npz", allow_pickle=False) as stored:
        confidence = stored["confidence"]
    # Judged by fits without their trajectory, also where nothing was marked.
    assert roc_auc(confidence[480:], own[480:]) > 0.9


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (np.full(1600, 0.5), "expected true or false, or 0 or 1, for every step"),
        (np.zeros((1600, 2)), "expected true or false"),
        (np.zeros(1600), "it marks no step"),
        (np.ones(1600), "it marks every step"),
    ],
)
def test_a_column_that_marks_nothing_is_refused_in_one_sentence(marked, column, words):
    with pytest.raises(DataError, match=words):
        marked_steps(with_column(marked[0], mine=column), "mine")


def test_a_column_that_is_not_there_is_named_with_those_that_are(marked):
    with pytest.raises(UnknownNameError, match="No column with one value per step named 'interv'"):
        marked_steps(marked[0], "interv")


def test_marks_that_are_too_short_are_refused(marked):
    few = np.zeros(1600, dtype=bool)
    few[[3, 4, 90]] = True
    with pytest.raises(DataError, match="the longest marked stretch has 2 steps"):
        marked_stretches(marked[0], few, "mine")


def test_a_column_of_the_wrong_length_is_no_column_of_steps(marked, tmp_path, capsys):
    pile = marked[0]
    flat = pile.flat()
    np.savez(
        tmp_path / "p.npz", observations=flat.observations, actions=flat.actions,
        timeouts=flat.timeouts, terminals=flat.terminals, mine=np.ones(7, dtype=bool),
    )  # fmt: skip
    words = ["--seed-steps-column", "mine", "--out", str(tmp_path / "run")]
    assert main(["filter", str(tmp_path / "p.npz"), *words]) in (2, 3)
    assert "mine" in capsys.readouterr().err
