"""Whatever dies on a Ray cluster, the output is that of a single process.

Goal R10 of docs/dev/check-full.md.

Kills hit workers in the middle of a shard, the node that they run on, and the driver, whose
command is then given again. CI kills a worker; the forty kills are part of `make check-full`.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

import pubc
from pubc.cli.main import main
from pubc.engine import open_engine
from pubc.formats import ReadOptions
from pubc.nets import Schedule
from pubc.pu import shards
from pubc.pu.judge import Bench
from pubc.pu.paper.ensemble import Ensemble
from pubc.pu.shards import Shards, rate
from pubc.storage import hash_file, verify
from tests.brisk import quickened
from tests.cli.filtering.test_filter_command import outputs
from tests.pu.paper.test_ensemble import task
from tests.pu.patient import Patient
from tests.pu.piles import pile

# Not importorskip: the engine sets Ray up before it is imported.
pytestmark = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")

JUDGE = Ensemble(schedule=Schedule(epochs=1, batch=64))
MIXED = pile([20, 20], steps=100, states=3)
LEAST = 300
"""Steps of a shard here, so that a small set has a dozen of them."""
DRIVER = f"""
import sys
from pubc.cli.main import main
from pubc.pu import shards
shards.LEAST = {LEAST}
sys.exit(main())
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset, networks that were trained on it, and a finished filter run."""
    folder = tmp_path_factory.mktemp("place")
    pubc.save(folder / "mixed.store", MIXED)
    JUDGE(task(MIXED, shelf=folder / "shelf"))
    words = ["--seed-episodes", "0,1,2", "--out", str(folder / "run"), "--json"]
    with quickened():
        assert main(["filter", str(folder / "mixed.store"), *words]) == 0
    assert main([*score_words(folder, folder / "alone.csv")]) == 0
    return folder


def score_words(place: Path, table: Path) -> list[str]:
    data, run = str(place / "mixed.store"), str(place / "run")
    return ["score", data, "--filter", run, "--out", str(table), "--json"]


@pytest.fixture(scope="module")
def engine():
    with open_engine("ray", workers=2) as opened:
        yield opened


def working() -> list[psutil.Process]:
    """Ray workers that are in the middle of a shard."""
    found = []
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or [""]
        if words[0].startswith("ray::_work") and _ours(process):
            found.append(process)
    return found


def _ours(process: psutil.Process) -> bool:
    """Whether this test started it: others may use Ray on the same machine."""
    try:
        return os.getpid() in [parent.pid for parent in process.parents()]
    except psutil.NoSuchProcess:
        return False


def rate_under_fire(engine, place: Path, folder: Path, fire, seconds: float = 0.4) -> bool:
    """Rate all shards while `fire` does its worst; whether the outcome is the usual one."""
    judge = Patient(JUDGE, seconds)
    bench = Bench(shards=Shards(engine, place / "mixed.store", ReadOptions(), folder))
    folder.mkdir()
    shooter = threading.Thread(target=fire, args=(folder,))
    shooter.start()
    found = rate(judge, place / "shelf", 1, MIXED, bench)
    shooter.join()
    alone = JUDGE.apply(place / "shelf", 1, MIXED, Bench())
    return found.tobytes() == alone.tobytes()


def kill_a_worker(folder: Path) -> None:
    """Once a shard is finished, end a worker that is busy with another."""
    _until(lambda: any(folder.glob("*.safetensors")))
    for victim in _until(working)[:1]:
        victim.send_signal(signal.SIGKILL)
        KILLED.append(victim.pid)


KILLED: list[int] = []
LEFT: list[Path] = []
"""Folders with a token that killed drivers could not remove."""


def _until(ready, patience: float = 60):
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if found := ready():
            return found
        time.sleep(0.01)
    raise TimeoutError


def drive(place: Path, table: Path) -> subprocess.Popen[bytes]:
    """Start `pubc score --engine ray`."""
    words = [*score_words(place, table), "--engine", "ray", "--workers", "2"]
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def workers_of(driver: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Ray workers of a command that is at work."""
    found = []
    for process in psutil.Process(driver.pid).children(recursive=True):
        with contextlib.suppress(psutil.Error):  # some end while one looks
            if "".join(process.cmdline()[:1]).startswith(("ray::_work", "ray::IDLE")):
                found.append(process)
    return found


def tokens(driver: int) -> list[Path]:
    """Folders with a token that a command made for its Ray."""
    return list(Path("/tmp").glob(f"pubc-ray-*-{driver}-*"))


