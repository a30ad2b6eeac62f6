"""`pubc filter --force`: the earlier run stays until the new one is whole (L3).

Every single write, flush and rename is failed in `tests/reliability/test_faults.py`.
"""

import json
import os
import shutil
from pathlib import Path

import pytest

import pubc
from pubc.cli.main import main
from pubc.errors import DataError, EnvironmentFailure, UsageError
from pubc.runs.folder.run_folder import RunFolder
from pubc.runs.folder.run_results import clear_results, staged_results
from pubc.runs.folder.run_succession import claim_run, run_to_go_on_with
from pubc.storage import file_entry, lock, successor, verify, write_sealed
from tests.cli.calling import run
from tests.pu.piles import pile
from tests.report.build import make_run

WORDS = ("--seed-episodes", "0,1", "--recipe", "quick", "--workers", "1")


@pytest.fixture
def earlier(tmp_path):
    return make_run(tmp_path / "run", 12, 1)


@pytest.fixture
def data(tmp_path):
    from tests.reliability import quick_recipe

    assert quick_recipe
    pubc.save(tmp_path / "mixed.npz", pile([4, 4], steps=30, states=2))
    return tmp_path / "mixed.npz"


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run that was killed just before its manifest had its name, beside its data."""
    from tests.reliability import quick_recipe

    assert quick_recipe
    folder = tmp_path_factory.mktemp("killed")
    pubc.save(folder / "mixed.npz", pile([4, 4], steps=30, states=2))
    out = folder / "unfinished"
    assert main(["filter", str(folder / "mixed.npz"), "--out", str(out), *WORDS]) in (0, 6)
    (out / "manifest.json").rename(out / "coming.json")
    return out


@pytest.fixture
def unfinished(killed, tmp_path):
    return Path(shutil.copytree(killed, tmp_path / "unfinished"))


def put(folder, name):
    with staged_results(folder) as stage:
        (stage / name).parent.mkdir(exist_ok=True)
        (stage / name).write_text("a result")


def begin(path, status: str = "running") -> None:
    """What a killed `--force` leaves beside the earlier run."""
    coming = claim_run(path, force=True)
    document = json.loads((path / "run.json").read_text())
    coming.begin({**document, "status": status})


def test_a_new_run_grows_beside_the_earlier_one_and_takes_its_place(earlier):
    before = (earlier / "run.json").read_bytes()
    folder = claim_run(earlier, force=True)
    assert folder == RunFolder(successor(earlier), earlier)
    folder.begin({"kind": "filter", "status": "running"})
    assert (earlier / "run.json").read_bytes() == before
    assert verify(earlier) == []
    folder.finish({"kind": "filter", "status": "converged"})
    assert RunFolder(earlier).read()["status"] == "converged"
    assert verify(earlier) == []
    assert [path.name for path in earlier.parent.iterdir()] == ["run"]


def test_an_unfinished_run_is_no_result_and_goes_at_once(unfinished):
    assert claim_run(unfinished, force=True) == RunFolder(unfinished)
    assert not unfinished.exists()


def test_without_force_an_unfinished_successor_is_told(earlier, capsys, data):
    begin(earlier)
    for there in (True, False):
        if not there:
            shutil.rmtree(earlier)
        code, _, err = run(capsys, "filter", data, "--out", earlier, *WORDS)
        assert code == 2
        assert f"pubc filter --resume {earlier}" in err
    assert successor(earlier).is_dir()


def test_readers_see_the_earlier_run_until_the_end(earlier, capsys):
    begin(earlier)
    assert run(capsys, "verify", earlier)[0] == 0
    assert run(capsys, "report", earlier, "--out", earlier.parent / "page")[0] == 0


def test_a_successor_that_was_killed_before_its_last_step_takes_it(earlier):
    begin(earlier)
    made = RunFolder(successor(earlier))
    made.finish({**made.read(), "status": "no_valley"})  # sealed, never put in place
    found = run_to_go_on_with(earlier)
    assert found == RunFolder(earlier)
    assert found.read()["status"] == "no_valley"
    assert not successor(earlier).exists()


def test_a_damaged_successor_does_not_replace_a_good_run(earlier, capsys):
    before = (earlier / "run.json").read_bytes()
    begin(earlier)
    made = RunFolder(successor(earlier))
    made.finish({**made.read(), "status": "no_valley"})
    (made.path / "run.json").write_bytes(before)
    code, _, err = run(capsys, "filter", "--resume", earlier)
    assert code == 3
    assert "run.json is not as" in err
    assert (earlier / "run.json").read_bytes() == before


def test_the_replaced_run_is_known_after_a_kill_just_behind_the_exchange(earlier, monkeypatch):
    begin(earlier)
    coming = RunFolder(successor(earlier), earlier)
    monkeypatch.setattr("pubc.storage.successors.retire", lambda *paths: None)
    coming.finish({**coming.read(), "status": "no_valley"})
    assert successor(earlier).is_dir()  # the earlier run, not yet removed
    monkeypatch.undo()
    assert run_to_go_on_with(earlier).read()["status"] == "no_valley"
    assert not successor(earlier).exists()


def test_what_was_killed_before_its_first_word_is_in_nobodys_way(earlier, capsys):
    successor(earlier).mkdir()
    (successor(earlier) / ".lock").write_text('{"pid": 1}')
    code, out, _ = run(capsys, "filter", "--resume", earlier)
    assert code == 0
    assert "finished already" in out
    assert not successor(earlier).exists()


def test_a_strangers_folder_under_the_hidden_name_stays(earlier, capsys, data):
    (successor(earlier)).mkdir()
    (successor(earlier) / "thesis.txt").write_text("years of work")
    code, _, _ = run(capsys, "filter", data, "--out", earlier, *WORDS, "--force")
    assert code == 2
    assert (successor(earlier) / "thesis.txt").exists()
    assert verify(earlier) == []


def test_two_at_once_are_refused(earlier, capsys, data):
    begin(earlier)
    with lock(successor(earlier)):
        for words in ((data, "--out", earlier, *WORDS, "--force"), ("--resume", earlier)):
            code, _, err = run(capsys, "filter", *words)
            assert code in (3, 4), err
        code, _, err = run(capsys, "filter", data, "--out", earlier, *WORDS, "--force")
        assert code == 4
        assert "is being written by" in err


def test_going_on_says_which_run_it_goes_on_with(data, tmp_path, capsys, monkeypatch):
    out = tmp_path / "run"
    assert run(capsys, "filter", data, "--out", out, *WORDS)[0] == 0

    def stop(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pubc.runs.filter_run.write_kept", stop)
        words = (data, "--out", out, *WORDS, "--random-seed", "5", "--force")
        code, _, err = run(capsys, "filter", *words)
    assert code == 5
    assert f"pubc filter --resume {out}" in err
    assert RunFolder(out).read()["random_seed"] == 0
    code, told, _ = run(capsys, "filter", "--resume", out)
    assert code == 0
    assert "going on with the one that is to replace it" in told
    assert RunFolder(out).read()["random_seed"] == 5
    page = (out / "report.html").read_text()
    assert ".run.next" not in page
    assert "run: kept" in page
    assert verify(out) == []
    assert not successor(out).exists()
    assert run(capsys, "filter", "--resume", out)[0] == 0


def test_a_finder_is_saved_in_one_step_too(tmp_path, data, monkeypatch):
    from pubc.api import fitted_in_memory

    mixed = pubc.load(data)
    with pytest.warns(UserWarning, match="Fewer than 500"):
        finder = pubc.ExpertFinder(recipe="quick").fit(mixed, seeds=[0, 1])
    out = tmp_path / "run"
    finder.save(out)
    before = {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()}

    def stop(*given):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(fitted_in_memory, "write_results", stop)
        with pytest.raises(pubc.errors.EnvironmentFailure):
            finder.save(out, overwrite=True)
    assert {path.name: path.read_bytes() for path in out.iterdir() if path.is_file()} == before
    finder.save(out, overwrite=True)
    assert verify(out) == []
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] == ".") == []


def test_a_name_behind_a_link_is_the_one_that_the_system_means(tmp_path, data, capsys):
    (tmp_path / "other" / "sub").mkdir(parents=True)
    (tmp_path / "here" / "run").mkdir(parents=True)
    (tmp_path / "here" / "link").symlink_to("../other/sub")
    (tmp_path / "here" / "run" / "thesis.tex").write_text("years")
    make_run(tmp_path / "other" / "run", 12, 1)
    before = (tmp_path / "other" / "run" / "run.json").read_bytes()
    place = tmp_path / "here" / "link" / ".." / "run"
    words = ("filter", str(data), "--out", str(place), *WORDS, "--force", "--json")
    code, _, err = run(capsys, *words)
    assert code == 0, err
    assert (tmp_path / "here" / "run" / "thesis.tex").read_text() == "years"
    assert [path.name for path in (tmp_path / "here" / "run").iterdir()] == ["thesis.tex"]
    assert (tmp_path / "other" / "run" / "run.json").read_bytes() != before


@pytest.mark.parametrize("name", ["kept.mine/thesis.tex", "classifiers/notes/a.tex", "kept.txt"])
def test_what_somebody_put_into_an_unfinished_run_stays(name, unfinished):
    (unfinished / name).parent.mkdir(parents=True, exist_ok=True)
    (unfinished / name).write_text("years")
    with pytest.raises(UsageError, match="pubc did not write"):
        claim_run(unfinished, force=True)
    assert (unfinished / name).read_text() == "years"


def test_what_somebody_edited_in_an_unfinished_run_stays(unfinished, data, capsys):
    """Every single file of it: results, rounds and networks, and what says whose they are."""
    names = [path.relative_to(unfinished).as_posix() for path in unfinished.rglob("*.*")]
    assert {"keep.json", "report.md", "rounds.jsonl", "run.json", "coming.json"} < set(names)
    for name in names:
        file = unfinished / name
        before = file.read_bytes()
        for edited in (before + b" ", before[:-1], b"mine", before[:-1] + b"!"):
            file.write_bytes(edited)
            code, _, err = run(capsys, "filter", data, "--out", unfinished, *WORDS, "--force")
            assert code in (2, 3), (name, edited[-20:])
            assert file.read_bytes() == edited
            assert name in err or name == "run.json"
            assert run(capsys, "filter", "--resume", unfinished)[0] in (2, 3), name
            assert file.read_bytes() == edited
        file.write_bytes(before)
    code, _, err = run(capsys, "filter", "--resume", unfinished)
    assert code in (0, 6), err
    assert verify(unfinished) == []


def test_results_that_a_kill_left_are_made_anew(unfinished, capsys):
    before = {name: (unfinished / name).read_bytes() for name in ("keep.json", "scores.csv")}
    (unfinished / "report.md").unlink()  # and not all of them had their names
    assert run(capsys, "filter", "--resume", unfinished)[0] in (0, 6)
    assert before == {name: (unfinished / name).read_bytes() for name in before}
    assert (unfinished / "report.md").exists()
    assert not (unfinished / "coming.json").exists()
    assert verify(unfinished) == []


def test_a_list_of_results_leads_nowhere_else(unfinished, tmp_path):
    """A run may be a stranger's, and its list sealed."""
    (tmp_path / "thesis.tex").write_text("years")
    entry = file_entry(tmp_path / "thesis.tex")
    names = ("../thesis.tex", "kept.store/../../thesis.tex", str(tmp_path / "thesis.tex"))
    listed = {**json.loads((unfinished / "coming.json").read_text())["files"]}
    files = {**listed, **dict.fromkeys(names, entry)}
    write_sealed(unfinished / "coming.json", {"kind": "filter", "version": 1, "files": files})
    (unfinished / "kept.store").mkdir()
    clear_results(unfinished)
    assert (tmp_path / "thesis.tex").read_text() == "years"
    assert not (unfinished / "keep.json").exists()


