"""Environments by name: what they stand for, and that stepping them faster changes nothing."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from pubc.acting import environments
from pubc.acting.environments.gym import make_wrapped
from pubc.errors import MissingExtraError, UnknownNameError, UsageError

gymnasium = pytest.importorskip("gymnasium")
pytest.importorskip("mujoco")
MUJOCO = ["ant", "humanoid", "halfcheetah", "hopper", "walker2d"]


def test_the_paper_environments_have_their_arguments():
    assert environments.make("ant").observation_size == 27
    assert environments.spec("humanoid").arguments == {"reset_noise_scale": 1e-2}
    assert environments.make("humanoid").observation_size == 348
    assert {environments.make(name).time_limit for name in MUJOCO} == {1000}


@pytest.mark.parametrize("name", MUJOCO)
def test_a_trajectory_equals_that_of_gymnasium_make(name: str):
    ours, theirs = environments.make(name), make_wrapped(name)
    rng = np.random.default_rng(0)
    observation, _ = theirs.reset(seed=7)
    assert np.array_equal(ours.reset(7), observation)
    for _ in range(150):
        action = rng.uniform(ours.low, ours.high).astype(np.float32)
        observation, reward, terminal, _, _ = theirs.step(action)
        mine = ours.step(action)
        assert np.array_equal(mine[0], observation)
        assert (mine[1], mine[2]) == (float(reward), bool(terminal))
        if terminal:
            observation, _ = theirs.reset(seed=8)
            assert np.array_equal(ours.reset(8), observation)


@pytest.mark.parametrize("name", ["ant", "humanoid"])
def test_the_time_limit_is_the_one_gymnasium_sets(name: str):
    ours = environments.make(name)
    ours.reset(0)
    ours._steps = ours.time_limit - 2
    still = np.zeros(ours.action_size, dtype=np.float32)
    assert [ours.step(still)[3] for _ in range(2)] == [False, True]


def test_a_gymnasium_id_stands_for_itself():
    pendulum = environments.make("Pendulum-v1")
    assert (pendulum.observation_size, pendulum.action_size) == (3, 1)
    assert pendulum.time_limit == 200


def test_an_unknown_environment_comes_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match="Did you mean 'hopper'"):
        environments.make("hoper")
    with pytest.raises(UnknownNameError, match="Did you mean 'Hopper-v5'"):
        environments.make("Hoper-v5")


def test_an_environment_without_vectors_is_refused():
    with pytest.raises(UsageError, match="vectors of numbers"):
        environments.make("CartPole-v1")


def test_a_missing_simulator_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "gymnasium", None)
    with pytest.raises(MissingExtraError, match="needs the extra 'mujoco'"):
        environments.make("ant")
    monkeypatch.setitem(__import__("sys").modules, "trifinger_rl_datasets", None)
    with pytest.raises(MissingExtraError, match="needs the extra 'trifinger'"):
        environments.make("trifinger-push")


def test_making_an_environment_leaves_no_log_and_no_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        environments.make("halfcheetah")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["halfcheetah", "Pendulum-v1"])
def test_making_an_environment_starts_no_process(name: str):
    """glfw would, to look for its library; killed meanwhile, we would leave it to print a trace."""
    code = (
        "import os, sys\n"
        "sys.addaudithook(lambda event, words: event == 'subprocess.Popen' and print(words))\n"
        "from pubc.acting import environments\n"
        f"environments.make({name!r})\n"
        "assert 'PYGLFW_LIBRARY' not in os.environ\n"
    )
    words = [sys.executable, "-W", "ignore", "-c", code]
    clean = {name: value for name, value in os.environ.items() if name != "MUJOCO_GL"}
    done = subprocess.run(words, capture_output=True, text=True, check=True, env=clean)
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["ant", "humanoid"])
def test_a_process_that_only_plays_sees_the_same_numbers_without_reading_the_clock(name: str):
    code = (
        "import sys, numpy as np\n"
        "from pubc.acting import environments\n"
        "from pubc.acting.environments.direct import nothing_but_playing\n"
        f"made = environments.make({name!r})\n"
        "if sys.argv[1] == 'tuned': nothing_but_playing()\n"
        "before = made._data.timer[0].duration\n"
        "made.reset(3)\n"
        "rng = np.random.default_rng(0)\n"
        "for _ in range(30): seen = made.step(rng.uniform(made.low, made.high).astype('f4'))\n"
        "print(made._data.timer[0].duration > before, seen[0].tobytes().hex(), seen[1:])"
    )
    plain, tuned = (
        subprocess.run(
            [sys.executable, "-c", code, how], capture_output=True, text=True, check=True
        ).stdout.split(maxsplit=1)
        for how in ("plain", "tuned")
    )
    assert (plain[0], tuned[0]) == ("True", "False")
    assert plain[1] == tuned[1]


@pytest.mark.parametrize("value", ["osmesa", "nonsense"])
def test_a_way_to_draw_that_is_not_here_ends_in_exit_code_4(value):
    code = "import sys; from pubc.cli.main import main; sys.exit(main(sys.argv[1:]))"
    words = ["evaluate", "ant/expert", "--episodes", "1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "MUJOCO_GL": value},
    )
    assert done.returncode == 4 or (value == "osmesa" and done.returncode == 0), done.stderr
    if done.returncode:
        assert f"MuJoCo does not start with MUJOCO_GL='{value}'" in done.stderr
