"""What a killed process leaves in the folder for temporary things goes with the next one (L7)."""

import os
import subprocess
import sys

import pytest

from pubc.storage import make_scratch, scratch


def test_a_scratch_folder_of_a_killed_process_is_swept(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    code = (
        f"import os, tempfile; tempfile.tempdir = {str(tmp_path)!r}; "
        "from pubc.storage import make_scratch; path = make_scratch('read'); "
        "(path / 'token').write_text('secret'); os.kill(os.getpid(), 9)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == -9
    (left,) = tmp_path.iterdir()
    assert (left / "token").exists()
    for other in ("pubc-mine", "pubc-read-00000000-1-x", "thesis"):
        (tmp_path / other).mkdir()
    with scratch("read") as mine:
        assert not left.exists()
        assert str(os.getpid()) in mine.name
        assert mine.stat().st_mode & 0o77 == 0
        assert make_scratch("read") != mine
        assert mine.exists()
    assert not mine.exists()
    assert {"pubc-mine", "pubc-read-00000000-1-x", "thesis"} <= set(os.listdir(tmp_path))


def test_links_and_files_are_left_alone(tmp_path):
    from pubc.storage.disk import this_host

    dead = 2**22 - 1
    (tmp_path / "target").mkdir()
    (tmp_path / f"pubc-read-{this_host()}-{dead}-a").symlink_to(tmp_path / "target")
    (tmp_path / f"pubc-read-{this_host()}-{dead}-b").write_text("file")
    make_scratch("read", tmp_path)
    assert len(os.listdir(tmp_path)) == 4


@pytest.mark.parametrize(
    "making",
    [
        "from pubc.review.rendered_films import RenderedFilms; made = RenderedFilms('ant', None)",
        "from pubc.api.fitted_in_memory import NetworksPlace; made = NetworksPlace()",
    ],
    ids=["films", "finder"],
)
def test_films_and_networks_of_a_killed_process_are_swept(making, tmp_path):
    code = f"import os; {making}; os.kill(os.getpid(), 9)"
    killed = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}
    )
    assert killed.returncode == -9
    (left,) = tmp_path.iterdir()
    make_scratch("read", tmp_path)
    assert not left.exists()