def test_a_round_whose_arrays_a_kill_left_without_their_name_is_made_again(
    unfinished, data, tmp_path, capsys
):
    clear_results(unfinished)
    last = max((unfinished / "rounds").iterdir())
    arrays = last.read_bytes()
    last.unlink()
    assert RunFolder(unfinished).check_own() is None
    assert run(capsys, "filter", "--resume", unfinished)[0] in (0, 6)
    assert last.read_bytes() == arrays
    assert verify(unfinished) == []


def test_a_run_that_somebody_edited_stays(earlier, data, capsys):
    (earlier / "report.md").write_text("my findings")
    for name, says in (("report.md", "not in its manifest"), ("keep.json", "not as pubc wrote it")):
        before = (earlier / name).read_text() + " "
        (earlier / name).write_text(before)
        code, _, err = run(capsys, "filter", data, "--out", earlier, *WORDS, "--force")
        assert code == 2
        assert f"holds {name}, which is {says}" in " ".join(err.split())
        assert (earlier / name).read_text() == before
        (earlier / name).unlink()


def test_a_folder_with_anybodys_run_json_is_no_unfinished_run(tmp_path, data, capsys):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text('{"kind": "filter", "status": "running"}')
    (tmp_path / "run" / "report.md").write_text("my findings")
    for words in (
        (data, "--out", tmp_path / "run", *WORDS, "--force"),
        ("--resume", tmp_path / "run"),
    ):
        code, _, err = run(capsys, "filter", *words)
        assert code in (2, 3), err
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["report.md", "run.json"]


