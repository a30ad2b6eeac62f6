"""Cached copies stay within their limit, can be seen, and go when told to, alone (L1)."""

import json
import os
import shutil
from pathlib import Path

import pytest

from pubc.cli.main import main
from pubc.errors import EnvironmentFailure, UsageError
from pubc.formats import ReadOptions
from pubc.formats.opening import cached_copies as copies
from pubc.formats.opening.open_dataset import open_dataset
from pubc.storage import mark_entry
from tests.reliability import samples


@pytest.fixture
def sets(tmp_path) -> list[Path]:
    """Three datasets of a slow format."""
    made = []
    for number in range(3):
        (tmp_path / str(number)).mkdir()
        made.append(samples.SAMPLES["minari"](tmp_path / str(number)))
    return made


def is_cached(path: Path) -> bool:
    return open_dataset(path, ReadOptions()).cached


def allow(monkeypatch, size: float) -> None:
    monkeypatch.setenv("PUBC_CACHE_GIB", repr(size / 2**30))


def one_copy(path: Path) -> int:
    """Bytes that the copy of a dataset takes."""
    open_dataset(path, ReadOptions())
    size = copies.copies()[0].size
    copies.clear()
    return size


@pytest.mark.parametrize("isolate", ["off", "on"])
def test_what_was_not_used_for_the_longest_time_goes(sets, monkeypatch, isolate):
    allow(monkeypatch, 2.5 * one_copy(sets[0]))
    options = ReadOptions(isolate=isolate)
    for number, path in enumerate(sets[:2]):
        open_dataset(path, options)
        copy = max(copies.copies(), key=lambda copy: copy.used)
        os.utime(copy.path, (number, number))
    assert open_dataset(sets[0], options).cached, "now the second is the oldest"
    open_dataset(sets[2], options)
    assert len(copies.copies()) == 2
    assert [is_cached(sets[0]), is_cached(sets[2])] == [True, True]
    assert not is_cached(sets[1])


def test_the_newest_copy_stays_however_large(sets, monkeypatch):
    allow(monkeypatch, 1000)
    for path in sets:
        assert not is_cached(path)
        assert is_cached(path)
        assert len(copies.copies()) == 1


def test_no_limit_is_reached_by_default(sets):
    for path in sets:
        open_dataset(path, ReadOptions())
    assert copies.limit() == 10 << 30
    assert len(copies.copies()) == 3


def test_a_limit_of_nothing_keeps_no_copy(sets, monkeypatch):
    monkeypatch.setenv("PUBC_CACHE_GIB", "0")
    for isolate in ("off", "on"):
        assert not open_dataset(sets[0], ReadOptions(isolate=isolate)).cached
    assert copies.copies() == []


@pytest.mark.parametrize("word", ["much", "-1", "nan", "inf", "1e308", "10GiB"])
def test_a_limit_that_is_no_number_is_a_matter_of_usage(sets, monkeypatch, word):
    monkeypatch.setenv("PUBC_CACHE_GIB", word)
    with pytest.raises(UsageError, match=f"PUBC_CACHE_GIB .*{word}"):
        open_dataset(sets[0], ReadOptions())


def test_what_killed_processes_left_goes_after_a_day(sets):
    open_dataset(sets[0], ReadOptions())
    old, new = (copies.folder() / f".{n}.store.tmp-00000000-1-00000002" for n in ("old", "new"))
    for path, name in ((old, "old.store"), (new, "new.store")):
        path.mkdir()
        mark_entry(path, name, ["observations.npy"])
        (path / "observations.npy").write_bytes(b"half")
    os.utime(old, (0, 0))
    open_dataset(sets[1], ReadOptions())
    assert (old.exists(), new.exists()) == (False, True)


def test_a_mapped_copy_can_be_read_after_it_was_removed(sets):
    open_dataset(sets[0], ReadOptions())
    opened = open_dataset(sets[0], ReadOptions())
    assert opened.cached
    copies.clear()
    expected = open_dataset(sets[0], ReadOptions(cache=False)).trajectories.columns.observations
    assert opened.trajectories.columns.observations.tobytes() == expected.tobytes()


