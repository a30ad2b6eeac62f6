"""Importing is free: the first five minutes are spent on the user's data, not on ours."""

import subprocess
import sys

import pytest

HEAVY = [
    "torch", "h5py", "minari", "pyarrow", "zarr", "lmdb", "tfrecord", "gymnasium", "mujoco",
    "d3rlpy", "stable_baselines3", "onnx", "ray", "matplotlib", "jinja2", "rich", "tyro",
]  # fmt: skip


@pytest.mark.parametrize(
    "code",
    [
        "import pubc",
        "import pubc; pubc.Trajectory; pubc.load",
        "from pubc.cli.main import main; main(['--help'])",
    ],
)
def test_nothing_heavy_loads(code: str):
    script = f"{code}\nimport sys; print([m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("module", ["pubc.report.page", "pubc.runs.segments.trainer_tables"])
def test_a_report_and_weights_are_made_without_torch(module: str):
    script = f"import sys, {module}; print('torch' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
