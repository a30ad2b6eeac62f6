"""Evaluation: seeded, paired, and the same for any number of processes."""

import functools
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from pubc import zoo
from pubc.acting import environments
from pubc.acting.evaluate import Outcome, Played, evaluate, returns_in_short, summary
from pubc.acting.rollout import play
from pubc.errors import (
    DataError,
    EnvironmentFailure,
    PubcError,
    UnknownNameError,
    UsageError,
)
from pubc.metrics import REFERENCES
from pubc.policies.policy_folder import load, save
from tests.policies.sets import random_policy

pytest.importorskip("gymnasium")


@pytest.fixture
def policy(tmp_path: Path):
    save(tmp_path / "p", random_policy(3, 1), about={})
    return functools.partial(load, tmp_path / "p")


@pytest.fixture
def light(tmp_path: Path):
    """A policy of numpy alone: processes that play it need not load torch."""
    arrays = {"w0": np.random.default_rng(0).normal(size=(3, 1)), "b0": np.zeros(1)}
    card = {"network": "tanh", "observation_size": 3, "action_size": 1, "action_limit": 2.0}
    about = {"environment": "Pendulum-v1", "name": "light", "algorithm": "td3", "steps": 5}
    zoo.write(tmp_path / "light.safetensors", arrays, {**card, **about})
    return functools.partial(zoo.read, tmp_path / "light.safetensors")


def test_processes_change_nothing(light):
    found = []
    for processes in (1, 2):
        played = list(evaluate(light, "Pendulum-v1", episodes=5, processes=processes))
        found.append(Outcome.of(played))
    assert np.array_equal(found[0].returns, found[1].returns)
    assert np.array_equal(found[0].steps, found[1].steps)
    assert len(set(found[0].returns)) == 5


def test_a_seed_fixes_the_starts_of_every_policy(policy):
    world = environments.make("Pendulum-v1")
    starts = [
        play(world, random_policy(3, 1, seed=s), random_seed=4, source="evaluation", index=2)
        .steps.observations[0]
        .tolist()
        for s in (0, 1)
    ]
    assert starts[0] == starts[1]
    one = next(iter(evaluate(policy, "Pendulum-v1", episodes=1, random_seed=4)))
    other = next(iter(evaluate(policy, "Pendulum-v1", episodes=1, random_seed=5)))
    assert one.total_reward != other.total_reward


@pytest.mark.parametrize("processes", [1, 2])
def test_a_policy_of_another_environment_is_refused(processes: int):
    wrong = functools.partial(zoo.load, "hopper/medium")
    with pytest.raises(DataError, match=r"takes 11 .* to 3 .*Pendulum-v1 has 3 and 1"):
        list(evaluate(wrong, "Pendulum-v1", episodes=2, processes=processes))


def test_processes_that_die_are_not_waited_for():
    with pytest.raises(EnvironmentFailure, match="Try fewer --processes"):
        list(evaluate(functools.partial(os._exit, 3), "Pendulum-v1", episodes=2, processes=2))


def no_policy(error: type[Exception]):
    raise error("There is none.")


@pytest.mark.parametrize(
    ("error", "raised", "words"),
    [
        (FileNotFoundError, EnvironmentFailure, "There is none"),
        (MemoryError, EnvironmentFailure, "not enough memory"),
        (ZeroDivisionError, PubcError, "a fault in a worker .ZeroDivisionError: There is none"),
    ],
)
def test_what_a_process_fails_of_is_said_here(error, raised, words):
    with pytest.raises(raised, match=words) as caught:
        list(evaluate(functools.partial(no_policy, error), "Pendulum-v1", episodes=2, processes=2))
    assert type(caught.value) is raised


def test_an_unknown_environment_names_the_nearest(policy):
    with pytest.raises(UnknownNameError, match="Did you mean 'hopper'"):
        list(evaluate(policy, "hoper", episodes=1))


def test_nothing_to_play_is_refused(policy):
    with pytest.raises(UsageError, match="at least one"):
        list(evaluate(policy, "Pendulum-v1", episodes=0))


def test_a_summary_says_return_score_and_interval():
    outcome = Outcome(np.array([0.0, 750.0]), np.array([10, 20]))
    document = summary(outcome, REFERENCES["trifinger-push"])
    assert document["return"]["mean"] == 375
    assert document["return"]["std"] == pytest.approx(np.std([0, 750], ddof=1))
    assert document["score"] == 0.5
    assert document["reference"]["from"] == "TriFinger"
    assert summary(outcome, None)["score"] is None


def test_the_line_of_a_card_has_the_deviation_of_a_sample():
    played = [Played(1, 3.0, 10), Played(0, 1.0, 30)]
    assert returns_in_short(Outcome.of(played)) == {
        "trajectories": 2, "mean": 2.0, "std": 1.4, "min": 1.0, "max": 3.0, "mean_length": 20.0,
    }  # fmt: skip


def test_a_source_plays_the_trajectories_that_are_collected_under_its_name(policy):
    world = environments.make("Pendulum-v1")
    collected = play(world, policy(), random_seed=3, source="mine", index=1)
    played = list(evaluate(policy, "Pendulum-v1", episodes=2, random_seed=3, source="mine"))
    assert played[1].total_reward == collected.total_reward
    other = list(evaluate(policy, "Pendulum-v1", episodes=2, random_seed=3))
    assert other[1].total_reward != collected.total_reward


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [
        int(one) for one in found if b"pubc.engine" in Path(f"/proc/{one}/cmdline").read_bytes()
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("later", [0.1, 0.6])
def test_an_interrupt_of_all_processes_is_one_sentence(policy, tmp_path, later):
    words = ["evaluate", str(tmp_path / "p"), "--env", "Pendulum-v1", "--processes", "2"]
    parent = subprocess.Popen(
        [sys.executable, "-m", "pubc", *words, "--episodes", "2000", "--json"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 60
    while len(workers := _children(parent.pid)) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    time.sleep(later)
    os.killpg(parent.pid, signal.SIGINT)
    _, told = parent.communicate(timeout=60)
    until = time.monotonic() + 60
    assert parent.returncode == 5
    assert told.startswith("pubc: interrupted")
    assert told.count("\n") == 1
    assert len(workers) == 2
    while any(Path(f"/proc/{one}").exists() for one in workers):
        assert time.monotonic() < until
        time.sleep(0.02)
