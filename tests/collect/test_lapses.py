"""Lapses: somebody else acts for a while, and the record says when."""

from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.collect import Request, collect, custom, find
from pubc.collect.lapses import Lapse, LapsingPolicy, parse_lapse
from pubc.errors import DataError, UsageError


class Always:
    """Acts with one number, whatever it sees."""

    def __init__(self, value: float) -> None:
        self.value = value

    def begin(self, rng: np.random.Generator):
        return lambda observation, reward: np.full(2, self.value, dtype=np.float32)


def act(lapses: list[Lapse], others: list, steps: int = 4000):
    one = np.ones(2, dtype=np.float32)
    policy = LapsingPolicy(Always(5.0), lapses, others, -one, one)
    actor = policy.begin(np.random.default_rng(0))
    actions = np.stack([actor(np.zeros(3, dtype=np.float32), 0.0) for _ in range(steps)])
    return actions, np.array(actor.expert_steps)


def test_the_other_policy_acts_exactly_where_the_steps_are_not_the_experts_own():
    actions, own = act([Lapse("other", 0.3, 20)], [Always(7.0)])
    assert (actions[own] == 5).all()
    assert (actions[~own] == 7).all()
    assert 0.25 < 1 - own.mean() < 0.35


def test_a_lapse_lasts_between_half_and_one_and_a_half_of_its_length():
    _, own = act([Lapse("other", 0.3, 20)], [Always(7.0)])
    changes = np.flatnonzero(np.diff(own.astype(int)))
    lengths = np.diff(changes)[0 if own[changes[0]] else 1 :: 2]
    assert lengths.min() >= 10
    assert lengths.max() <= 30


def test_noise_fills_the_range_and_repetition_holds_the_last_action():
    noisy, own = act([Lapse("noise", 0.5, 10)], [None])
    assert np.abs(noisy[~own]).max() <= 1
    assert len(np.unique(noisy[~own])) > 1000
    held, own = act([Lapse("repeat", 0.5, 10)], [None])
    assert (held == 5).all()
    assert not own.all()


def test_several_kinds_share_the_steps_as_asked():
    actions, own = act(
        [Lapse("a", 0.1, 10), Lapse("b", 0.2, 40)], [Always(7.0), Always(9.0)], 40_000
    )
    assert (actions[:, 0] == 7).mean() == pytest.approx(0.1, abs=0.02)
    assert (actions[:, 0] == 9).mean() == pytest.approx(0.2, abs=0.04)
    assert own.mean() == pytest.approx(0.7, abs=0.05)


@pytest.mark.parametrize(
    "word",
    ["hopper/medium", "noise:0.3", "noise:two:5", "noise:0:5", "noise:1:5", ":0.2:5", "a:.2:0"],
)
def test_a_word_that_is_no_lapse_is_refused_in_one_sentence(word: str):
    with pytest.raises(UsageError, match=r"--lapse takes POLICY:SHARE:LENGTH"):
        parse_lapse(word)


def test_a_policy_file_may_hold_colons():
    assert parse_lapse("a:b.pt:0.2:5") == Lapse("a:b.pt", 0.2, 5)


def test_all_lapses_together_leave_the_expert_something():
    with pytest.raises(UsageError, match="together must lie below 1"):
        custom(
            "hopper",
            {"good": "hopper/expert"},
            lapses=[Lapse("noise", 0.6, 5), Lapse("repeat", 0.5, 5)],
        )


def test_a_collected_set_says_which_steps_are_the_experts(tmp_path: Path):
    recipe = custom(
        "hopper",
        {"good": "hopper/expert", "N": "noise"},
        lapses=[Lapse("hopper/medium", 0.3, 10)],
    )
    request = Request(recipe, steps_per_source=300, seed_steps=100)
    collect(request, tmp_path / "own.npz", processes=1)
    collect(request, tmp_path / "again.npz", processes=2)
    mixed = pubc.load(tmp_path / "own.npz")
    own = mixed.columns.extras["expert_steps"]
    by_step = np.repeat(mixed.sources, mixed.lengths)
    assert own.dtype == np.bool_
    assert not own[by_step == "N"].any()
    assert 0.4 < own[by_step == "good"].mean() < 0.95
    assert (tmp_path / "own.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()
    # Seed positives are the expert's own steps, so nothing has to be said of them.
    assert "expert_steps" not in pubc.load(tmp_path / "own-seed.npz").columns.extras


def test_a_lapse_policy_of_another_robot_is_refused_before_anything_is_played(tmp_path: Path):
    recipe = custom("hopper", {"good": "hopper/expert"}, lapses=[Lapse("ant/weak", 0.3, 10)])
    with pytest.raises(DataError, match="'ant/weak' was made for 27 observations, but hopper"):
        collect(Request(recipe, steps_per_source=50), tmp_path / "own.npz", processes=1)
    assert not (tmp_path / "own.npz").exists()


@pytest.mark.parametrize("environment", ["ant", "halfcheetah", "hopper"])
def test_the_recipes_of_lapses_have_one_source_without_a_clean_trajectory(environment: str):
    recipe = find(f"{environment}:lapses")
    assert [source.name for source in recipe.sources] == ["expert"]
    assert 0.2 <= sum(lapse.share for lapse in recipe.expert.lapses) <= 0.4
