"""A dataset that Minari downloaded is opened by its id, from the disk and nowhere else."""

import json
from pathlib import Path

import numpy as np
import pytest

from pubc import formats
from pubc.cli.main import main
from pubc.formats import ReadOptions
from pubc.formats.minari import minari_ids
from tests.reliability import samples

ID = "mujoco/hopper/expert-v0"


@pytest.fixture
def downloaded(tmp_path, monkeypatch) -> Path:
    """A dataset where Minari would keep it, and a working directory with nothing in it."""
    root = tmp_path / "datasets"
    (root / "mujoco" / "hopper").mkdir(parents=True)
    formats.save(root / ID, samples.trajectories(), format="minari")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(root))
    return root / ID


@pytest.mark.parametrize("isolate", ["auto", "off"])
def test_a_command_takes_an_id(downloaded, capsys, isolate):
    assert main(["inspect", ID, "--isolate", isolate, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["format"] == "minari"
    assert document["trajectories"] == len(samples.LENGTHS)
    assert document["data"] == str(downloaded)


def test_a_dataset_is_converted_by_its_id(downloaded, capsys):
    assert main(["convert", ID, "new.npz"]) == 0
    assert formats.read("new.npz").steps == samples.ROWS
    about = json.loads(Path("new.npz.manifest.json").read_text())
    assert about["source"]["path"] == str(downloaded)


def test_python_takes_an_id_too(downloaded):
    read = formats.read(ID, ReadOptions(cache=False))
    np.testing.assert_array_equal(
        read.columns.observations, samples.trajectories().columns.observations
    )


def test_the_home_of_the_user_is_where_minari_looks_unless_told(downloaded, monkeypatch, tmp_path):
    monkeypatch.delenv("MINARI_DATASETS_PATH")
    home = tmp_path / "home"
    (home / ".minari").mkdir(parents=True)
    downloaded.parents[2].rename(home / ".minari" / "datasets")
    monkeypatch.setenv("HOME", str(home))
    assert minari_ids.find(Path(ID)) == home / ".minari" / "datasets" / ID


def test_what_lies_in_the_working_directory_comes_first(downloaded):
    Path(ID).mkdir(parents=True)
    assert minari_ids.find(Path(ID)) == Path(ID)


@pytest.mark.parametrize("word", ["../datasets/mujoco/hopper/expert-v0", "mujoco/hopper", "x.npz"])
def test_nothing_but_an_id_is_looked_up(downloaded, word):
    assert minari_ids.find(Path(word)) == Path(word)


def test_an_id_that_is_not_there_says_who_downloads_it(downloaded, capsys):
    assert main(["inspect", "D4RL/door/human-v2"]) == 2
    told = capsys.readouterr().err
    assert f"below {downloaded.parents[2]}" in told
    assert "minari download D4RL/door/human-v2" in told


def test_e2_a_kept_set_has_an_id_of_its_own_that_minari_finds(tmp_path, monkeypatch):
    import json
    import shutil

    import numpy as np

    from pubc import formats
    from pubc.formats.core.selection import Selection
    from pubc.formats.minari import minari_read
    from tests.reliability import samples

    minari = pytest.importorskip("minari")
    source = samples.SAMPLES["minari"](tmp_path)
    path = source / "data" / "metadata.json"
    about = json.loads(path.read_text()) | {"dataset_id": "robot/pile-v2"}
    path.write_text(json.dumps(about))
    options = formats.ReadOptions(cache=False)
    minari_read.subset(
        Selection(source, np.array([0, 2]), options), tmp_path / "kept", overwrite=False
    )
    told = json.loads((tmp_path / "kept/data/metadata.json").read_text())
    assert told["dataset_id"] == "robot/pile-kept-v2"
    home = tmp_path / "home"
    shutil.copytree(tmp_path / "kept", home / told["dataset_id"])
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(home))
    assert list(minari.list_local_datasets()) == ["robot/pile-kept-v2"]
    assert minari.load_dataset("robot/pile-kept-v2").total_episodes == 2
