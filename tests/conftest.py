"""What every test shares: one thread, a cache of its own, and a Ctrl-C that means something.

It also says in which order tests run, because several workers share them: what takes long begins
first.
"""

import gc
import itertools
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

# Before torch loads, here and in every child: workers with as many threads as cores each would be
# in one another's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Hundreds of children load pubc. Where this is set, as in some containers, each would compile it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# While tests are collected little becomes garbage; `pytest_collection_finish` goes on from there.
gc.disable()

# A shell makes its background jobs deaf to Ctrl-C, `nohup` to a closed terminal, and they hand that
# on to whatever tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, itertools.count]:
    return tmp_path_factory.mktemp("caches"), itertools.count()


@pytest.fixture(autouse=True)
def own_cache(caches: tuple[Path, itertools.count], monkeypatch: pytest.MonkeyPatch) -> None:
    folder, numbers = caches
    path = folder / str(next(numbers))
    path.mkdir()
    monkeypatch.setenv("PUBC_CACHE", str(path))


@pytest.fixture
def brisk() -> Iterator[None]:
    """Recipe `auto` trains little, where a test does not ask how well it judges."""
    from tests.brisk import quickened  # loads pubc, after the variables above

    with quickened():
        yield


@pytest.fixture(scope="session")
def warm() -> Iterator[list[str]]:
    """The words before `pubc ...` or `python CODE` that have it run by tests/warm_pubc.py."""
    # The path of a socket has room for a hundred characters, which pytest's own folders may take.
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "socket"
        words = [sys.executable, "-m", "tests.warm_pubc", str(path)]
        with subprocess.Popen(words, cwd=Path(__file__).parents[1]) as server:
            while not path.exists() and server.poll() is None:
                time.sleep(0.02)
            caller = Path(__file__).with_name("warm_pubc.py")
            yield [sys.executable, "-P", "-S", str(caller), str(path)]
            server.kill()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that take long begin: the last one to be given out is waited for."""
    turns: dict[Path, int] = {}
    for item in items:
        turns[item.path] = min(turns.get(item.path, 2), _turn(item))
    items.sort(key=lambda item: turns[item.path])


def pytest_collection_finish() -> None:
    """Libraries and thousands of tests need not be searched for garbage again and again."""
    gc.freeze()
    gc.enable()


def _turn(item: pytest.Item) -> int:
    """0 for a test that asks for more time, 1 where its file prepares something, else 2."""
    if item.get_closest_marker("timeout"):
        return 0
    known = getattr(item, "_fixtureinfo", None)
    fixtures = known.name2fixturedefs.values() if known else ()
    return 1 if any(made.scope == "module" for named in fixtures for made in named) else 2
