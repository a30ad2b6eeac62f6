"""No command leaves a warning in Python's development mode, where warnings are errors (R18).

Files, sockets and processes that nobody closed are such warnings.
"""

import pytest

from tests.reliability.faults import Worker
from tests.reliability.test_faults import SCENES, scene_of

FLAGS = ("-X", "dev", "-W", "error")


def run_strictly(name: str, tmp_path) -> None:
    scene = scene_of(name, tmp_path)
    worker = Worker(flags=FLAGS)
    try:
        done = worker.run(scene.words, scene.folder, program=scene.program)
    finally:
        worker.close()
    assert done["code"] == 0, done["err"]
    for word in ("Warning", "a library warns", "Traceback", "Exception ignored"):
        assert word not in done["err"]


def test_a_conversion_leaves_no_warning(tmp_path):
    """tests/cli/test_main.py has more of the commands that load little."""
    run_strictly("convert to hdf5", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_no_command_leaves_a_warning(name, tmp_path):
    run_strictly(name, tmp_path)
