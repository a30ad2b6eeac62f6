"""A file and its manifest: whichever of two moments a kill picks, the two fit each other (L4)."""

import os

import pytest

from pubc.errors import EnvironmentFailure, UsageError
from pubc.storage import read_manifest, sealed_file, verify
from pubc.storage.manifest import NEXT, read_sealed, sidecar


def write(path, words: str, *, force: bool = False) -> None:
    with sealed_file(path, kind="dataset", overwrite=force, about={"words": words}) as place:
        assert place.name == path.name
        place.write_text(words)


def test_a_file_comes_with_its_manifest_and_nothing_else(tmp_path):
    write(tmp_path / "x.npz", "one")
    assert verify(tmp_path / "x.npz") == []
    assert sorted(os.listdir(tmp_path)) == ["x.npz", "x.npz.manifest.json"]
    with pytest.raises(UsageError, match="exists already"):
        write(tmp_path / "x.npz", "two")
    write(tmp_path / "x.npz", "two", force=True)
    assert read_manifest(tmp_path / "x.npz")["words"] == "two"
    assert NEXT not in read_sealed(sidecar(tmp_path / "x.npz"))


@pytest.mark.parametrize("broken", ["before", "after"])
def test_the_manifest_fits_before_and_after_the_file_moves(tmp_path, monkeypatch, broken):
    """A process that dies at the one rename that counts, on either side of it."""
    path = tmp_path / "x.npz"
    write(path, "one")
    real = os.replace

    class Died(BaseException):
        pass

    def replace(new, old):
        if old != path:
            return real(new, old)
        if broken == "after":
            real(new, old)
        monkeypatch.setattr("pubc.storage.file_with_manifest._back", lambda *_: None)
        raise Died

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(Died):
        write(path, "two", force=True)
    monkeypatch.undo()
    there = {"before": "one", "after": "two"}[broken]
    assert path.read_text() == there
    assert verify(path) == []
    assert read_manifest(path)["words"] == there
    write(path, "three", force=True)
    assert read_manifest(path)["words"] == "three"


@pytest.mark.parametrize("force", [False, True])
def test_a_disk_that_says_no_leaves_everything_as_it_was(tmp_path, monkeypatch, force):
    path = tmp_path / "x.npz"
    if force:
        write(path, "one")
    before = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    real = os.replace

    def replace(new, old):
        if old == path:
            raise OSError(28, "No space left on device")
        return real(new, old)

    monkeypatch.setattr(os, "replace", replace)
    with pytest.raises(EnvironmentFailure, match="disk is full"):
        write(path, "two", force=force)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == before


def test_a_file_changed_by_hand_fits_neither(tmp_path):
    write(tmp_path / "x.npz", "one")
    (tmp_path / "x.npz").write_text("two")
    assert verify(tmp_path / "x.npz") != []
    with pytest.raises(UsageError, match="is not the file that"):
        write(tmp_path / "x.npz", "three", force=True)