def kill_the_driver(place: Path, table: Path, wait: float) -> int:
    """Start `pubc score --engine ray`, and kill it some time after its first shard."""
    driver = drive(place, table)
    parts = table.with_name(f".{table.name}.shards")
    _until(lambda: driver.poll() is not None or any(parts.rglob("*.safetensors")), 120)
    time.sleep(wait)
    family = psutil.Process(driver.pid).children(recursive=True)
    # Ray's own agents look for their parent now and then, and end a minute later.
    family = [process for process in family if "Agent" not in process.name()]
    driver.kill()
    driver.wait()
    _, left = psutil.wait_procs(family, timeout=60)
    assert not [p for p in left if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
    LEFT.extend(tokens(driver.pid))
    return len(list(parts.rglob("*.safetensors")))


def test_a_worker_killed_in_the_middle_changes_nothing(
    engine, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shards, "LEAST", LEAST)
    before = len(KILLED)
    assert rate_under_fire(engine, place, tmp_path / "shards", kill_a_worker)
    assert len(KILLED) == before + 1
    assert len(list((tmp_path / "shards").iterdir())) > 10


@pytest.mark.slow
def test_a_driver_killed_and_started_again_changes_nothing(
    engine, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shards, "LEAST", LEAST)
    table = tmp_path / "there.csv"
    assert kill_the_driver(place, table, 0.0)
    assert not table.exists()
    # The second driver is this process, which is connected to Ray already.
    assert main([*score_words(place, table), "--engine", "ray"]) == 0
    assert hash_file(table) == hash_file(place / "alone.csv")
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["there.csv", "there.csv.manifest.json"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_command_whose_worker_is_killed_writes_the_same_table(place: Path, tmp_path: Path):
    """From the shell: `pubc score --engine ray`, one of whose workers dies (L7)."""
    driver = drive(place, tmp_path / "there.csv")
    try:
        # Not before: while Ray starts it waits for ever for workers that it lost.
        _until(lambda: any((tmp_path / ".there.csv.shards").rglob("*.safetensors")), 240)
        workers_of(driver)[0].kill()
        assert driver.wait(300) == 0
    finally:
        driver.kill()
        driver.wait()
    assert hash_file(tmp_path / "there.csv") == hash_file(place / "alone.csv")
    assert tokens(driver.pid) == []


@pytest.mark.usefixtures("brisk")
def test_a_filter_on_ray_decides_what_one_process_decides(
    engine, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(shards, "LEAST", LEAST)
    words = ["--seed-episodes", "0,1,2", "--out", str(tmp_path / "run"), "--engine", "ray"]
    assert main(["filter", str(place / "mixed.store"), *words, "--json"]) == 0
    assert outputs(tmp_path / "run") == outputs(place / "run")
    assert not verify(tmp_path / "run")


SMALL = {"num_cpus": 1, "object_store_memory": 80 << 20}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch):
    """Two Ray nodes on this machine, of which the driver is connected to the first."""
    from pubc.engine.ray import _set_environment

    monkeypatch.setattr(shards, "LEAST", LEAST)
    _set_environment()
    import ray
    from ray.cluster_utils import Cluster

    started = Cluster(initialize_head=True, head_node_args={**SMALL, "include_dashboard": False})
    started.add_node(**SMALL)
    ray.init(started.address, log_to_driver=False)
    yield started
    ray.shutdown()
    started.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thirty_killed_workers_change_nothing(cluster, place: Path, tmp_path: Path):
    before = len(KILLED)
    with open_engine("ray", workers=2) as engine:
        same = [
            rate_under_fire(engine, place, tmp_path / f"{number}", kill_a_worker)
            for number in range(30)
        ]
    assert same == [True] * 30
    assert len(KILLED) == before + 30


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_killed_nodes_change_nothing(cluster, place: Path, tmp_path: Path):
    def kill_a_node(folder: Path) -> None:
        _until(lambda: any(folder.glob("*.safetensors")))
        cluster.remove_node(next(iter(cluster.worker_nodes)), allow_graceful=False)

    same = []
    with open_engine("ray", workers=2) as engine:
        for number in range(5):
            same.append(rate_under_fire(engine, place, tmp_path / f"{number}", kill_a_node))
            assert not cluster.worker_nodes
            cluster.add_node(**SMALL)
    assert same == [True] * 5


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_killed_drivers_change_nothing(place: Path, tmp_path: Path):
    rng = random.Random(0)
    for number in range(5):
        table = tmp_path / f"{number}.csv"
        kill_the_driver(place, table, rng.random() / 2)
        words = [*score_words(place, table), "--engine", "ray", "--workers", "2", "--force"]
        subprocess.run([sys.executable, "-c", DRIVER, *words], check=True, capture_output=True)
        assert hash_file(table) == hash_file(place / "alone.csv")
    # The token of a killed command went with the next one (L7).
    assert LEFT
    assert not [path for path in LEFT if path.exists()]
