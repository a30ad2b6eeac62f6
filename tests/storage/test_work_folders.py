"""Folders that commands work in: ours by a document inside, and emptied of what proves itself."""

import json
from pathlib import Path

import pytest

from pubc.errors import UsageError
from pubc.storage import WorkFolder, lock


def work_in(folder: Path, kind: str = "training run") -> WorkFolder:
    names = ("table.txt", "part-*/state.json")
    return WorkFolder(folder / "p.training", kind, names, lambda path: path.read_text() == "text")


def fill(work: WorkFolder, *names: str) -> None:
    for name in names:
        (work.path / name).parent.mkdir(parents=True, exist_ok=True)
        (work.path / name).write_text("text")


def left_in(work: WorkFolder) -> list[str]:
    return sorted(p.relative_to(work.path).as_posix() for p in work.path.rglob("*"))


def test_a_folder_is_begun_once_and_goes_whole(tmp_path):
    work = work_in(tmp_path)
    assert work.about() is None
    work.begin({"plan": [1]})
    work.begin({"plan": [2]})
    assert work.about() == {"plan": [1]}
    fill(work, "table.txt", "part-1/state.json", "part-2/state.json")
    (work.path / "part-3").mkdir()
    fill(work, ".part-4.tmp-0123abcd-1-0123abcd/anything")
    with lock(work.path):
        work.drop("part-1/state.json")
        assert not (work.path / "part-1/state.json").exists()
        assert (work.path / "part-2/state.json").exists()
        work.remove()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_is_free(tmp_path):
    work = work_in(tmp_path)
    work.path.mkdir()
    work.begin()
    assert work.about() == {}


@pytest.mark.parametrize(
    "name",
    ["thesis", ".env", ".lock", "manifest.json", "table.txt", "part-1/state.json", "work.json"],
)
def test_a_folder_without_our_document_is_refused(tmp_path, name):
    work = work_in(tmp_path)
    fill(work, name)
    for ask in (work.about, work.begin):
        with pytest.raises(UsageError, match=r"p\.training was not made by pubc"):
            ask()
    assert (work.path / name).read_text() == "text"


def test_a_document_that_was_edited_or_is_of_another_kind_proves_nothing(tmp_path):
    work_in(tmp_path, "collection").begin()
    work = work_in(tmp_path)
    with pytest.raises(UsageError, match="not made by pubc for a training run"):
        work.about()
    document = work.path / "work.json"
    document.write_text(json.dumps({"kind": "training run", "about": {}}))
    with pytest.raises(UsageError, match="not made by pubc for a training run"):
        work.about()


@pytest.mark.parametrize(
    "name", ["thesis", ".env", "manifest.json", "part-1/thesis", "part-1/part-2/state.json"]
)
def test_what_somebody_put_there_is_told_and_stays(tmp_path, name):
    work = work_in(tmp_path)
    work.begin()
    fill(work, "table.txt", "part-1/state.json", name)
    with pytest.raises(UsageError, match=f"holds {name}, which is not of a training run"):
        work.about()
    told = rf"p\.training stays: it holds {name.split('/')[0]}, which"
    with lock(work.path), pytest.warns(UserWarning, match=told):
        work.remove()
    assert [one for one in left_in(work) if (work.path / one).is_file()] == [name]


def test_links_are_neither_followed_nor_removed(tmp_path):
    work = work_in(tmp_path)
    work.begin()
    (tmp_path / "mine").write_text("mine")
    (work.path / "table.txt").symlink_to(tmp_path / "mine")
    with pytest.raises(UsageError, match=r"holds table\.txt"):
        work.about()
    with lock(work.path), pytest.warns(UserWarning, match="stays"):
        work.remove()
    assert left_in(work) == ["table.txt"]
    assert (tmp_path / "mine").read_text() == "mine"


def test_what_does_not_prove_itself_is_named_and_stays(tmp_path):
    work = work_in(tmp_path)
    work.begin()
    fill(work, "table.txt", "part-1/state.json")
    (work.path / "part-1/state.json").write_text("edited")
    with pytest.raises(UsageError, match=r"part-1/state\.json, which is not as pubc wrote it"):
        work.about()
    work.drop("part-1/state.json")
    with lock(work.path), pytest.warns(UserWarning, match="stays: it holds part-1"):
        work.remove()
    assert left_in(work) == ["part-1", "part-1/state.json"]
    assert (work.path / "part-1/state.json").read_text() == "edited"


def test_a_document_that_was_edited_meanwhile_stays(tmp_path):
    work = work_in(tmp_path)
    work.begin()
    fill(work, "table.txt", "work.json")
    with lock(work.path), pytest.warns(UserWarning, match=r"stays: it holds work\.json"):
        work.remove()
    assert left_in(work) == ["work.json"]
    assert (work.path / "work.json").read_text() == "text"
