"""What only the engine of local processes promises, and how engines are opened."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pubc.engine import open_engine
from pubc.errors import InterruptedRun, UnknownNameError, UsageError
from pubc.threads import cores
from tests.engine import tasks


def test_an_unknown_engine_is_named():
    with pytest.raises(UnknownNameError, match="Did you mean 'processes'"):
        open_engine("process")


def test_an_address_needs_ray():
    with pytest.raises(UsageError, match="--address joins a Ray cluster"):
        open_engine("processes", address="auto")


def test_fewer_than_no_workers_mean_nothing():
    with pytest.raises(UsageError, match="Got -1"):
        open_engine("processes", workers=-1)


def test_no_number_of_workers_means_one_per_core():
    with open_engine("processes") as engine:
        assert engine.workers == cores()


def interrupted(item):
    raise InterruptedRun("Stopped.")


def test_an_interruption_is_no_result():
    with open_engine("serial") as engine, pytest.raises(InterruptedRun):
        list(engine.map(interrupted, [1, 2]))


def test_a_function_that_cannot_be_imported_is_refused():
    with open_engine("processes", workers=1) as engine:
        with pytest.raises(UsageError, match="can be imported"):
            list(engine.map(lambda item: item, [1]))
        assert [o.value for o in engine.map(tasks.double, [1])] == [2]


def test_workers_stay_for_the_next_items_and_end_with_the_engine():
    with open_engine("processes", workers=1) as engine:
        first = [o.value for o in engine.map(tasks.process, range(3))]
        (again,) = engine.map(tasks.process, [0])
        assert {*first, again.value} == {first[0]}
        os.kill(first[0], 0)
    with pytest.raises(ProcessLookupError):
        os.kill(first[0], 0)


def test_a_worker_killed_between_two_maps_costs_no_try():
    with open_engine("processes", workers=1) as engine:
        (first,) = engine.map(tasks.process, [0])
        os.kill(first.value, signal.SIGKILL)
        (second,) = engine.map(tasks.process, [0])
        assert second.value != first.value


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_parent(number: int, tmp_path: Path):
    script = (
        "from pubc.engine import open_engine\nfrom tests.engine import tasks\n"
        "with open_engine('processes', workers=1) as engine:\n"
        f"    list(engine.map(tasks.long_work, [{str(tmp_path / 'pid')!r}]))\n"
    )
    root = Path(__file__).parents[2]
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=root, stderr=subprocess.DEVNULL)
    worker = _written(tmp_path / "pid")
    parent.send_signal(number)
    parent.wait(10)
    _gone(worker)


def _written(path: Path) -> int:
    for _ in range(300):
        if path.exists() and path.read_text():
            return int(path.read_text())
        time.sleep(0.1)
    return pytest.fail("the work never began")


def _gone(pid: int) -> None:
    for _ in range(100):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail(f"process {pid} still lives")
