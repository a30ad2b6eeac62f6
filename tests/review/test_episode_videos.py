"""Films are found by number, and no metadata leads outside the dataset."""

import json

import pytest

from pubc import formats
from pubc.formats import ReadOptions
from pubc.review.episode_videos import no_videos, videos_of
from tests.review.conftest import CAMERA, make_filmed


def test_each_episode_has_its_seconds_of_the_file(filmed):
    videos = videos_of(filmed, formats.read(filmed, ReadOptions()))
    assert videos.cameras == (CAMERA,)
    assert videos.fps == 10
    clip = videos.clip(3, 0)
    assert (clip.start, clip.stop) == (6.0, 8.0)
    assert clip.path == filmed / f"videos/{CAMERA}/chunk-000/file-000.mp4"


def test_numbers_that_mean_nothing_lead_nowhere(filmed):
    videos = videos_of(filmed, formats.read(filmed, ReadOptions()))
    for at, camera in ((-1, 0), (6, 0), (0, 1), (0, -1)):
        assert videos.clip(at, camera) is None
    assert no_videos().clip(0, 0) is None


@pytest.mark.parametrize(
    "template",
    [
        "../secret.mp4",
        "/etc/passwd",
        "videos/{video_key}/../../../secret.mp4",
        "{video_key.__class__}",
        "videos/link.mp4",
        "videos/nothing.mp4",
    ],
)
def test_metadata_cannot_name_a_file_outside(tmp_path, template):
    (tmp_path / "secret.mp4").write_bytes(b"secret")
    root = make_filmed(tmp_path / "filmed", video_path=template)
    (root / "videos/link.mp4").symlink_to(tmp_path / "secret.mp4")
    trajectories = formats.read(make_filmed(tmp_path / "twin"), ReadOptions())
    assert videos_of(root, trajectories).clip(0, 0) is None


def test_old_sets_have_a_file_per_episode(tmp_path):
    from tests.formats.lerobot_sets import write_v21

    root = write_v21(tmp_path / "old", [20, 20])
    path = root / "meta/info.json"
    info = json.loads(path.read_text())
    info["features"][CAMERA] = {"dtype": "video", "shape": [48, 64, 3], "names": None}
    path.write_text(json.dumps(info))
    film = root / f"videos/chunk-000/{CAMERA}/episode_000001.mp4"
    film.parent.mkdir(parents=True)
    film.write_bytes(b"film")
    videos = videos_of(root, formats.read(root, ReadOptions()))
    assert videos.clip(1, 0).path == film
    assert videos.clip(0, 0) is None
