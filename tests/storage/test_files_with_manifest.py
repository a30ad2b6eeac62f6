"""Files and their manifest: whichever of two moments a kill picks, they fit (L2, L4)."""

import os

import pytest

from pubc.errors import EnvironmentFailure, UsageError
from pubc.storage import MANIFEST, read_manifest, renew_files, seal, sealed_file, verify
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


@pytest.mark.parametrize("full", [False, True])
def test_a_folder_in_the_way_stays_and_so_does_what_lies_beside_it(tmp_path, full):
    (tmp_path / "x.npz").mkdir()
    if full:
        (tmp_path / "x.npz" / "thesis.tex").write_text("years")
    (tmp_path / "x.npz.manifest.json").write_text("my notes")
    with pytest.raises(UsageError, match="is a folder, and a file is to go there"):
        write(tmp_path / "x.npz", "one", force=True)
    assert (tmp_path / "x.npz.manifest.json").read_text() == "my notes"


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
        monkeypatch.setattr("pubc.storage.files_with_manifest._back", lambda *_: None)
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


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "run"
    path.mkdir()
    (path / "page.html").write_text("old page")
    (path / "page.md").write_text("old text")
    (path / "data.bin").write_bytes(b"data")
    seal(path, kind="filter", about={"note": "kept"})
    return path


def test_the_manifest_follows_and_the_rest_of_it_stays(folder):
    renew_files(folder, {"page.html": b"new page", "more.json": b"{}"})
    assert verify(folder) == []
    assert read_manifest(folder)["note"] == "kept"
    assert (folder / "page.html").read_text() == "new page"
    assert [path.name for path in folder.parent.iterdir()] == ["run"]


@pytest.mark.parametrize("failing", range(1, 5))
def test_whichever_rename_fails_the_manifest_fits(folder, failing, monkeypatch):
    real, count = os.replace, 0

    def replace(source, target):
        nonlocal count
        if os.fspath(target).startswith(os.fspath(folder) + "/"):
            count += 1
            if count == failing:
                raise OSError(5, "Input/output error")
        return real(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", replace)
        if failing < 4:
            with pytest.raises(EnvironmentFailure):
                renew_files(folder, {"page.html": b"new page", "page.md": b"new text"})
        else:  # all is in place but the manifest that knows no other
            renew_files(folder, {"page.html": b"new page", "page.md": b"new text"})
    assert verify(folder) == []
    renew_files(folder, {"page.html": b"new page", "page.md": b"new text"})
    assert verify(folder) == []
    assert "next" not in (folder / MANIFEST).read_text()


def test_a_changed_file_is_still_found(folder):
    renew_files(folder, {"page.html": b"new page"})
    (folder / "data.bin").write_bytes(b"dato")
    renew_files(folder, {"page.html": b"newer page"})
    assert [fault.file for fault in verify(folder)] == ["data.bin"]
