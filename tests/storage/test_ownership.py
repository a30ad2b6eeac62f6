"""Nothing is replaced that does not prove to be an earlier result of the same kind."""

from pathlib import Path

import pytest

from pubc.errors import UsageError
from pubc.storage import (
    Draft,
    Fault,
    atomic_folder,
    claim,
    mark,
    seal_file,
    strangers,
    write_json,
    write_marked,
    write_sealed,
)

PNG = b"\x89PNG\r\n\x1a\n" + b"\x00\x00\x00\x00IEND\xaeB`\x82"


def make(path: Path, kind: str = "report") -> Path:
    with atomic_folder(path, kind=kind) as folder:
        (folder / "a.txt").write_text("a")
    return path


def refused(path: Path, *kinds: str, **rest) -> str:
    with pytest.raises(UsageError) as caught:
        claim(path, *kinds, force=True, **rest)
    return str(caught.value)


def test_what_is_free_may_be_taken_and_what_exists_needs_force(tmp_path):
    claim(tmp_path / "free", "report", force=False)
    made = make(tmp_path / "made")
    with pytest.raises(UsageError, match="exists already"):
        claim(made, "report", force=False)
    claim(made, "report", force=True)


def test_a_folder_of_another_kind_stays(tmp_path):
    assert "of kind 'store'" in refused(make(tmp_path / "made", "store"), "report")
    claim(tmp_path / "made", "report", "store", force=True)


def test_a_folder_with_any_file_called_manifest_stays(tmp_path):
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "manifest.json").write_text('{"kind": "report", "files": {}}')
    assert "seal does not fit" in refused(tmp_path / "site", "report")


def test_a_folder_that_somebody_put_something_into_stays(tmp_path):
    made = make(tmp_path / "made")
    (made / "deep").mkdir()
    (made / "deep" / "thesis.tex").write_text("years")
    assert "holds deep/thesis.tex" in refused(made, "report")


@pytest.mark.parametrize("target", ["made", "nowhere"])
def test_a_link_stays(tmp_path, target):
    make(tmp_path / "made")
    (tmp_path / "link").symlink_to(tmp_path / target)
    assert "is a link" in refused(tmp_path / "link", "report")


def test_a_file_is_proved_by_its_manifest_and_its_content(tmp_path):
    path = tmp_path / "x.npz"
    path.write_bytes(b"data")
    assert "pubc did not write" in refused(path, "dataset")
    seal_file(path, kind="dataset")
    claim(path, "dataset", force=True)
    assert "of kind 'dataset'" in refused(path, "scores")
    path.write_bytes(b"mine")
    assert "is not the file that x.npz.manifest.json describes" in refused(path, "dataset")


def test_a_manifest_that_would_be_replaced_must_be_ours(tmp_path):
    (tmp_path / "x.npz.manifest.json").write_text('{"my": "own"}')
    assert "not a manifest that pubc wrote" in refused(tmp_path / "x.npz", "dataset")


@pytest.mark.parametrize("suffix", [".md", ".html", ".svg", ".png"])
def test_a_file_is_proved_by_its_mark(tmp_path, suffix):
    path = tmp_path / f"thesis{suffix}"
    content = PNG if suffix == ".png" else b"text"
    path.write_bytes(content)
    assert "pubc did not write" in refused(path, "report")
    path.write_bytes(mark(content, "report", suffix))
    claim(path, "report", force=True)
    assert "pubc did not write" in refused(path, "figure")
    ours = path.read_bytes()
    for other in (ours + b"mine", ours.replace(b"tex", b"tax").replace(b"PNG", b"PNX")):
        path.write_bytes(other)
        assert other != ours
        assert "changed since" in refused(path, "report")


def test_marked_files_are_written_all_or_none(tmp_path):
    (tmp_path / "b.md").write_text("mine")
    files = {tmp_path / "a.md": b"a", tmp_path / "b.md": b"b"}
    for force in (False, True):
        with pytest.raises(UsageError):
            write_marked(files, "report", force=force)
    assert [path.name for path in tmp_path.iterdir()] == ["b.md"]
    (tmp_path / "b.md").unlink()
    write_marked(files, "report")
    write_marked(files, "report")  # the same bytes need no leave
    with pytest.raises(UsageError, match="exists already"):
        write_marked({tmp_path / "a.md": b"new"}, "report")
    write_marked({tmp_path / "a.md": b"new"}, "report", force=True)


@pytest.mark.parametrize("there", ["edited", "longer text"])
def test_a_folder_whose_file_somebody_edited_stays(tmp_path, there):
    made = make(tmp_path / "made")
    (made / "a.txt").write_text(there)
    assert "holds a.txt, which is not as pubc wrote it" in refused(made, "report")
    (made / "a.txt").unlink()  # nothing of anybody's
    claim(made, "report", force=True)


def test_an_unfinished_folder_is_known_by_its_draft(tmp_path):
    def faults(folder):
        names = strangers(folder, ("run.json", "rounds/*.npz"))
        return [Fault(name, "nobody knows") for name in names]

    draft = Draft("run.json", faults)
    (tmp_path / "run").mkdir()
    write_json(tmp_path / "run" / "run.json", {"kind": "filter"})
    assert "pubc did not write" in refused(tmp_path / "run", "filter", draft=draft)
    write_sealed(tmp_path / "run" / "run.json", {"kind": "filter"})
    claim(tmp_path / "run", "filter", force=True, draft=draft)
    assert "pubc did not write" in refused(tmp_path / "run", "filter")
    assert "pubc did not write" in refused(tmp_path / "run", "report", draft=draft)
    for name in ("thesis.tex", "rounds/notes/thesis.npz"):
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_text("years")
        told = refused(tmp_path / "run", "filter", draft=draft)
        assert f"holds {name}, which nobody knows" in told
        (tmp_path / "run" / name).unlink()


@pytest.mark.parametrize("force", [False, True])
def test_a_place_without_a_name_is_asked_for_one(tmp_path, monkeypatch, force):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place in (".", ".."):
        with pytest.raises(UsageError, match=r"Name the place itself|exists already"):
            claim(Path(place), "report", force=force)


def test_a_lock_that_is_somebody_elses_stays(tmp_path):
    with atomic_folder(tmp_path / "store", kind="store") as new:
        (new / "a.npy").write_bytes(b"a")
    (tmp_path / "store" / ".lock").write_text("my notes")
    assert "holds .lock" in refused(tmp_path / "store", "store")
    (tmp_path / "store" / ".lock").write_text("")
    claim(tmp_path / "store", "store", force=True)


def test_what_a_killed_write_left_is_no_stranger(tmp_path):
    left = tmp_path / "run" / ".checkpoint-000020.tmp-0123abcd-77-89abcdef"
    left.mkdir(parents=True)
    (left / "state.safetensors").write_bytes(b"half")
    (tmp_path / "run" / "mine.txt").write_text("mine")
    assert strangers(tmp_path / "run", ()) == ["mine.txt"]
