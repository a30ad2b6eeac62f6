"""The wheel is what users get: built, installed into an empty environment, and tried."""

import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

import pubc

ROOT = Path(__file__).parent.parent
SITE = Path(pubc.__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment whose only pubc is the wheel; the dependencies are borrowed.

    Installing torch anew would take minutes, so the empty environment sees this one's
    packages through a path file that names every folder but the source tree.
    """
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignore = shutil.ignore_patterns(".git", ".venv", "*_cache", "__pycache__", "dist", "build")
    shutil.copytree(ROOT, source, ignore=ignore)
    subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, source],
        check=True,
        capture_output=True,
    )
    (wheel,) = folder.glob("pubc-*.whl")
    home = folder / "venv"
    venv.create(home, with_pip=False)
    packages = next(home.glob("lib/python*/site-packages"))
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--target", packages, wheel],
        check=True,
        capture_output=True,
    )
    theirs = next(Path(sys.prefix).glob("lib/python*/site-packages"))
    (packages / "borrowed.pth").write_text(f"{theirs}\n")
    return home / "bin" / "python"


def run(python: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    code = "import sys; from pubc.cli.main import main; sys.exit(main())"
    command = [python, "-I", "-c", code, *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True)


def test_the_wheel_is_the_one_that_runs(installed: Path, tmp_path: Path):
    code = "import pubc; print(pubc.__file__)"
    done = subprocess.run(
        [installed, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert str(installed.parents[1]) in done.stdout


def test_help_and_inspect_work_from_the_wheel(installed: Path, tmp_path: Path):
    import numpy as np

    data = tmp_path / "tiny.npz"
    ends = np.array([False, True] * 4)
    rows = np.arange(16.0).reshape(8, 2)
    np.savez(data, observations=rows, actions=rows[:, :1], rewards=rows[:, 0], timeouts=ends)
    assert "inspect" in run(installed, "--help", cwd=tmp_path).stdout
    done = run(installed, "inspect", str(data), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "trajectories  4" in done.stdout
