"""A failed write, or a signal, leaves the old result or the new one (L3, L4, R6, R17)."""

import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.reliability import fault_scenes, fault_scenes_of_results, fault_scenes_of_work
from tests.reliability.fault_points import HOWS
from tests.reliability.faults import (
    Scene,
    Tally,
    Worker,
    fail_at,
    fail_everywhere,
    strike_at_moments,
)

ROOMS = (fault_scenes, fault_scenes_of_results, fault_scenes_of_work)
SCENES = {name: build for room in ROOMS for name, build in room.SCENES.items()}
NEEDS = {name: libraries for room in ROOMS for name, libraries in room.NEEDS.items()}

LOADED = (
    "pubc.cli.parsing", "pubc.formats.npz", "pubc.formats.store", "pubc.runs.filter_run",
    "pubc.cli.filtering.filter_command", "pubc.report.page", "pubc.report.run_figures",
    "pubc.report.policies", "pubc.report.run_markdown", "pubc.engine.serial",
    "torch.fx.experimental.symbolic_shapes", "tyro._backends._tyro_backend",
    "pubc.cli.policies.train_command", "pubc.policies.stacked.many_policies",
    "pubc.policies.export_policy", "pubc.acting.evaluate", "pubc.acting.rollout",
    "gymnasium.envs.classic_control.pendulum", "pubc.cli.filtering.report_command",
    "pubc.cli.policies.evaluate_command", "pubc.cli.policies.export_command",
    "pubc.policies.cloning.bc", "pubc.collect.mixtures", "pubc.cli.data.collect_command",
    "tests.reliability.quick_recipe", "tests.reliability.quick_table",
    "tests.reliability.quick_film", "pubc.cli.policies.film", "pubc.runs.apply_run",
    "pubc.cli.filtering.score_command", "pubc.runs.segments.trainer_tables",
    "pubc.cli.filtering.weights_command", "pubc.cli.data.inspect_command",
    "pubc.cli.data.inspect_plot", "pubc.cli.policies.compare_command", "pubc.report.drawing",
    "pubc.report.tables.pages.write_tables", "pubc.cli.filtering.demo_command",
    "pubc.cli.reproducing.reproduce_command", "pubc.experiments.run_table",
    "pubc.experiments.record_files", "pubc.cli.filtering.review_command", "pubc.review.serve",
    "pubc.review.filter_child", "pubc.formats.minari.minari_read",
    "pubc.formats.robomimic.robomimic_read", "pubc.formats.d3rlpy",
)  # fmt: skip
FEW = 1
"""Points of each command and way in the quick suite; all of them in `make check-full`."""
PARTS = 2
"""All points of a command in one way are shared by so many tests, which `pytest -n` runs side by
side. No more: the shortest commands have five points."""
QUICK = (
    "convert to npz again", "convert to a store again", "filter again, then --resume",
    "report in a run", "train", "export again",
)  # fmt: skip
"""What CI fails by a kill, a full disk and a failing one."""
ONCE = (
    ("score", "EROFS", 9), ("weights for torch", "EACCES", 5), ("compare", "EIO", 4),
    ("inspect --plot", "kill", 4), ("reproduce", "ENOSPC", 40), ("demo", "EACCES", 60),
    ("review, marks", "EROFS", 6), ("review, the run", "kill", 90),
    ("convert to minari", "EROFS", 12), ("convert to robomimic", "EIO", 9),
    ("convert to lerobot", "EACCES", 30), ("evaluate --frames, a folder", "ENOSPC", 6),
)  # fmt: skip
"""What CI fails at one point in one way."""
STRUCK = (
    "filter", "filter again, then --resume", "train", "convert to npz again", "report again",
    "collect", "score", "reproduce", "demo", "evaluate --record", "compare", "export",
)  # fmt: skip
"""Commands that signals strike at thirty moments in `make check-full`."""
STRUCK_ONCE = (
    ("train", signal.SIGINT, 0.02), ("train", signal.SIGTERM, 0.8),
    ("convert to npz again", signal.SIGINT, 0.6), ("report again", signal.SIGTERM, 0.9),
    ("train", signal.SIGKILL, 0.5),
)  # fmt: skip
"""What a signal strikes in CI, and at which share of the time that it takes."""


@pytest.fixture(scope="module")
def worker():
    made = Worker(*LOADED)
    yield made
    made.close()


def scene_of(name: str, folder: Path) -> Scene:
    """A scene, where its libraries are there; made where its copies will be."""
    for library in NEEDS.get(name, ()):
        pytest.importorskip(library)
    (folder / "here").mkdir()
    scene = SCENES[name](folder / "here")
    return replace(scene, folder=(folder / "here").rename(folder / "before"))


def check(tally: Tally, name: str) -> None:
    sys.stdout.write(f"{name}: {tally}\n")  # `pytest -rP` shows it
    assert tally.wrong == []
    assert tally.tried


@pytest.mark.parametrize("name", QUICK)
def test_a_few_failed_writes_leave_the_old_result_or_the_new(name, worker, tmp_path):
    scene = scene_of(name, tmp_path)
    check(fail_everywhere(worker, scene, tmp_path, HOWS[:3], FEW), name)


@pytest.mark.parametrize(("name", "how", "at"), ONCE)
def test_one_failed_write_leaves_the_old_result_or_the_new(name, how, at, worker, tmp_path):
    check(fail_at(worker, scene_of(name, tmp_path), tmp_path, how, at), name)


@pytest.mark.parametrize("name", ["collect", "train again"])
def test_a_kill_while_leftovers_are_removed_is_taken_up(name, worker, tmp_path):
    """At the last removals of files: what is left must be known as ours."""
    scene = scene_of(name, tmp_path)
    tally = fail_everywhere(worker, scene, tmp_path, ("kill",), last=2)
    check(tally, name)


@pytest.mark.parametrize(("name", "number", "moment"), STRUCK_ONCE)
def test_a_signal_at_a_moment_is_one_sentence(name, number, moment, worker, tmp_path):
    scene = scene_of(name, tmp_path)
    assert strike_at_moments(worker, scene, tmp_path, number, (moment,)).wrong == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("name", STRUCK)
def test_a_signal_at_thirty_moments_is_one_sentence(name, number, worker, tmp_path):
    moments = [(n + 0.5) / 30 for n in range(30)]
    tally = strike_at_moments(worker, scene_of(name, tmp_path), tmp_path, number, moments)
    check(tally, f"{name}, {signal.Signals(number).name}")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("name", SCENES)
def test_every_failed_write_leaves_the_old_result_or_the_new(name, how, part, worker, tmp_path):
    scene = scene_of(name, tmp_path)
    tally = fail_everywhere(worker, scene, tmp_path, (how,), part=(part, PARTS))
    check(tally, f"{name}, {how}, part {part + 1} of {PARTS}")
