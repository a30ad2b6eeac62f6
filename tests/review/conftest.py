"""Desks to sit at: the demo's mixture, a LeRobot set with a film, and one browser for all."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pubc import formats
from pubc.cli.filtering.demo_command import mixture
from pubc.formats import ReadOptions
from tests.formats.lerobot_sets import write_v3
from tests.report.browser import CHROMIUM, browser

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

CAMERA = "observation.images.top"
FILM = Path(__file__).parent / "six-episodes.mp4"
"""Six episodes of 20 frames at 10 per second, one after another, each in a grey of its own with a
bar that moves to the right: what LeRobot's v3.0 writes of one camera."""


@pytest.fixture(scope="session")
def chromium():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed (Debian: apt-get install chromium)")
    with browser() as one:
        yield one


@pytest.fixture
def demo(tmp_path):
    """The mixture of `pubc demo` as a file."""
    path = tmp_path / "mixture.npz"
    formats.save(path, mixture())
    return path


@pytest.fixture
def desk(demo):
    from pubc.review.desk import open_desk

    return open_desk(demo, ReadOptions())


@pytest.fixture
def brisk_runs(warm, monkeypatch):
    """What the page runs trains little, where a test does not ask how well it judges."""
    from tests.review.brisk_runs import processes

    monkeypatch.setattr("pubc.review.filter_job.subprocess", processes(warm))


@pytest.fixture
def filmed(tmp_path):
    """A LeRobot v3.0 set with one camera."""
    return make_filmed(tmp_path / "filmed")


def make_filmed(root: Path, **changes) -> Path:
    lengths = [20] * 6
    write_v3(root, [(0, 0, [0, 1, 2, 3, 4, 5])], lengths)
    path = root / "meta/info.json"
    info = json.loads(path.read_text())
    info["features"][CAMERA] = {"dtype": "video", "shape": [48, 64, 3], "names": None}
    info["video_path"] = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
    path.write_text(json.dumps({**info, **changes}))
    for shard in (root / "meta/episodes").glob("**/*.parquet"):
        table = pq.read_table(shard)
        numbers = np.array(table.column("episode_index"))
        for name, values in (
            ("chunk_index", np.zeros_like(numbers)),
            ("file_index", np.zeros_like(numbers)),
            ("from_timestamp", numbers * 2.0),
            ("to_timestamp", numbers * 2.0 + 2.0),
        ):
            table = table.append_column(f"videos/{CAMERA}/{name}", pa.array(values))
        pq.write_table(table, shard)
    film = root / f"videos/{CAMERA}/chunk-000/file-000.mp4"
    film.parent.mkdir(parents=True)
    shutil.copyfile(FILM, film)
    return root
