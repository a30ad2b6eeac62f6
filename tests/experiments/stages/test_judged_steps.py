"""Judged steps are measured against the truth, and learners see exactly the part they ask for."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.errors import DataError
from pubc.experiments.cell import Cell, DatasetSpec, FilterSpec, SeedSpec, StepFilterSpec
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stage_versions import versions
from pubc.experiments.stages import steps_to_learn
from pubc.experiments.stages.filters import (
    FilterJob,
    filter_key,
    make_filter,
    read_filter,
)
from pubc.experiments.stages.judged_steps import (
    FAR,
    MEASURES,
    border_distance,
    expert_steps,
    kept_steps,
    read_confidence,
    segments_in,
)
from pubc.experiments.stages.steps_to_learn import CLEAN, EXPERT, SEGMENTS, WEIGHTS, lesson_of
from pubc.storage import hash_file
from pubc.trajectory import TrajectorySet
from tests.experiments.tiny import AUTO, spec
from tests.pu.steps.lapsing import lapsing


def marked(count: int, *, clean: int = 0) -> tuple[TrajectorySet, np.ndarray]:
    mixed, own = lapsing(count, clean=clean)
    columns = replace(mixed.columns, extras={"expert_steps": own})
    return replace(mixed, columns=columns, sources=np.full(count, "expert")), own


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Cache, Cell]:
    """A pile of twelve trajectories, nine of them with a lapse, whose steps were judged."""
    folder = tmp_path_factory.mktemp("judged")
    pubc.save(folder / "pile.npz", marked(12, clean=3)[0])
    sha256 = hash_file(folder / "pile.npz")
    cache = Cache(folder / "cache", versions(), given={sha256: str(folder / "pile.npz")})
    whole = spec("auto", AUTO, SeedSpec(trajectories=3))
    filtered = StepFilterSpec("pu", recipe=whole.recipe, seeds=whole.seeds)
    asked = Cell("row", SEGMENTS, DatasetSpec(name="pile", sha256=sha256), filtered, part=SEGMENTS)
    make_filter(cache, FilterJob(asked.dataset, filtered, 0))
    return cache, asked


def job_of(asked: Cell) -> FilterJob:
    return FilterJob(asked.dataset, asked.filter, 0)


def pile_of(cache: Cache) -> TrajectorySet:
    (path,) = cache.given.values()
    return pubc.load(path)


def test_every_measure_is_told_and_is_that_of_the_confidences(judged):
    cache, asked = judged
    told, mixed = read_filter(cache, job_of(asked)), pile_of(cache)
    assert set(MEASURES) <= set(told)
    confidence = read_confidence(cache.path("filters", filter_key(job_of(asked), cache)))
    own = expert_steps(mixed)
    cut = segments_in(mixed, confidence, shortest=10, margin=2)
    kept = kept_steps(mixed, cut)
    assert told["kept_share"] == pytest.approx(kept.mean())
    assert told["precision"] == pytest.approx(own[kept].mean())
    assert told["recall"] == pytest.approx(kept[own].mean())
    assert told["expert_share"] == pytest.approx(own.mean())
    assert told["segments"] == len(cut)
    assert told["step_auc"] > 0.8
    assert kept.sum() == cut.steps


def test_borders_are_measured_to_the_nearest_found_one():
    own = np.array([1, 1, 1, 0, 0, 0, 1, 1] + [1] * 8, dtype=bool)
    found = own.astype(np.float32)
    lengths = np.array([8, 8])
    assert border_distance(found, own, lengths) == 0
    assert border_distance(np.roll(found, 1), own, lengths) == 1
    assert border_distance(np.ones(16, np.float32), own, lengths) == FAR
    assert border_distance(found, np.ones(16, dtype=bool), lengths) is None


def test_nothing_found_is_no_segment_and_no_step():
    mixed, _ = marked(3)
    cut = segments_in(mixed, np.zeros(mixed.steps, np.float32), shortest=10, margin=2)
    assert (len(cut), kept_steps(mixed, cut).sum()) == (0, 0)


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_learner_sees_the_part_that_it_asks_for(judged, elsewhere, monkeypatch):
    cache, asked = judged
    mixed = pile_of(cache)
    beside = marked(20, clean=20)[0]
    seeds = beside[[4, 7]] if elsewhere else mixed[[0, 1]]
    monkeypatch.setattr(steps_to_learn, "open_seed_pool", lambda *_: beside)
    monkeypatch.setattr(steps_to_learn, "draw_seeds", lambda *_: seeds)
    lessons = {
        part: lesson_of(replace(asked, part=part), mixed, None, cache)
        for part in (SEGMENTS, WEIGHTS, EXPERT, CLEAN)
    }
    told = read_filter(cache, job_of(asked))
    more = seeds.steps if elsewhere else 0
    kept = lessons[SEGMENTS].trajectories.steps - more
    right = (told["precision"] * kept + more) / (kept + more)
    assert lessons[SEGMENTS].expert_share == pytest.approx(right)
    assert lessons[EXPERT].expert_share == lessons[CLEAN].expert_share == 1.0
    assert lessons[CLEAN].trajectories.steps == kept + more
    assert lessons[WEIGHTS].trajectories.steps == mixed.steps + more
    if elsewhere:
        for part in (SEGMENTS, WEIGHTS, EXPERT):
            last = lessons[part].trajectories[-2:]
            assert np.array_equal(last.flat().actions, seeds.flat().actions)
        assert (lessons[WEIGHTS].weights[-more:] == 1).all()
    # Somebody else's steps weigh less, so more of what is learned is the expert's.
    assert told["expert_share"] < lessons[WEIGHTS].expert_share < 1
    other = lesson_of(replace(asked, part=CLEAN, random_seed=0), mixed, None, cache)
    assert np.array_equal(other.trajectories.starts, lessons[CLEAN].trajectories.starts)


def test_without_judged_steps_a_learner_sees_what_was_selected(judged):
    cache, asked = judged
    mixed = pile_of(cache)
    whole = replace(asked, filter=FilterSpec("top_returns", share=0.5), part=None)
    some = np.arange(12) < 4
    assert lesson_of(whole, mixed, some, cache).trajectories.steps == mixed[some].steps
    assert lesson_of(whole, mixed, None, cache).trajectories is mixed


def test_too_few_clean_steps_and_steps_of_nobody_knows_whom_are_said(judged, monkeypatch):
    cache, asked = judged
    mixed = pile_of(cache)
    monkeypatch.setattr(steps_to_learn, "open_seed_pool", lambda *_: mixed[:1])
    with pytest.raises(DataError, match="found 80; collect more"):
        lesson_of(replace(asked, part=CLEAN), mixed, None, cache)
    plain = replace(mixed, columns=replace(mixed.columns, extras={}))
    with pytest.raises(DataError, match="expected a column expert_steps"):
        lesson_of(replace(asked, part=EXPERT), plain, None, cache)


def test_judged_steps_have_a_hash_of_their_own_and_other_filters_keep_theirs(tmp_path: Path):
    cache = Cache(tmp_path, versions())
    given = DatasetSpec(name="pile", sha256="0")
    whole = spec("auto", AUTO, SeedSpec(trajectories=3))
    steps = StepFilterSpec("pu", recipe=whole.recipe, seeds=whole.seeds)
    keys = {
        filter_key(FilterJob(given, one, 0), cache)
        for one in (whole, steps, replace(steps, judging=99), replace(steps, margin=3))
    }
    assert len(keys) == 4
    assert "judging" not in Cell("row", "column", given, whole).identity()["filter"]
