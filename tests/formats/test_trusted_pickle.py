import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from pubc import formats
from pubc.cli.main import main
from pubc.errors import DataError, UsageError
from pubc.formats.trusted_pickle import read_trusted
from tests.formats.roundtrip import assert_aligned
from tests.formats.zarr_sets import flat

OPTIONS = formats.ReadOptions(cache=False)


class Canary:
    """Leaves a file where it is unpickled."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def __reduce__(self):
        return (Path.touch, (self.place,))


@pytest.fixture
def authors_file(tmp_path: Path) -> Path:
    """A dataset as the paper authors write it: a pickled dictionary in a .npy file."""
    data = flat((4, 6, 5))
    data["timeouts"] = np.isin(np.arange(15), [3, 9, 14])
    data["terminals"] = np.zeros(15, dtype=bool)
    np.save(tmp_path / "mixed.npy", data)
    return tmp_path / "mixed.npy"


def test_the_authors_file_converts_when_it_is_trusted(authors_file, tmp_path, capsys):
    target = tmp_path / "mixed.npz"
    assert main(["convert", "--i-trust-this-pickle", str(authors_file), str(target)]) == 0
    read = formats.read(target, OPTIONS)
    assert read.lengths.tolist() == [4, 6, 5]
    assert read.ends().tolist() == ["timeout"] * 3
    assert_aligned(read)


def test_without_the_flag_nothing_is_unpickled(tmp_path, capsys):
    canary = tmp_path / "ran"
    np.save(tmp_path / "evil.npy", Canary(canary), allow_pickle=True)
    assert main(["convert", str(tmp_path / "evil.npy"), str(tmp_path / "out.npz")]) == 3
    assert "--i-trust-this-pickle" in capsys.readouterr().err
    assert not canary.exists()


def test_the_pickle_is_opened_in_another_process(tmp_path, monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("unpickled in the parent")

    np.save(tmp_path / "x.npy", {"observations": np.zeros((3, 1)), "actions": np.eye(3)})
    monkeypatch.setattr(pickle, "load", never)
    monkeypatch.setattr(pickle, "loads", never)
    read = read_trusted(tmp_path / "x.npy", formats.ReadOptions(cache=False, episode_length=3))
    assert read.lengths.tolist() == [3]


@pytest.mark.parametrize("content", [np.zeros(3), np.array([{"a": 1}]), np.array(None)])
def test_other_pickles_are_refused_in_a_sentence(tmp_path, content):
    np.save(tmp_path / "x.npy", content)
    with pytest.raises(DataError, match="not a pickled dictionary") as caught:
        read_trusted(tmp_path / "x.npy", OPTIONS)
    assert caught.value.code == "bad_pickle"


def test_a_missing_file_is_a_usage_error(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        read_trusted(tmp_path / "none.npy", OPTIONS)


def test_a_converted_file_can_be_verified_and_names_its_source(authors_file, tmp_path, capsys):
    target = tmp_path / "mixed.npz"
    main(["convert", "--i-trust-this-pickle", str(authors_file), str(target)])
    assert main(["verify", str(target)]) == 0
    manifest = json.loads((tmp_path / "mixed.npz.manifest.json").read_text())
    assert manifest["source"]["path"] == str(authors_file)
    assert len(manifest["source"]["fingerprint"]) == 64
    assert manifest["options"]["trailing"] == "keep"
    assert manifest["files"]["mixed.npz"]["size"] == target.stat().st_size
    data = bytearray(target.read_bytes())
    data[len(data) // 2] ^= 1
    target.write_bytes(data)
    assert main(["verify", str(target)]) == 3


def test_a_fingerprint_changes_with_name_size_and_content(tmp_path):
    from pubc.formats.core.provenance import fingerprint

    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "a").write_bytes(bytes(200_000))
    prints = [fingerprint(tmp_path / "set")]
    (tmp_path / "set" / "a").write_bytes(bytes(199_999) + b"1")
    prints.append(fingerprint(tmp_path / "set"))
    (tmp_path / "set" / "a").rename(tmp_path / "set" / "b")
    prints.append(fingerprint(tmp_path / "set"))
    (tmp_path / "set" / "b").write_bytes(bytes(10))
    prints.append(fingerprint(tmp_path / "set"))
    assert len(set(prints)) == 4
