"""Marks of people: read with suspicion, written whole, and cut out of trajectories."""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pubc.errors import DataError, UnknownNameError
from pubc.labels import Labels, Mark, parts_of, read_labels, save_labels
from pubc.trajectory import Columns, TrajectorySet


@pytest.fixture
def pile():
    lengths = [10, 20, 5]
    steps = sum(lengths)
    flags = np.zeros(steps, bool)
    columns = Columns(np.arange(steps)[:, None] * 1.0, np.ones((steps, 2)), None, flags, flags)
    return TrajectorySet.from_flat(columns, lengths, ids=["a", "b", "c"])


def test_marks_survive_the_file(tmp_path):
    labels = Labels((Mark("a", "good"), Mark("b", "bad", 3, 9), Mark("</script>\x00", "bad")))
    save_labels(tmp_path / "labels.json", labels, tmp_path)
    assert read_labels(tmp_path / "labels.json") == labels


@pytest.mark.parametrize(
    "text",
    [
        "[3, 17]",
        "3, 17",
        "3,17\n",
        "3\n17\n",
        "lerobot-edit-dataset \\\n    --repo_id me/set \\\n"
        "    --operation.type delete_episodes \\\n"
        '    --operation.episode_indices "[3, 17]"',
        "# Delete\nlerobot-edit-dataset --repo_id me/2024 --operation.episode_indices='[3, 17]'\n"
        '# and save\nlerobot-edit-dataset --new_repo_id x --operation.episode_indices "[3, 17]"',
    ],
)
def test_flags_of_lerobots_visualiser_are_bad_ones(tmp_path, text):
    path = tmp_path / "flags.txt"
    path.write_text(text)
    assert read_labels(path).marks == (Mark("3", "bad"), Mark("17", "bad"))


def test_one_flag_alone_is_a_list_too(tmp_path):
    (tmp_path / "flags").write_text("17")
    assert read_labels(tmp_path / "flags").marks == (Mark("17", "bad"),)


HEAD = {"kind": "labels", "version": 1}


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"kind": "filter"},
        {**HEAD, "version": 2, "marks": []},
        {**HEAD, "marks": {}},
        {**HEAD, "marks": [], "annotator": "Alice"},
        {**HEAD, "marks": [17]},
        {**HEAD, "marks": [{"episode": "a"}]},
        {**HEAD, "marks": [{"episode": "a", "label": "great"}]},
        {**HEAD, "marks": [{"episode": "a", "label": ["good"]}]},
        {**HEAD, "marks": [{"episode": None, "label": "good"}]},
        {**HEAD, "marks": [{"episode": True, "label": "good"}]},
        {**HEAD, "marks": [{"episode": "x" * 20_000, "label": "good"}]},
        {**HEAD, "marks": [{"episode": "a", "label": "good", "stat": 1}]},
        {**HEAD, "marks": [{"episode": "a", "label": "good", "start": 1}]},
        {**HEAD, "marks": [{"episode": "a", "label": "good", "start": 5, "stop": 5}]},
        {**HEAD, "marks": [{"episode": "a", "label": "good", "start": -1, "stop": 5}]},
        {**HEAD, "marks": [{"episode": "a", "label": "good", "start": 0, "stop": 1e3}]},
        {**HEAD, "marks": [{"episode": "a", "label": "good", "start": 0, "stop": 2**70}]},
        [1, "2"],
        [True],
        "good",
        None,
    ],
)
def test_what_is_no_list_of_marks_is_refused(tmp_path, document):
    (tmp_path / "labels.json").write_text(json.dumps(document))
    with pytest.raises(DataError) as told:
        read_labels(tmp_path / "labels.json")
    assert told.value.code == "bad_labels"


@pytest.mark.parametrize("raw", [b"\xff\xfe\x00", b"rm -rf 3", b"[" * 100_000, b"", b"1" * 5000])
def test_what_is_not_even_json_is_refused(tmp_path, raw):
    (tmp_path / "labels.json").write_bytes(raw)
    with pytest.raises(DataError):
        read_labels(tmp_path / "labels.json")


@settings(deadline=None)  # the disk may be slow
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8")))
def test_any_bytes_are_labels_or_a_data_error(tmp_path_factory, raw):
    path = tmp_path_factory.mktemp("labels") / "labels.json"
    path.write_bytes(raw)
    try:
        labels = read_labels(path)
    except DataError:
        return
    assert all(isinstance(mark, Mark) for mark in labels.marks)


def test_whole_marks_are_seeds_and_known_bad(pile):
    parts = parts_of(Labels((Mark("a", "good"), Mark("c", "bad"))), pile)
    assert parts.good.ids.tolist() == ["a"]
    assert parts.bad.ids.tolist() == ["c"]
    assert parts.good_positions.tolist() == [0]
    assert parts.bad_positions.tolist() == [2]
    assert parts.bad_stretches == ()
    assert parts.good.columns is pile.columns


def test_a_stretch_is_cut_out_and_the_later_mark_counts(pile):
    labels = Labels((Mark("b", "good"), Mark("b", "bad", 4, 8), Mark("a", "good", 2, 7)))
    parts = parts_of(labels, pile)
    steps = [piece.steps.observations[:, 0].tolist() for piece in parts.good]
    assert steps == [list(range(2, 7)), list(range(10, 14)), list(range(18, 30))]
    assert [piece.steps.observations[:, 0].tolist() for piece in parts.bad] == [[14, 15, 16, 17]]
    assert parts.good_positions.size == 0
    assert parts.bad_stretches == ((1, 4, 8),)


def test_a_whole_mark_after_a_stretch_takes_it_back(pile):
    labels = Labels((Mark("b", "bad", 4, 8), Mark("b", "good")))
    assert parts_of(labels, pile).good_positions.tolist() == [1]
    assert len(parts_of(labels, pile).bad) == 0


def test_labels_of_another_dataset_are_refused(pile):
    with pytest.raises(UnknownNameError, match="'d'"):
        parts_of(Labels((Mark("d", "good"),)), pile)
    with pytest.raises(DataError, match="has 5 steps"):
        parts_of(Labels((Mark("c", "good", 2, 6),)), pile)


def test_what_a_run_had_foretold_survives_the_file_and_is_counted_in_order(tmp_path):
    marks = (
        Mark("0", "good"),
        Mark("1", "bad", foretold="bad"),
        Mark("2", "good", foretold="bad"),
        Mark("3", "good", foretold="good"),
    )
    save_labels(tmp_path / "labels.json", Labels(marks))
    found = read_labels(tmp_path / "labels.json")
    assert found.marks == marks
    assert found.foretold == (True, False, True)


@pytest.mark.parametrize(
    "entry", [{"foretold": "kept"}, {"foretold": "good", "start": 1, "stop": 4}]
)
def test_only_whole_trajectories_are_foretold_good_or_bad(tmp_path, entry):
    mark = {"episode": "0", "label": "good", **entry}
    document = {"kind": "labels", "version": 1, "marks": [mark]}
    (tmp_path / "labels.json").write_text(json.dumps(document))
    with pytest.raises(DataError, match="foretold"):
        read_labels(tmp_path / "labels.json")


@pytest.mark.parametrize("what", ["/dev/zero", "pipe", "folder"])
def test_what_is_no_file_is_refused_without_reading_it(tmp_path, what):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(DataError, match="is not a file"):
        read_labels(tmp_path / what)