@pytest.mark.parametrize("name", ["report.md", "labels.json", "kept.store/thesis.tex"])
def test_a_result_that_an_unfinished_run_did_not_write_stays(tmp_path, name):
    """It has the name of a result, and none was written yet."""
    folder = claim_run(tmp_path / "run", force=False)
    folder.begin({"kind": "filter", "status": "running"})
    mine = tmp_path / "run" / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(UsageError, match="came there while the run was at work"):
        put(folder.path, name)
    with pytest.raises(UsageError, match="pubc did not write"):
        claim_run(tmp_path / "run", force=True)
    assert mine.read_text() == "mine"
    mine.unlink()
    if mine.parent != folder.path:
        mine.parent.rmdir()
    put(folder.path, name)
    assert mine.read_text() == "a result"
    assert claim_run(tmp_path / "run", force=True) == folder
    assert not mine.exists()


def test_a_folder_of_hidden_files_is_somebodys(data, tmp_path, capsys):
    """A repository begins like that."""
    for place in (tmp_path / "repo", successor(tmp_path / "other")):
        (place / ".git").mkdir(parents=True)
        (place / ".env").write_text("SECRET=1")
    for words in (("--out", tmp_path / "repo"), ("--out", tmp_path / "other", "--force")):
        code, _, err = run(capsys, "filter", data, *words, *WORDS)
        assert code == 2, err
    code, _, _ = run(capsys, "filter", "--resume", tmp_path / "other")
    assert code != 0
    for place in (tmp_path / "repo", successor(tmp_path / "other")):
        assert sorted(path.name for path in place.iterdir()) == [".env", ".git"]


