"""Trainings of a table in stacks: the policies of single trainings, killed and gone on with."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from pubc.experiments.cell import Cell, DatasetSpec, FilterSpec, LearnerSpec
from pubc.experiments.stage_cache import Cache
from pubc.experiments.stage_versions import versions
from pubc.experiments.stages import stacks
from pubc.experiments.stages.assignments import assignment_of, policy_key, selection_of
from pubc.experiments.stages.datasets import data_path
from pubc.experiments.stages.filters import job_of, make_filter
from pubc.experiments.stages.learn import learn, train
from pubc.experiments.stages.stacks import Candidate, form_stacks, plan_member, train_stack
from pubc.formats import save
from pubc.policies.policy_folder import load, read_config
from pubc.policies.training_run import Session
from pubc.storage import hash_file, read_manifest
from tests.policies.sets import tiny


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    given = {}
    for name, trajectories in (("a", 6), ("b", 9)):
        path = tmp_path / f"{name}.npz"
        save(path, tiny(trajectories=trajectories, observations=3, actions=1, seed=trajectories))
        given[hash_file(path)] = str(path)
    return Cache(tmp_path / "cache", versions(), given=given)


def cells(cache: Cache, algo: str, **options) -> list[Cell]:
    chosen = LearnerSpec(algo, "Pendulum-v1", options, 1, reference=(-2000.0, 0.0))
    best = FilterSpec("top_returns", share=0.5)
    found = [
        Cell("row", str(selected), DatasetSpec(name="x", sha256=sha256), selected, chosen, seed)
        for sha256 in cache.given
        for selected in (None, best)
        for seed in (0, 1)
    ]
    for cell in found:
        if cell.filter is not None:
            make_filter(cache, job_of(cell))
    return found


def found_in(cache: Cache, asked: list[Cell]) -> list[tuple[Cell, Candidate]]:
    return [(cell, plan_member(cache, cell)) for cell in asked]


def given(cache: Cache, cell: Cell):
    return assignment_of(cell, data_path(cache, cell.dataset), selection_of(cell, cache), cache)


@pytest.mark.parametrize(
    ("algo", "options"),
    [("bc", {"epochs": 2, "batch_size": 32}), ("iql", {"updates": 6, "batch_size": 8})],
)
def test_each_policy_is_that_of_a_training_alone_under_its_key(cache, tmp_path, algo, options):
    if algo == "iql":
        pytest.importorskip("d3rlpy")
    asked = cells(cache, algo, **options)
    jobs = form_stacks(found_in(cache, asked), 99, cache)
    for job in jobs:
        train_stack(cache, job)
    assert sum(len(job.cells) for job in jobs) == len(asked) == 8
    alone = Cache(tmp_path / "alone", versions(), given=cache.given)
    for cell in asked:
        if cell.filter is not None:
            make_filter(alone, job_of(cell))
        mine, theirs = given(cache, cell), given(alone, cell)
        place = cache.path("policies", policy_key(mine, cache)) / "policy"
        other = train(theirs, alone) / "policy"
        assert place.parent.name == other.parent.name
        rows = np.random.default_rng(0).normal(size=(8, 3))
        assert np.abs(load(place).act(rows) - load(other).act(rows)).max() < 1e-4
        told = read_config(place)
        assert told.pop("stack")["members"] in {len(job.cells) for job in jobs}
        assert told["training"] == read_config(other)["training"]
        assert told["random_seed"] == cell.random_seed
    assert not list((cache.root / "stacks").iterdir())
    assert form_stacks(found_in(cache, asked), 99, cache) == []


def test_a_cell_of_a_stack_says_so(cache):
    (cell, *_) = cells(cache, "bc", epochs=1)
    (job,) = form_stacks(found_in(cache, [cell]), 9, cache)
    train_stack(cache, job)
    values = learn(cell, data_path(cache, cell.dataset), selection_of(cell, cache), cache)
    assert values["stack"] == {"members": 1}
    assert values["episodes"] == 1


class Killed(BaseException):
    """As if the process had died."""


def test_a_killed_stack_goes_on_as_it_was_begun(cache, tmp_path, monkeypatch):
    asked = [one for one in cells(cache, "bc", epochs=6, batch_size=32) if one.filter is None]
    monkeypatch.setattr(stacks, "CHECKPOINT_SECONDS", 0.0)
    whole = Cache(tmp_path / "whole", versions(), given=cache.given)
    (job,) = form_stacks(found_in(whole, asked), 99, whole)
    train_stack(whole, job)

    real = Session.epochs

    def dies(self) -> Iterator:
        for epoch in real(self):
            if epoch.number == 3:
                raise Killed
            yield epoch

    (job,) = form_stacks(found_in(cache, asked), 99, cache)
    with monkeypatch.context() as dying:
        dying.setattr(Session, "epochs", dies)
        with pytest.raises(Killed):
            train_stack(cache, job)
    # Another limit, and a policy that was written before the kill: the stack stays what it was.
    build = whole.path("policies", job.keys[0])
    cache.make("policies", job.keys[0], lambda folder: (build / "policy").rename(folder / "policy"))
    (again,) = form_stacks(found_in(cache, asked), 3, cache)
    assert again == job
    begun = []
    monkeypatch.setattr(
        Session,
        "_advance",
        lambda self, n: (begun.append(n), self.trainer.advance(n))[1],
    )
    train_stack(cache, again)
    assert begun == [3, 4, 5]
    for key in job.keys[1:]:
        ours, theirs = (read_manifest(c.path("policies", key)) for c in (cache, whole))
        assert ours["files"] == theirs["files"]


def test_stacks_hold_no_more_than_the_limit_and_members_that_take_about_as_long(cache):
    (cell, *_) = cells(cache, "bc", epochs=1)
    lengths = [1000, 980, 600, 499, 300, 100]
    found = [(cell, Candidate(f"{n:016x}", "k", length)) for n, length in enumerate(lengths)]
    found += [(cell, Candidate("f" * 16, "another kind", 1000))]

    def sizes(limit: int) -> list[list[int]]:
        return [[int(key, 16) for key in job.keys] for job in form_stacks(found, limit, cache)]

    other = [[int("f" * 16, 16)]]
    assert sizes(9) == [[0, 1, 2], [3, 4], [5], *other]
    assert sizes(2) == [[0, 2], [1], [3, 4], [5], *other]


def test_what_cannot_be_stacked_is_left_to_a_training_alone(cache):
    (cell, *_) = cells(cache, "dt", updates=1)
    assert plan_member(cache, cell) is None
    curve = LearnerSpec("bc", "Pendulum-v1", {"epochs": 1}, 1, curve_every=5)
    assert plan_member(cache, Cell("r", "c", cell.dataset, None, curve)) is None
    data = LearnerSpec("data", "Pendulum-v1")
    assert plan_member(cache, Cell("r", "c", cell.dataset, None, data)) is None


def test_what_is_no_list_of_ours_stays_among_the_stacks(cache):
    folder = cache.root / "stacks"
    (folder / "mine.training").mkdir(parents=True)
    (folder / "mine.json").write_text('{"policies": ["mine"]}')
    (folder / "odd.json").write_text('{"policies": 7}')
    assert form_stacks([], 4, cache) == []
    assert {path.name for path in folder.iterdir()} == {"mine.json", "mine.training", "odd.json"}


def test_a_training_folder_of_somebody_else_stays_among_the_stacks(cache, monkeypatch):
    job = stacks.StackJob(("a" * 16,), ())
    mine = job.folder(cache).with_suffix(".training") / "metrics.jsonl"
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    listed = job.folder(cache).with_suffix(".json")
    listed.write_text('{"policies": ["' + "a" * 16 + '"]}')
    monkeypatch.setattr(Cache, "has", lambda *given: True)
    assert form_stacks([], 4, cache) == []
    assert not listed.exists()
    assert mine.read_text() == "mine"
