"""Files of a sealed folder written anew, with the manifest that speaks for both (L2)."""

import os

import pytest

from pubc.errors import EnvironmentFailure
from pubc.storage import MANIFEST, read_manifest, renew_files, seal, verify


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
