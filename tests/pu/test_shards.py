"""Shards: together they are the whole set, and workers find what one process finds."""

import dataclasses
import functools
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.engine import Outcome, open_engine
from pubc.errors import DataError, EnvironmentFailure, UsageError
from pubc.formats import ReadOptions
from pubc.nets import Schedule
from pubc.pu import shards
from pubc.pu.auto.telling_steps import View
from pubc.pu.judge import Bench
from pubc.pu.paper.ensemble import Ensemble
from pubc.pu.shards import Shards, rate, shard_bounds
from pubc.select import locate
from tests.engine.tasks import is_killed
from tests.pu.paper.test_ensemble import task
from tests.pu.piles import pile

JUDGE = Ensemble(schedule=Schedule(epochs=2, batch=64))
MIXED = pile([20, 20], steps=90, states=3)


@pytest.fixture(scope="module")
def engine():
    with open_engine("processes", workers=2) as opened:
        yield opened


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """The shelf with the networks of a round, and what one process thinks with them."""
    shelf = tmp_path_factory.mktemp("shelf")
    return shelf, JUDGE(task(MIXED, shelf=shelf)).confidence


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store that is cut into several shards although it is small."""
    monkeypatch.setattr(shards, "LEAST", 400)
    pubc.save(tmp_path / "mixed.store", MIXED)
    return tmp_path / "mixed.store"


def spread(engine, data: Path, options: ReadOptions | None = None) -> Shards:
    return Shards(engine, data, options or ReadOptions(), data.parent / "shards")


@pytest.mark.parametrize("seed", range(20))
def test_shards_cover_every_trajectory_once_and_are_of_like_size(seed: int):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 5_000, size=rng.integers(1, 3_000))
    cuts = shard_bounds(lengths)
    assert cuts[0] == 0
    assert cuts[-1] == len(lengths)
    assert (np.diff(cuts) > 0).all()
    steps = np.add.reduceat(lengths, cuts[:-1])
    wanted = min(max(int(lengths.sum()) // shards.SHARDS, shards.LEAST), shards.MOST)
    assert steps.max() <= wanted + 2 * lengths.max()


def test_workers_rate_what_one_process_rates(engine, judged, data: Path, tmp_path: Path):
    shelf, alone = judged
    together = JUDGE(task(MIXED, shelf=shelf, shards=spread(engine, data))).confidence
    assert len(list((tmp_path / "shards").iterdir())) > 4
    assert np.array_equal(alone, together)
    bench = Bench(shards=spread(engine, data))
    assert np.array_equal(rate(JUDGE, shelf, 1, MIXED, bench), alone)


def test_workers_look_at_what_one_process_looks_at(engine, data: Path):
    outside = pile([2], steps=90, states=3, random_seed=5)
    seeds = pubc.trajectory.concatenate([MIXED[:2], outside])
    places = locate(MIXED, seeds)
    alone = View(MIXED, seeds, places, 16, Bench())
    together = View(MIXED, seeds, places, 16, Bench(shards=spread(engine, data)))
    for name in ("chosen", "states", "actions"):
        assert np.array_equal(getattr(alone, name), getattr(together, name)), name
    assert len(alone.weights) == len(together.weights) == 42
    assert all(map(np.array_equal, alone.weights, together.weights))


def test_a_format_that_cannot_be_mapped_is_spread_too(engine, judged, data: Path, tmp_path: Path):
    path, (shelf, alone) = tmp_path / "mixed.hdf5", judged
    pubc.save(path, MIXED)
    bench = Bench(shards=spread(engine, path, ReadOptions(format="d4rl")))
    assert np.array_equal(rate(JUDGE, shelf, 1, MIXED, bench), alone)
    assert np.array_equal(JUDGE.apply(shelf, 1, MIXED, Bench()), alone)


class Counting:
    """An engine that notes what it is asked, and stops after so many items."""

    workers = 1

    def __init__(self, most: int) -> None:
        self.most, self.asked = most, 0

    def map(self, function, items):
        for index, item in enumerate(items):
            if self.asked == self.most:
                raise KeyboardInterrupt
            self.asked += 1
            yield Outcome(index, function(item))


def test_what_was_finished_before_a_kill_is_not_done_again(judged, data: Path):
    shelf, alone = judged
    killed, heir = Counting(3), Counting(99)
    with pytest.raises(KeyboardInterrupt):
        rate(JUDGE, shelf, 1, MIXED, Bench(shards=spread(killed, data)))
    found = rate(JUDGE, shelf, 1, MIXED, Bench(shards=spread(heir, data)))
    assert heir.asked == len(shard_bounds(MIXED.lengths)) - 1 - 3
    assert np.array_equal(found, alone)


def test_data_that_changed_under_the_workers_is_refused(
    engine, judged, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shards, "LEAST", MIXED.steps)  # one shard: no other worker is stopped
    other = dataclasses.replace(spread(engine, data), data=tmp_path / "other.store")
    pubc.save(tmp_path / "other.store", MIXED[:39])
    with pytest.raises(DataError, match="found 39 trajectories with 3,510 steps") as caught:
        rate(JUDGE, judged[0], 1, MIXED, Bench(shards=other))
    assert caught.value.code == "changed"


def refuse(kind: str, part):
    if kind == "usage":
        raise UsageError("That means nothing.")
    raise ZeroDivisionError("by nothing")


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("usage", UsageError, "That means nothing."),
        ("bug", pubc.PubcError, "ZeroDivisionError: by nothing"),
    ],
)
def test_what_a_worker_says_is_said_here(
    engine, data: Path, monkeypatch: pytest.MonkeyPatch, kind: str, error: type, words: str
):
    monkeypatch.setattr(shards, "LEAST", MIXED.steps)
    with pytest.raises(error, match=words):
        list(spread(engine, data).map(functools.partial(refuse, kind), "nothing", MIXED))


class Deadly:
    """An engine whose workers are killed at once, before they load what shards need."""

    def __init__(self, engine) -> None:
        self.engine, self.workers = engine, engine.workers

    def map(self, function, items):
        return self.engine.map(is_killed, range(len(items)))


def test_a_shard_whose_workers_are_killed_is_given_up_in_words(engine, data: Path):
    with pytest.raises(EnvironmentFailure, match="ended by signal 9, 3 times in all"):
        list(spread(Deadly(engine), data).map(functools.partial(refuse, "bug"), "nothing", MIXED))
