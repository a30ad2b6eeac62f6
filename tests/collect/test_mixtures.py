"""The promise: the bytes depend on the request, and on nothing else."""

import hashlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.collect import Request, collect, collecting, custom, find, mixtures
from pubc.collect.mixtures import work_folder
from pubc.errors import DataError, EnvironmentFailure, UsageError
from pubc.formats import save_sealed
from pubc.storage import read_json, verify
from tests.pu.piles import pile

pytest.importorskip("mujoco")
SMALL = Request(find("ant:E+E+W+N"), None, 2, seed_steps=150)
STEPS = Request(find("ant:E+W"), 700, seed_steps=0)
COMMAND = [
    sys.executable, "-m", "pubc.cli.main", "collect", "ant:E+E+W+N", "x.npz",
    "--trajectories-per-source", "2", "--seed-steps", "150", "--processes", "2",
]  # fmt: skip


def bytes_of(folder: Path) -> dict[str, str]:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    collect(SMALL, folder / "x.npz", processes=2)
    return folder


def test_one_and_two_processes_give_identical_bytes(small: Path, tmp_path: Path):
    collect(SMALL, tmp_path / "x.npz", processes=1)
    assert bytes_of(tmp_path) == bytes_of(small)


def test_nothing_is_left_but_the_mixture_and_its_seed_positives(small: Path):
    names = {"x.npz", "x-seed.npz"}
    assert set(bytes_of(small)) == names | {f"{name}.manifest.json" for name in names}


def test_what_was_written_can_be_verified(small: Path, tmp_path: Path):
    for name in ("x.npz", "x-seed.npz"):
        assert verify(small / name) == []
    for path in small.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    changed = bytearray((tmp_path / "x.npz").read_bytes())
    changed[5000] ^= 1
    (tmp_path / "x.npz").write_bytes(changed)
    assert [fault.file for fault in verify(tmp_path / "x.npz")] == ["x.npz"]


