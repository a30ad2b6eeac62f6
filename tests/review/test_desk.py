"""Opening: a dataset, a run, the labels of before; and what belongs to something else."""

import json

import pytest

from pubc import formats
from pubc.errors import DataError, LockedError, UnknownNameError, UsageError
from pubc.formats import ReadOptions
from pubc.labels import Labels, Mark, read_labels, save_labels
from pubc.review.desk import open_desk
from pubc.review.serve import serving
from pubc.storage import seal
from tests.report.build import make_run


def run_about(data, path, ids, marks=(), bad=()):
    """A finished run that says that it is about these trajectories, and what it was told."""
    run = make_run(path, len(ids), ids=ids)
    document = json.loads((run / "run.json").read_text())
    document["data"]["path"] = str(data)
    document["bad"] = {"episodes": None, "ids": list(bad)}
    if marks:
        save_labels(run / "labels.json", Labels(marks))
    (run / "run.json").write_text(json.dumps(document))
    seal(run, kind="filter", about={"note": "kept"})
    return run


@pytest.fixture
def run(demo, tmp_path):
    return run_about(demo, tmp_path / "first", [str(at) for at in range(60)])


def test_a_dataset_is_reviewed_in_a_folder_beside_it(desk, demo):
    assert desk.folder == demo.parent / "mixture.npz-review"
    assert not desk.folder.exists()
    desk.set_marks([(3, [{"label": "good"}])])
    assert (desk.folder / "labels.json").is_file()


def test_marks_are_there_when_it_is_opened_again(desk, demo):
    desk.set_marks([(3, [{"label": "good"}]), (5, [{"label": "bad", "start": 1, "stop": 9}])])
    assert open_desk(demo, ReadOptions()).labels == desk.labels


def test_a_changed_mind_does_not_make_the_file_grow(desk):
    for label in ("good", "bad") * 3:
        desk.set_marks([(at, [{"label": label}]) for at in range(60)])
    assert len(read_labels(desk.labels_path)) == 60
    desk.set_marks([(at, []) for at in range(1, 60)])
    assert read_labels(desk.labels_path).marks == (Mark("0", "bad"),)


def test_one_server_at_a_time_writes_the_marks(desk):
    with serving(desk), pytest.raises(LockedError), serving(desk):
        pass


def test_a_run_brings_its_data_its_verdicts_and_its_seeds(run, demo):
    desk = open_desk(run, ReadOptions())
    assert desk.data == demo.resolve()
    assert desk.run.scores.keep.sum() == json.loads((run / "run.json").read_text())["kept"]
    assert desk.run_before is None
    seeds = [str(at) for at in desk.run.scores.seed.nonzero()[0]]
    assert [mark.episode for mark in desk.labels.marks] == seeds
    assert {p.reason for p in desk.proposals()} & {"doubtful", "disagreed", "uncovered"}


def test_a_run_brings_all_that_it_was_told_good_and_bad_whole_and_stretches(demo, tmp_path):
    ids = [str(at) for at in range(60)]
    bare = open_desk(run_about(demo, tmp_path / "bare", ids, bad=["7"]), ReadOptions())
    seeds = tuple(Mark(str(at), "good") for at in bare.run.scores.seed.nonzero()[0])
    assert bare.labels.marks == (*seeds, Mark("7", "bad"))
    told = (*seeds, Mark("7", "bad"), Mark(seeds[0].episode, "bad", 3, 9), Mark("8", "good", 0, 50))
    run = run_about(demo, tmp_path / "told", ids, told, ["7", "9"])
    assert open_desk(run, ReadOptions()).labels.marks == (*told, Mark("9", "bad"))


def test_what_a_run_was_told_is_no_test_of_it_even_when_proposed_again(demo, tmp_path):
    ids = [str(at) for at in range(60)]
    desk = open_desk(run_about(demo, tmp_path / "first", ids, bad=["7"]), ReadOptions())
    desk.set_marks([(7, [])])
    desk._proposed.add(7)
    desk.set_marks([(7, [{"label": "bad"}])])
    assert desk.labels.foretold == ()


def test_a_run_about_other_data_is_refused(demo, tmp_path):
    run = run_about(demo, tmp_path / "other", [f"demo_{at}" for at in range(60)])
    with pytest.raises(DataError, match="other trajectories"):
        open_desk(run, ReadOptions())


