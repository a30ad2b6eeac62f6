"""Recipes as data: the names of the paper, and one's own."""

from pathlib import Path

import pytest

from pubc.collect import RECIPES, custom, find
from pubc.errors import UnknownNameError, UsageError


@pytest.mark.parametrize("environment", ["ant", "humanoid"])
def test_the_paper_mixtures_are_there_with_their_sources(environment: str):
    letters = {
        "E": ["E+"],
        "E+E": ["E+", "E-"],
        "E+W": ["E+", "W"],
        "E+N": ["E+", "N"],
        "E+E+W+N": ["E+", "E-", "W", "N"],
    }
    for name, sources in letters.items():
        recipe = find(f"{environment}:{name}")
        assert [source.name for source in recipe.sources] == sources
        assert recipe.expert.policy == f"{environment}/expert"
        assert recipe.environment == environment


def test_the_noise_source_has_no_policy():
    assert find("ant:E+N").sources[1].policy is None


@pytest.mark.parametrize("environment", ["halfcheetah", "hopper", "walker2d"])
def test_medium_expert_mixes_two_policies_of_the_zoo(environment: str):
    sources = find(f"{environment}:medium-expert").sources
    assert [s.policy for s in sources] == [f"{environment}/expert", f"{environment}/medium"]


def test_an_unknown_recipe_comes_with_the_nearest_name():
    with pytest.raises(UnknownNameError, match=r"No recipe named 'ant:E\+M'. Did you mean 'ant:E"):
        find("ant:E+M")
    with pytest.raises(UnknownNameError, match="'humanoid:E'"):
        find("humanoid:e")


def test_a_trifinger_recipe_says_which_file_is_missing_and_where_to_get_it(tmp_path: Path):
    with pytest.raises(UsageError, match=r"push_expert or push .*trifinger-rl-example"):
        find("trifinger-push:mixed")
    (tmp_path / "push.pt").touch()
    with pytest.raises(UsageError, match="push_checkpoint_600"):
        find("trifinger-push:mixed", policies=tmp_path)


def test_a_trifinger_recipe_takes_the_files_of_a_folder(tmp_path: Path):
    for name in ("push.pt", "push_checkpoint_600.npz", "push_checkpoint_1200.npz"):
        (tmp_path / name).touch()
    recipe = find("trifinger-push:mixed", policies=tmp_path)
    assert recipe.expert.policy == str(tmp_path / "push.pt")
    assert [source.share for source in recipe.sources] == [1, 0.5, 0.5]


def test_every_recipe_has_a_known_environment():
    from pubc.acting.environments import ENVIRONMENTS

    assert {environment for environment, _ in RECIPES.values()} <= set(ENVIRONMENTS)


def test_a_custom_recipe_takes_shares_and_noise():
    recipe = custom(
        "hopper",
        {"mine": "hopper/expert", "W": "hopper/medium", "N": "noise"},
        shares={"W": 0.5},
        action_noise={"W": 0.2},
    )
    assert [(s.name, s.share, s.action_noise) for s in recipe.sources] == [
        ("mine", 1.0, 0.0),
        ("W", 0.5, 0.2),
        ("N", 1.0, 0.0),
    ]
    assert recipe.sources[2].policy is None


@pytest.mark.parametrize(
    ("policies", "more", "words"),
    [
        ({}, {}, "at least one policy"),
        ({"N": "noise"}, {}, "at least one policy"),
        ({"a": "ant/expert"}, {"shares": {"b": 1}}, "No source named 'b'"),
        ({"a": "ant/expert"}, {"shares": {"a": 0}}, "above 0"),
        ({"a": "ant/expert"}, {"action_noise": {"a": -1}}, "between 0 and 10"),
    ],
)
def test_a_custom_recipe_without_meaning_is_refused(policies, more, words):
    with pytest.raises(UsageError, match=words):
        custom("ant", policies, **more)