def test_what_somebody_puts_into_a_run_at_work_is_not_sealed_and_stays(tmp_path):
    folder = claim_run(tmp_path / "run", force=False)
    folder.begin({"kind": "filter", "status": "running"})
    notes = tmp_path / "run" / "notes.txt"
    notes.write_text("mine")
    folder.finish({"kind": "filter", "status": "converged"})
    assert "notes.txt" not in (tmp_path / "run" / "manifest.json").read_text()
    with pytest.raises(UsageError):
        claim_run(tmp_path / "run", force=True)
    assert notes.read_text() == "mine"


def test_words_that_somebody_edited_in_a_run_at_work_stay(tmp_path):
    folder = claim_run(tmp_path / "run", force=False)
    folder.begin({"kind": "filter", "status": "running"})
    mine = (tmp_path / "run" / "run.json").read_text().replace("running", "dreaming")
    (tmp_path / "run" / "run.json").write_text(mine)
    with pytest.raises(DataError, match="not as pubc wrote it"):
        folder.finish({"kind": "filter", "status": "converged"})
    assert (tmp_path / "run" / "run.json").read_text() == mine


def test_a_run_that_came_to_the_place_since_force_was_given_stays(earlier):
    folder = claim_run(earlier, force=True)
    folder.begin({"kind": "filter", "status": "running"})
    earlier.rename(earlier.with_name("old"))
    other = make_run(earlier, 14, 1)
    before = (other / "run.json").read_bytes()
    with pytest.raises(UsageError, match="another run than the one that was to be replaced"):
        folder.finish({"kind": "filter", "status": "converged"})
    with pytest.raises(UsageError, match="another run than"):
        run_to_go_on_with(earlier)
    assert (other / "run.json").read_bytes() == before
    assert verify(other) == verify(successor(earlier)) == []
    shutil.rmtree(other)
    assert run_to_go_on_with(earlier).read()["status"] == "converged"


def test_a_finished_run_under_the_hidden_name_replaces_nothing(earlier):
    make_run(successor(earlier), 14, 1)
    before = (earlier / "run.json").read_bytes()
    with pytest.raises(UsageError, match="another run than"):
        run_to_go_on_with(earlier)
    assert (earlier / "run.json").read_bytes() == before


def test_what_somebody_puts_among_the_shards_of_a_run_at_work_stays(tmp_path):
    folder = claim_run(tmp_path / "run", force=False)
    folder.begin({"kind": "filter", "status": "running"})
    folder.remove_shards()
    folder.shards.mkdir()
    (folder.shards / "view-0-1.safetensors").write_text("mine")
    with pytest.raises(DataError, match=r"view-0-1\.safetensors, which is not as"):
        folder.remove_shards()
    (folder.shards / "view-0-1.safetensors").rename(folder.shards / "notes.txt")
    with pytest.raises(UsageError, match=r"notes\.txt"):
        folder.remove_shards()
    assert (folder.shards / "notes.txt").read_text() == "mine"
    (folder.shards / "notes.txt").unlink()
    folder.remove_shards()
    assert not folder.shards.exists()


def test_a_run_with_a_part_that_nobody_may_look_into_stays(earlier, monkeypatch):
    (earlier / "secret").mkdir()
    real = os.scandir

    def scandir(path):
        if Path(path).name == "secret":
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(EnvironmentFailure, match="secret: Permission denied"):
        claim_run(earlier, force=True)
    with pytest.raises(EnvironmentFailure, match="secret: Permission denied"):
        verify(earlier)