def test_a_run_whose_data_was_moved_says_which_data_it_names(run, demo):
    demo.rename(demo.with_name("elsewhere.npz"))
    with pytest.raises(DataError, match=r"first: the run was made of .*mixture\.npz, which is not"):
        open_desk(run, ReadOptions())


def test_the_marks_of_a_run_are_taken_and_left_as_they_are(demo, tmp_path):
    ids = [str(at) for at in range(60)]
    run = run_about(demo, tmp_path / "first", ids, (Mark("4", "good"),))
    desk = open_desk(demo, ReadOptions(), labels=run / "labels.json")
    desk.set_marks([(5, [{"label": "bad"}])])
    assert read_labels(run / "labels.json").marks == (Mark("4", "good"),)
    assert desk.labels_path == desk.folder / "labels.json"
    assert read_labels(desk.labels_path).marks == (Mark("4", "good"), Mark("5", "bad"))


@pytest.mark.parametrize("finished", [True, False])
def test_marks_do_not_go_into_a_run(demo, tmp_path, finished):
    ids = [str(at) for at in range(60)]
    run = run_about(demo, tmp_path / "first", ids, (Mark("4", "good"),))
    if not finished:
        (run / "manifest.json").unlink()
    before = (run / "labels.json").read_bytes()
    with pytest.raises(UsageError, match="is the folder of a run, and marks go beside it"):
        open_desk(demo, ReadOptions(), folder=run)
    assert (run / "labels.json").read_bytes() == before


def test_labels_of_other_data_are_refused(demo, tmp_path):
    save_labels(tmp_path / "labels.json", Labels((Mark("demo_3", "good"),)))
    with pytest.raises(UnknownNameError):
        open_desk(demo, ReadOptions(), labels=tmp_path / "labels.json")


def test_damaged_labels_are_refused_and_left_alone(demo, tmp_path):
    (tmp_path / "labels.json").write_text("{")
    with pytest.raises(DataError):
        open_desk(demo, ReadOptions(), labels=tmp_path / "labels.json")
    assert (tmp_path / "labels.json").read_text() == "{"


def test_flags_of_lerobot_are_marks_to_go_on_with(filmed, tmp_path):
    (tmp_path / "flags.txt").write_text("1, 4")
    desk = open_desk(filmed, ReadOptions(), labels=tmp_path / "flags.txt")
    assert desk.marks() == {at: [{"label": "bad", "start": None, "stop": None}] for at in (1, 4)}
    desk.set_marks([(4, []), (2, [{"label": "good"}])])
    assert (tmp_path / "flags.txt").read_text() == "1, 4"
    assert read_labels(desk.labels_path).marks == (Mark("1", "bad"), Mark("2", "good"))
    assert desk.videos.cameras == ("observation.images.top",)


def test_nothing_at_the_path_is_said(tmp_path):
    with pytest.raises(UsageError, match="does not exist"):
        open_desk(tmp_path / "nothing.npz", ReadOptions())


def test_a_set_without_returns_or_sources_opens(demo, tmp_path):
    from dataclasses import replace

    mixed = formats.read(demo)
    bare = replace(mixed, columns=replace(mixed.columns, rewards=None), sources=None)
    formats.save(tmp_path / "bare.npz", bare)
    assert len(open_desk(tmp_path / "bare.npz", ReadOptions()).proposals()) == 8


def test_a_mark_on_what_was_proposed_says_what_the_run_had_said(run):
    desk = open_desk(run, ReadOptions())
    proposed = [p.at for p in desk.proposals()]
    verdicts = {"kept": "good", "dropped": "bad", "unsure": None}
    said = {at: verdicts[desk.run.scores.verdict[at]] for at in proposed}
    desk.set_marks([(at, [{"label": "good"}]) for at in proposed])
    desk.set_marks([(at, [{"label": "bad"}]) for at in proposed])
    found = {int(mark.episode): mark.foretold for mark in desk.labels.marks}
    assert {at: found[at] for at in proposed} == said
    assert len(desk.labels.foretold) == sum(word is not None for word in said.values())


def test_what_somebody_chose_themselves_is_no_test(run):
    desk = open_desk(run, ReadOptions())
    marked = {int(mark.episode) for mark in desk.labels.marks}
    proposed = {p.at for p in desk.proposals()}
    own = [at for at in range(60) if at not in marked | proposed]
    desk.set_marks([(at, [{"label": "bad"}]) for at in own])
    assert desk.labels.foretold == ()
