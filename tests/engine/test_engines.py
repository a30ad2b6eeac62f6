"""Every engine keeps one contract; what is checked here holds for each of them."""

import functools
import importlib.util
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pubc.engine import ENGINES, RETRIES, Failure, Outcome, open_engine
from tests.engine import tasks


def without_ray(name: str) -> pytest.MarkDecorator:
    missing = name == "ray" and importlib.util.find_spec("ray") is None
    return pytest.mark.skipif(missing, reason="ray is not installed")


@pytest.fixture(scope="module", params=[pytest.param(n, marks=without_ray(n)) for n in ENGINES])
def engine(request):
    polite, ctrl_c = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    before = psutil.Process().children()
    with open_engine(request.param, workers=2) as opened:
        opened.name, opened.polite, opened.ctrl_c = request.param, polite, ctrl_c
        yield opened
        # Not the children of children from before: a browser of other tests starts some by itself.
        roots = [process for process in psutil.Process().children() if process not in before]
        started = roots + [child for root in roots for child in root.children(recursive=True)]
    _, left = psutil.wait_procs(started, timeout=15)
    assert not [process for process in left if process.status() != psutil.STATUS_ZOMBIE]


@pytest.fixture
def workers(engine):
    if engine.name == "serial":
        pytest.skip("without workers, none can die")
    return engine


def test_every_item_is_worked_on_once(engine):
    found = list(engine.map(tasks.double, range(7)))
    assert sorted((o.index, o.value) for o in found) == [(i, 2 * i) for i in range(7)]
    assert all(outcome.error is None for outcome in found)


def test_a_partial_function_is_a_function(engine):
    assert list(engine.map(functools.partial(tasks.add, 5), [1])) == [Outcome(0, 6)]


def test_no_items_are_no_outcomes(engine):
    assert list(engine.map(tasks.double, [])) == []


def test_an_error_is_the_failure_of_its_item_alone(engine):
    found = {o.index: o for o in engine.map(tasks.sometimes_fail, range(5))}
    assert found[0] == Outcome(0, 0)
    assert found[1].error == Failure("nonfinite", "The third column is not a number.")
    assert found[2].error == Failure("ZeroDivisionError", "nothing to divide by")
    assert found[3].error == Failure("UsageError", "That means nothing.")
    assert found[4] == Outcome(4, 4)


def test_work_computes_on_one_thread(engine):
    (found,) = engine.map(tasks.threads, [0])
    assert found.value[0] == 1
    if engine.name != "serial":
        assert found.value[1] == "1"


def test_what_is_printed_stays_out_of_the_result(engine, capfd):
    if engine.name == "serial":
        pytest.skip("prints where the caller prints")
    list(engine.map(tasks.printed, [0]))
    assert capfd.readouterr().out == ""


def test_outcomes_come_in_the_order_of_completion(workers, tmp_path):
    path = str(tmp_path / "done")
    found = [o.value for o in workers.map(tasks.second_before_first, [(0, path), (1, path)])]
    assert found == [1, 0]


def test_an_item_whose_worker_was_killed_is_tried_again_and_at_last_given_up(workers, tmp_path):
    deaths = {"never": 0, "once": 1, "just": RETRIES, "always": 99}
    items = [(str(tmp_path / name), times) for name, times in deaths.items()]
    found = sorted(workers.map(tasks.dies, items), key=lambda o: o.index)
    assert [o.value for o in found[:3]] == ["alive"] * 3
    assert found[3].error is not None
    assert found[3].error.kind == "worker_died"
    calls = [(tmp_path / name).stat().st_size for name in deaths]
    assert calls == [1, 2, 1 + RETRIES, 1 + RETRIES]


def test_a_value_that_cannot_travel_is_the_failure_of_its_item(workers):
    first, second = list(workers.map(tasks.not_plain, [1])), list(workers.map(tasks.double, [1]))
    assert first[0].error is not None
    assert second[0].value == 2


def test_a_caller_that_goes_away_stops_what_is_under_way(workers, tmp_path: Path):
    outcomes = workers.map(tasks.long_work, [str(tmp_path / "pid")])
    began = time.monotonic()
    pid = _during(outcomes, tmp_path / "pid")
    assert time.monotonic() - began < 45
    _gone(pid)
    assert [o.value for o in workers.map(tasks.double, [4])] == [8]


def test_only_this_user_of_this_machine_can_reach_what_was_started(workers):
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    sockets = [c for process in family for c in process.net_connections("inet")]
    listening = {c.laddr.ip.removeprefix("::ffff:") for c in sockets if c.status == "LISTEN"}
    assert listening == ({"127.0.0.1"} if workers.name == "ray" else set())
    if workers.name == "ray":
        assert _answer_to_a_stranger().count("InvalidAuthToken")
        token = Path(os.environ["RAY_AUTH_TOKEN_PATH"])
        assert stat.S_IMODE(token.stat().st_mode) == 0o600
        assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700


def test_ctrl_c_and_polite_kills_stay_the_programs_own(workers):
    assert signal.getsignal(signal.SIGTERM) == workers.polite
    assert signal.getsignal(signal.SIGINT) == workers.ctrl_c


def _answer_to_a_stranger() -> str:
    """What Ray says to a process that found its address but not its token."""
    import ray

    address = ray.get_runtime_context().gcs_address
    impatient = {"RAY_AUTH_TOKEN": "guessed", "RAY_NUM_REDIS_GET_RETRIES": "1"}
    script = f"import ray; ray.init({address!r})"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | impatient,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    return done.stderr


def _during(outcomes, path: Path) -> int:
    """Interrupt the caller once the work has begun; the process that did the work."""

    def interrupt(number, frame):
        if path.exists() and path.read_text():
            raise KeyboardInterrupt
        signal.setitimer(signal.ITIMER_REAL, 0.1)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            next(outcomes)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    outcomes.close()
    return int(path.read_text())


def _gone(pid: int, patience: float = 15) -> None:
    end = time.monotonic() + patience
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail(f"process {pid} still lives")
