"""How Ray refuses: without the library, and where no cluster is."""

import builtins
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from pubc.engine import open_engine
from pubc.engine.ray import _check_version
from pubc.errors import MissingExtraError, UsageError

ROOT = Path(__file__).parents[2]


def test_without_ray_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name == "ray":
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    with pytest.raises(MissingExtraError, match="needs the extra 'ray'"), open_engine("ray"):
        pass


@pytest.mark.parametrize("version", ["1.13.0", "2.9.3", "2.51.1"])
def test_ray_without_tokens_is_refused(version: str):
    with pytest.raises(UsageError, match="cannot ask for a token"):
        _check_version(version)


@pytest.mark.parametrize("version", ["2.52.0", "2.60.0", "3.0.0.dev0"])
def test_ray_with_tokens_is_accepted(version: str):
    _check_version(version)


needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="ray is not installed")


@needs_ray
def test_ray_loaded_without_a_token_is_not_started():
    script = (
        "import ray\nfrom pubc.engine import open_engine\nfrom pubc.errors import UsageError\n"
        "try:\n    open_engine('ray').__enter__()\nexcept UsageError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith("Ray was imported before pubc could set it up"), done.stderr


@needs_ray
def test_a_ray_that_does_not_start_is_one_sentence():
    """On a machine under load Ray gives up with an exception that has no name of its own."""
    script = (
        "from pubc.engine import ray\nfrom pubc.errors import EnvironmentFailure\n"
        "def slow(workers):\n    raise Exception('The node timed out during startup.')\n"
        "ray._start = slow\n"
        "try:\n    ray.open_ray(1, None).__enter__()\n"
        "except EnvironmentFailure as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout.startswith("Ray did not start on this machine: The node timed out"), (
        done.stderr
    )


@needs_ray
@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "auto"])
def test_a_cluster_that_is_not_there_is_one_sentence(address: str, tmp_path: Path):
    # In a process of its own: this one may be connected to a cluster of another test.
    script = (
        "from pubc.engine import open_engine\nfrom pubc.errors import EnvironmentFailure\n"
        f"try:\n    open_engine('ray', address={address!r}).__enter__()\n"
        "except EnvironmentFailure as error:\n    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"RAY_TMPDIR": str(tmp_path)},
    )
    said = done.stdout.splitlines()
    assert len(said) == 1, done.stderr
    assert said[0].startswith(f"Could not join the Ray cluster at '{address}': ")


def test_an_address_of_the_client_names_the_package_that_it_needs(monkeypatch: pytest.MonkeyPatch):
    from pubc.engine import ray as engine

    engine._check_client("head:6379")
    engine._check_client(None)
    monkeypatch.setattr(engine.importlib.util, "find_spec", lambda name: None)
    engine._check_client("auto")
    with pytest.raises(UsageError, match=r"pip install 'ray\[client\]'"):
        engine._check_client("ray://head:10001")