def test_a_killed_run_continued_gives_identical_bytes(small: Path, tmp_path: Path):
    running = subprocess.Popen(
        COMMAND, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    parts = work_folder(tmp_path / "x.npz")
    deadline = time.monotonic() + 120
    while len(list(parts.glob("*.safetensors"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    assert not (tmp_path / "x.npz").exists()
    kept = {p.name: p.stat().st_mtime_ns for p in parts.glob("*.safetensors")}
    assert len(kept) >= 3
    reports = list(collecting(SMALL, tmp_path / "x.npz", processes=2))
    assert reports[0].resumed > 0
    assert bytes_of(tmp_path) == bytes_of(small)


def test_the_mixture_holds_what_the_recipe_says(small: Path):
    mixed = pubc.load(small / "x.npz")
    names, counts = np.unique(mixed.sources, return_counts=True)
    assert dict(zip(names.tolist(), counts.tolist(), strict=True)) == {
        "E+": 2, "E-": 2, "W": 2, "N": 2,
    }  # fmt: skip
    assert mixed.metadata["expert"] == "E+"
    assert mixed.metadata["environment_arguments"] == {"include_cfrc_ext_in_observation": False}
    assert mixed.has_final.all()
    assert set(mixed.ends().tolist()) <= {"terminal", "timeout"}


def test_the_order_says_nothing_about_the_source(small: Path):
    sources = pubc.load(small / "x.npz").sources.tolist()
    assert sources != sorted(sources, key=["E+", "E-", "W", "N"].index)


def test_noise_has_the_ranges_and_lengths_of_the_others(small: Path):
    mixed = pubc.load(small / "x.npz")
    noise, rest = mixed[mixed.sources == "N"], mixed[mixed.sources != "N"]
    for name in ("observations", "actions", "rewards"):
        theirs = getattr(rest.flat(), name).reshape(rest.steps, -1)
        ours = getattr(noise.flat(), name).reshape(noise.steps, -1)
        assert (ours >= theirs.min(axis=0)).all()
        assert (ours <= theirs.max(axis=0)).all()
        spread = theirs.max(axis=0) - theirs.min(axis=0)
        assert (ours.max(axis=0) - ours.min(axis=0) >= 0.9 * spread).all()
    assert set(noise.lengths.tolist()) <= set(rest.lengths.tolist())


def test_seed_positives_are_the_expert_and_not_part_of_the_mixture(small: Path):
    mixed, seeds = pubc.load(small / "x.npz"), pubc.load(small / "x-seed.npz")
    assert seeds.steps == 150
    assert set(seeds.sources.tolist()) == {"E+"}
    starts = {tuple(t.steps.observations[0]) for t in mixed}
    assert not starts & {tuple(t.steps.observations[0]) for t in seeds}


def test_returns_tell_the_policies_apart(small: Path):
    mixed = pubc.load(small / "x.npz")
    returns = {s: mixed[mixed.sources == s].total_rewards().mean() for s in ("E+", "W")}
    assert returns["E+"] > 4000 > 1500 > returns["W"]


def test_a_quota_of_steps_is_met_exactly_and_independent_of_processes(tmp_path: Path):
    for processes in (1, 2):
        folder = tmp_path / str(processes)
        folder.mkdir()
        request = replace(STEPS, recipe=custom("hopper", {"a": "hopper/medium", "N": "noise"}))
        collect(request, folder / "x.npz", processes=processes)
    assert bytes_of(tmp_path / "1") == bytes_of(tmp_path / "2")
    mixed = pubc.load(tmp_path / "1" / "x.npz")
    for source in ("a", "N"):
        assert mixed[mixed.sources == source].steps == 700
    assert "timeout" in mixed.ends().tolist()


def test_another_random_seed_gives_another_mixture(tmp_path: Path):
    for seed in (0, 1):
        collect(replace(STEPS, steps_per_source=60, random_seed=seed), tmp_path / f"{seed}.npz")
    one, two = (pubc.load(tmp_path / f"{seed}.npz") for seed in (0, 1))
    assert not np.array_equal(one.columns.observations, two.columns.observations)


def test_seed_positives_inside_are_listed_by_id(tmp_path: Path):
    request = Request(find("ant:E+W"), 900, seed_inside=1)
    collect(replace(request, steps_per_source=60), tmp_path / "x.store")
    listed = read_json(tmp_path / "x-seed.json")
    mixed = pubc.load(tmp_path / "x.store")
    assert listed["dataset"] == "x.store"
    assert mixed.metadata["seed_positives"] == listed["ids"]
    assert mixed.sources[np.isin(mixed.ids, listed["ids"])].tolist() == ["E+"]


def test_marking_more_than_there_are_is_refused(tmp_path: Path):
    request = Request(find("ant:E"), 20, seed_inside=9)
    with pytest.raises(UsageError, match="more trajectories than the 1 of 'E\\+'"):
        collect(request, tmp_path / "x.npz")


def test_an_existing_target_is_refused_before_anything_is_played(tmp_path: Path):
    (tmp_path / "x.npz").write_text("mine")
    with pytest.raises(UsageError, match=r"x.npz exists already.*--force"):
        next(collecting(STEPS, tmp_path / "x.npz"))
    with pytest.raises(UsageError, match="pubc did not write"):
        next(collecting(STEPS, tmp_path / "x.npz", overwrite=True))
    assert bytes_of(tmp_path).keys() == {"x.npz"}
    (tmp_path / "x.npz").unlink()
    collect(STEPS, tmp_path / "x.npz")
    with pytest.raises(UsageError, match="exists already"):
        next(collecting(STEPS, tmp_path / "x.npz"))
    collect(replace(STEPS, steps_per_source=30), tmp_path / "x.npz", overwrite=True)
    assert pubc.load(tmp_path / "x.npz").steps == 60


def test_the_parts_of_another_request_are_not_mixed_in(tmp_path: Path):
    first = collecting(STEPS, tmp_path / "x.npz")
    while not list(work_folder(tmp_path / "x.npz").glob("*.safetensors")):
        next(first)
    first.close()
    with pytest.raises(UsageError, match="parts of another collection"):
        next(collecting(replace(STEPS, random_seed=5), tmp_path / "x.npz"))


def test_a_part_that_somebody_edited_is_named_and_stays(tmp_path: Path):
    first = collecting(STEPS, tmp_path / "x.npz")
    work = work_folder(tmp_path / "x.npz")
    while not list(work.glob("*.safetensors")):
        next(first)
    first.close()
    part = min(work.glob("*.safetensors"))
    edited = part.read_bytes()[:-1] + b"?"
    part.write_bytes(edited)
    for overwrite in (False, True):
        with pytest.raises(UsageError, match=rf"{part.name}, which is not as pubc wrote it"):
            next(collecting(STEPS, tmp_path / "x.npz", overwrite=overwrite))
    assert part.read_bytes() == edited
    part.unlink()
    assert collect(STEPS, tmp_path / "x.npz").steps == 1400
    assert not work.exists()


def test_what_came_to_be_there_since_a_kill_stays(tmp_path: Path):
    first = collecting(STEPS, tmp_path / "x.npz")
    while not list(work_folder(tmp_path / "x.npz").glob("*.safetensors")):
        next(first)
    first.close()
    save_sealed(tmp_path / "x.npz", pile([2], steps=5))
    before = (tmp_path / "x.npz").read_bytes()
    with pytest.raises(UsageError, match=r"x.npz exists already"):
        collect(STEPS, tmp_path / "x.npz")
    assert (tmp_path / "x.npz").read_bytes() == before
    (tmp_path / "x.npz").unlink()
    (tmp_path / "x.npz.manifest.json").unlink()
    assert collect(STEPS, tmp_path / "x.npz").steps == 1400


def test_what_came_to_be_there_since_a_kill_between_two_results_stays(tmp_path: Path, monkeypatch):
    out, request = tmp_path / "x.npz", replace(STEPS, seed_steps=20)
    real = mixtures.save_sealed

    def fail(path, *given, **named):
        if path == out:
            raise KeyboardInterrupt
        real(path, *given, **named)

    monkeypatch.setattr(mixtures, "save_sealed", fail)
    with pytest.raises(KeyboardInterrupt):
        collect(request, out)
    monkeypatch.setattr(mixtures, "save_sealed", real)
    assert (tmp_path / "x-seed.npz").exists()
    save_sealed(out, pile([2], steps=5))
    before = out.read_bytes()
    with pytest.raises(UsageError, match=r"x.npz exists already"):
        collect(request, out)
    assert out.read_bytes() == before
    out.unlink()
    (tmp_path / "x.npz.manifest.json").unlink()
    assert collect(request, out).steps == 1400  # its own seed positives are in nobody's way


def test_force_is_about_what_was_there_when_it_was_given(tmp_path: Path):
    out = tmp_path / "x.npz"
    save_sealed(out, pile([2], steps=5))
    playing = collecting(replace(STEPS, steps_per_source=60), out, overwrite=True)
    next(playing)
    save_sealed(out, pile([3], steps=5), overwrite=True)
    before = out.read_bytes()
    with pytest.raises(UsageError, match=r"x.npz exists already"):
        list(playing)
    assert out.read_bytes() == before


def test_what_came_to_be_there_while_it_played_stays(tmp_path: Path):
    playing = collecting(replace(STEPS, steps_per_source=60), tmp_path / "x.npz")
    next(playing)
    save_sealed(tmp_path / "x.npz", pile([2], steps=5))
    before = (tmp_path / "x.npz").read_bytes()
    with pytest.raises(UsageError, match=r"x.npz exists already"):
        list(playing)
    assert (tmp_path / "x.npz").read_bytes() == before


def test_two_runs_at_one_target_are_refused(tmp_path: Path):
    out = tmp_path / "x.npz"
    running = collecting(STEPS, out, processes=1)
    next(running)
    code = (
        "from pubc.collect import *; from pubc.errors import LockedError\n"
        "try: next(collecting(Request(find('ant:E+W'), 700, seed_steps=0), 'x.npz'))\n"
        "except LockedError: print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "refused"
    assert work_folder(out).exists()
    running.close()


def test_a_policy_that_does_not_fit_is_refused_and_leaves_nothing(tmp_path: Path):
    request = replace(STEPS, recipe=custom("hopper", {"E+": "ant/expert"}))
    with pytest.raises(DataError, match="made for 27 observations, but hopper has 11"):
        collect(request, tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_too_small_is_refused_before_anything_is_played(tmp_path: Path, monkeypatch):
    usage = type("Usage", (), {"free": 2**20})
    monkeypatch.setattr("pubc.collect.mixtures.shutil.disk_usage", lambda path: usage)
    with pytest.raises(EnvironmentFailure, match=r"takes about .* MiB .* 1 MiB are free"):
        collect(replace(STEPS, steps_per_source=500_000), tmp_path / "x.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_keeps_the_parts_and_goes_on(tmp_path: Path, monkeypatch):
    import errno

    import pubc.collect.put_together as assembling

    whole, small = tmp_path / "whole", tmp_path / "small"
    whole.mkdir()
    small.mkdir()
    request = replace(STEPS, steps_per_source=60)
    collect(request, whole / "x.npz")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(assembling, "_header", full)
        with pytest.raises(EnvironmentFailure, match="the disk is full"):
            collect(request, small / "x.npz")
    assert not (small / "x.npz").exists()
    reports = list(collecting(request, small / "x.npz"))
    assert reports[0].done == 1.0
    assert bytes_of(small) == bytes_of(whole)


def test_a_worker_that_dies_is_reported_and_the_run_goes_on(tmp_path: Path):
    request = replace(STEPS, steps_per_source=3000)
    running = collecting(request, tmp_path / "x.npz", processes=1)
    next(running)
    children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    if not children.exists():
        pytest.skip("needs /proc to find the worker")
    workers = [
        int(pid)
        for pid in children.read_text().split()
        if b"pubc.collect.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(workers[0], signal.SIGKILL)
    with pytest.raises(EnvironmentFailure, match=r"was ended by signal 9.*the same command"):
        list(running)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"steps_per_source": None}, "either steps per source or"),
        ({"trajectories_per_source": 5}, "either steps per source or"),
        ({"steps_per_source": -5}, "positive"),
        ({"random_seed": -1}, "positive"),
    ],
)
def test_a_request_without_meaning_is_refused(settings, words):
    with pytest.raises(UsageError, match=words):
        replace(STEPS, **settings)


def test_a_suffix_without_a_format_is_refused_before_anything_is_played(tmp_path: Path):
    with pytest.raises(UsageError, match="names no format"):
        next(collecting(STEPS, tmp_path / "x.doc"))
    assert list(tmp_path.iterdir()) == []
