"""K bagged classifiers: arguments, determinism, and one real separation."""

import math

import numpy as np
import pytest

from pubc.errors import DataError, InterruptedRun, UsageError
from pubc.nets import Schedule
from pubc.pu.judge import Bench, Task
from pubc.pu.paper.ensemble import Ensemble
from tests.pu.piles import first_task, pile

QUICK = Schedule(epochs=20, batch=64, learning_rate=3e-3)
MIXED = pile([6, 6])


def task(mixed=MIXED, seeds=(0, 1), **bench) -> Task:
    return first_task(mixed, mixed[list(seeds)], **bench)


def test_votes_cannot_tie():
    for even in (0, 2, 4):
        with pytest.raises(UsageError, match="odd"):
            Ensemble(classifiers=even)


def test_the_expert_ranks_above_the_other_policy():
    verdict = Ensemble(schedule=QUICK)(task(pile([6, 6], steps=200, states=3)))
    mean = verdict.confidence.mean(axis=0)
    assert verdict.confidence.shape == (3, 12)
    assert mean[:6].min() > mean[6:].max()
    assert all(t.loss[-1] < t.loss[0] for t in verdict.training)


def test_threads_and_workers_do_not_change_a_bit(tmp_path):
    import torch

    judge = Ensemble(schedule=Schedule(2, 64))
    found = []
    before = torch.get_num_threads()
    try:
        for threads, workers in ((1, 1), (2, 2), (2, 1), (1, 3)):
            torch.set_num_threads(threads)
            found.append(judge(task(workers=workers)).confidence)
    finally:
        torch.set_num_threads(before)
    assert all(np.array_equal(found[0], other) for other in found[1:])


def test_shelved_classifiers_are_used_again_and_judge_alike(tmp_path):
    judge = Ensemble(schedule=Schedule(2, 64))
    fresh = judge(task())
    shelved = judge(task(shelf=tmp_path))
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == [f"round-001-member-{k}.safetensors" for k in range(3)]
    stamps = [(tmp_path / name).stat().st_mtime_ns for name in files]
    again = judge(task(shelf=tmp_path))
    assert [(tmp_path / name).stat().st_mtime_ns for name in files] == stamps
    for other in (shelved, again):
        assert np.array_equal(fresh.confidence, other.confidence)
    assert again.training == shelved.training
    assert np.array_equal(judge.apply(tmp_path, 1, MIXED, Bench()), fresh.confidence)


def test_a_value_per_step_adds_up_to_the_confidence(tmp_path):
    judge = Ensemble(schedule=Schedule(2, 64))
    verdict = judge(task(shelf=tmp_path))
    steps = np.concatenate(list(judge.steps(tmp_path, 1, MIXED, Bench())))
    means = steps.reshape(12, 60).mean(axis=1)
    assert np.allclose(means, verdict.confidence.mean(axis=0), atol=1e-6)


def test_a_damaged_classifier_is_refused_not_judged_with(tmp_path):
    judge = Ensemble(schedule=Schedule(1, 64))
    judge(task(shelf=tmp_path))
    path = tmp_path / "round-001-member-1.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match="member-1"):
        judge(task(shelf=tmp_path))


def test_bags_of_trajectories_abstain_from_their_own():
    verdict = Ensemble(schedule=Schedule(1, 64), bag="trajectory")(task(seeds=(0, 1, 2)))
    hidden = np.isnan(verdict.confidence)
    assert hidden[:, :3].any()
    assert not hidden[:, 3:].any()
    assert np.array_equal(hidden[:, :3], np.isnan(verdict.seed_confidence))


def test_the_sum_of_logs_is_the_other_function():
    one = Ensemble(classifiers=1, schedule=Schedule(1, 64), rule="sum_log")(task())
    assert (one.confidence < 0).all()


@pytest.mark.parametrize("loss", ["unbiased_pu", "non_negative_pu"])
def test_baselines_are_arguments(loss):
    judge = Ensemble(classifiers=1, loss=loss, negatives="unlabelled", schedule=Schedule(3, 64))
    verdict = judge(task())
    assert np.isfinite(verdict.confidence).all()


def test_a_subset_is_bounded():
    judge = Ensemble(classifiers=1, subset=1024, schedule=Schedule(1, 256))
    many = pile([30, 5], steps=100)
    (training,) = judge(task(many, seeds=range(30))).training
    assert training.updates == 2 * 1024 // 256


def test_a_bootstrap_without_a_bound_has_as_many_steps_as_there_are_positives():
    many = pile([30, 5], steps=100)
    (training,) = Ensemble(classifiers=1, schedule=Schedule(1, 256))(
        task(many, seeds=range(30))
    ).training
    assert training.updates == math.ceil(2 * 3000 / 256)


def test_stopping_is_prompt_and_leaves_no_half_file(tmp_path):
    work = task(shelf=tmp_path)
    work.bench.stopped.set()
    with pytest.raises(InterruptedRun):
        Ensemble(schedule=Schedule(1000, 64))(work)
    assert not list(tmp_path.iterdir())
