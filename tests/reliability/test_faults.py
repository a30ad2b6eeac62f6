"""A write that fails half way leaves the old result or the new one (L3, L4, R4)."""

import sys

import pytest

from tests.reliability.fault_points import HOWS
from tests.reliability.fault_scenes import SCENES
from tests.reliability.faults import Tally, Worker, fail_everywhere

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
    "tests.reliability.quick_recipe",
)  # fmt: skip
FEW = 1
"""Points of each command and way in the quick suite; all of them in `make check-full`."""
PARTS = 8
"""All points of a command are shared by so many tests: `pytest -n 16` runs them side by side."""
QUICK = (
    "convert to npz again", "convert to a store again", "filter again, then --resume",
    "report in a run", "train", "export again",
)  # fmt: skip
"""What CI looks at."""


@pytest.fixture(scope="module")
def worker():
    made = Worker(*LOADED)
    yield made
    made.close()


def check(tally: Tally, name: str) -> None:
    sys.stdout.write(f"{name}: {tally}\n")  # `pytest -rP` shows it
    assert tally.wrong == []
    assert tally.tried


@pytest.mark.parametrize("name", QUICK)
def test_a_few_failed_writes_leave_the_old_result_or_the_new(name, worker, tmp_path):
    (tmp_path / "before").mkdir()
    scene = SCENES[name](tmp_path / "before")
    check(fail_everywhere(worker, scene, tmp_path, HOWS, FEW), name)


@pytest.mark.parametrize("name", ["collect", "train again"])
def test_a_kill_while_leftovers_are_removed_is_taken_up(name, worker, tmp_path):
    """At the last removals of files: what is left must be known as ours."""
    (tmp_path / "before").mkdir()
    scene = SCENES[name](tmp_path / "before")
    tally = fail_everywhere(worker, scene, tmp_path, ("kill",), last=2)
    check(tally, name)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("name", SCENES)
def test_every_failed_write_leaves_the_old_result_or_the_new(name, part, worker, tmp_path):
    (tmp_path / "before").mkdir()
    scene = SCENES[name](tmp_path / "before")
    tally = fail_everywhere(worker, scene, tmp_path, HOWS, part=(part, PARTS))
    check(tally, f"{name}, part {part + 1} of {PARTS}")
