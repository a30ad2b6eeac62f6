"""Datasets, seeds, versions and the cache: what the stages of a cell are made of."""

import shutil
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.errors import DataError
from pubc.experiments.cell import DatasetSpec, FilterSpec, SeedSpec
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stage_versions import Versions
from pubc.experiments.stages.datasets import expert_of, make_dataset, open_dataset, read_summary
from pubc.experiments.stages.filters import (
    FilterJob,
    draw_seeds,
    make_filter,
    read_filter,
    read_mask,
)
from pubc.storage import hash_file
from tests.experiments.tiny import PAPER, labelled, spec


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory):
    return pubc.load(labelled(tmp_path_factory.mktemp("seeds") / "pile.npz"))


def files(tmp_path: Path, path: Path) -> tuple[Cache, DatasetSpec]:
    sha256 = hash_file(path)
    cache = Cache(tmp_path / "cache", Versions("a", "b", "c"), given={sha256: str(path)})
    return cache, DatasetSpec(name="pile", sha256=sha256)


@pytest.mark.parametrize(
    ("how", "trajectories", "steps"),
    [
        (SeedSpec(trajectories=3), 3, 150),
        (SeedSpec(steps=120), 3, 150),
        (SeedSpec(share=0.1), 2, 80),
        (SeedSpec(share=0.01), 1, 8),
        (SeedSpec(steps=10_000), 8, 400),
    ],
)
def test_seeds_are_the_experts_and_as_many_as_asked(mixed, how, trajectories, steps):
    seeds = draw_seeds(mixed, how, 0)
    assert (len(seeds), seeds.steps) == (trajectories, steps)
    expert = mixed[mixed.sources == "expert"]
    starts = expert.columns.observations[expert.starts].tolist()
    assert all(one.steps.observations[0].tolist() in starts for one in seeds)


def test_another_random_seed_draws_other_seeds_and_the_same_one_the_same(mixed):
    drawn = [draw_seeds(mixed, SeedSpec(trajectories=2), n).ids.tolist() for n in (0, 0, 1, 2)]
    assert drawn[0] == drawn[1]
    assert len({tuple(ids) for ids in drawn}) > 1


def test_steps_are_drawn_beside_the_mixed_set_where_the_expert_was_recorded_there(mixed):
    pool = mixed[:4]
    drawn = draw_seeds(mixed, SeedSpec(steps=60), 0, pool)
    assert set(drawn.ids.tolist()) <= set(pool.ids.tolist())
    assert drawn.steps >= 60
    inside = draw_seeds(mixed, SeedSpec(trajectories=2), 0, pool)
    assert inside.ids.tolist() == draw_seeds(mixed, SeedSpec(trajectories=2), 0).ids.tolist()


def test_the_highest_returns_are_at_least_two(mixed):
    assert len(draw_seeds(mixed, SeedSpec(top=0.004), 0)) == 2


def test_sources_without_a_known_expert_are_refused(mixed):
    with pytest.raises(DataError, match="nobody knows which one"):
        expert_of(mixed[mixed.sources == "other"])


def test_a_collected_dataset_is_cut_by_source_and_summarised(tmp_path):
    cache = Cache(tmp_path, Versions("a", "b", "c"))
    whole = DatasetSpec("ant:E+W+N", steps_per_source=120)
    cut = DatasetSpec("ant:E+W+N", steps_per_source=120, sources=("E+", "N"))
    assert make_dataset(cache, whole) == make_dataset(cache, cut)
    assert set(open_dataset(cache, cut).sources.tolist()) == {"E+", "N"}
    found = read_summary(cache, cut)
    assert found["expert"] == "E+"
    assert {name: one["steps"] for name, one in found["sources"].items()} == dict.fromkeys(
        ("E+", "W", "N"), 120
    )


def test_highest_returns_as_a_filter(mixed, tmp_path):
    cache, given = files(tmp_path, labelled(tmp_path / "pile.npz"))
    job = FilterJob(given, FilterSpec("top_returns", share=0.5), 0)
    make_filter(cache, job)
    # The pile pays the expert alone, so the better half is the expert.
    assert read_filter(cache, job)["accuracy"] == 1.0
    assert read_mask(cache, job).sum() == 8


def test_single_steps_are_counted_as_steps(tmp_path):
    cache, given = files(tmp_path, labelled(tmp_path / "pile.npz"))
    chosen = spec("paper", {**PAPER, "cut": 0.5}, SeedSpec(trajectories=3))
    by_step = FilterSpec("pu", recipe=chosen.recipe, seeds=chosen.seeds, decision="step")
    job = FilterJob(given, by_step, 0)
    make_filter(cache, job)
    found = read_filter(cache, job)
    assert sum(found["confusion"].values()) == 16 * 50
    assert len(read_mask(cache, job)) == 16
    truth = np.asarray(open_dataset(cache, given).sources == "expert")
    assert found["trajectory_accuracy"] == np.mean(read_mask(cache, job) == truth)


def test_half_of_a_thing_is_never_seen_and_the_next_one_makes_it(tmp_path):
    cache = Cache(tmp_path, Versions("a", "b", "c"))

    def breaks(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise DataError("broken")

    with pytest.raises(DataError):
        cache.make("filters", "key", breaks)
    assert not cache.has("filters", "key")
    assert not any((tmp_path / "filters").iterdir())
    made = cache.make("filters", "key", lambda folder: _fill(folder, "whole"))
    assert (made / "what").read_text() == "whole"


def test_who_comes_second_throws_their_own_away(tmp_path):
    cache = Cache(tmp_path, Versions("a", "b", "c"))

    def slow(folder: Path) -> None:
        cache.make("filters", "key", lambda inner: _fill(inner, "first"))
        _fill(folder, "second")

    assert (cache.make("filters", "key", slow) / "what").read_text() == "first"
    assert [path.name for path in (tmp_path / "filters").iterdir()] == ["key"]
    shutil.rmtree(tmp_path / "filters")
    assert not cache.has("filters", "key")


def _fill(folder: Path, word: str) -> None:
    (folder / "what").write_text(word)