def test_the_command_lists_copies_and_clears_them(sets, capsys):
    for path in sets[:2]:
        open_dataset(path, ReadOptions())
    open_dataset(sets[0], ReadOptions())
    assert main(["cache", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [copy["source"] for copy in document["copies"]] == [str(sets[1]), str(sets[0])]
    assert {copy["format"] for copy in document["copies"]} == {"minari"}
    assert document["bytes"] == sum(copy["bytes"] for copy in document["copies"]) > 0
    assert main(["cache"]) == 0
    told = capsys.readouterr().out
    assert str(sets[0]) in told
    assert "2 copies" in told
    (copies.folder() / ".left.store.tmp-00000000-1-00000002").mkdir()
    assert main(["cache", "--clear"]) == 0
    assert "2 copies removed" in capsys.readouterr().out
    assert list(copies.folder().iterdir()) == []
    assert main(["cache"]) == 0
    assert "0 copies" in capsys.readouterr().out


def test_a_damaged_copy_is_listed_without_its_name(sets, capsys):
    open_dataset(sets[0], ReadOptions())
    (copies.copies()[0].path / "manifest.json").write_text("{")
    assert main(["cache"]) == 0
    assert "a dataset that it does not name" in capsys.readouterr().out


def test_copies_that_cannot_be_removed_are_told(sets, monkeypatch):
    open_dataset(sets[0], ReadOptions())

    def refuse(path: Path) -> bool:
        raise PermissionError(1, "not yours")

    monkeypatch.setattr(copies, "remove_entry", refuse)
    with pytest.raises(EnvironmentFailure, match="1 of its copies could not be removed"):
        copies.clear()


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder that is not a copy of ours."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not (path.parent / "cache-entry.json").exists()
    }


@pytest.fixture
def lab() -> Path:
    """A folder of a user that is used as the cache: with data, a repository and notes."""
    place = copies.folder()
    for name in ("pile.store/observations.npy", ".git/HEAD", ".old/thesis.tex", "notes.txt"):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(b"x" * 5000)
    for path in place.iterdir():
        os.utime(path, (0, 0))
    return place


def test_clearing_leaves_what_is_not_ours(sets, lab, capsys):
    before = everything(lab)
    open_dataset(sets[0], ReadOptions())
    assert main(["cache", "--clear"]) == 0
    told = capsys.readouterr().out
    assert "1 copy removed" in told
    assert "4 more in" in told
    assert everything(lab) == before
    assert copies.copies() == []


@pytest.mark.parametrize("isolate", ["off", "on"])
def test_trimming_leaves_what_is_not_ours(sets, lab, monkeypatch, isolate):
    before = everything(lab)
    allow(monkeypatch, 1000)
    for path in sets:
        open_dataset(path, ReadOptions(isolate=isolate))
    assert everything(lab) == before
    assert len(copies.copies()) == 1


def test_a_copy_that_holds_more_was_moved_or_is_a_link_stays(sets, tmp_path):
    open_dataset(sets[0], ReadOptions())
    (copy,) = (found.path for found in copies.copies())
    moved = copy.with_name("mine.store")
    shutil.copytree(copy, moved)
    outside = shutil.copytree(copy, tmp_path / "outside" / copy.name)
    shutil.rmtree(copy)
    copy.symlink_to(outside)
    copies.clear()
    assert moved.is_dir()
    assert copy.is_symlink()
    assert len(list(outside.iterdir())) > 2
    copy.unlink()
    shutil.copytree(outside, copy)
    (copy / "notes.txt").write_text("mine")
    copies.clear()
    assert (copy / "notes.txt").exists()
    (copy / "notes.txt").unlink()
    (copy / "actions.npy").unlink()
    (copy / "actions.npy").symlink_to(tmp_path / "outside")
    copies.clear()
    assert copy.exists()
    (copy / "actions.npy").unlink()
    copies.clear()
    assert not copy.exists(), "what is left is all ours"


def test_a_marker_that_was_edited_proves_nothing(sets):
    open_dataset(sets[0], ReadOptions())
    (copy,) = (found.path for found in copies.copies())
    marker = copy / "cache-entry.json"
    marker.write_text(marker.read_text().replace("actions.npy", "notions.npy"))
    copies.clear()
    assert copy.exists()


def test_a_cache_that_is_a_link_is_neither_filled_nor_cleared(sets, tmp_path):
    open_dataset(sets[0], ReadOptions())
    place = copies.folder()
    place.rename(tmp_path / "elsewhere")
    place.symlink_to(tmp_path / "elsewhere")
    before = [path.name for path in place.iterdir()]
    copies.clear()
    assert not is_cached(sets[1])
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == before
