"""A part of a LeRobot set with video is a complete set: every frame shows its own picture (E1)."""

import json

import numpy as np
import pytest

from pubc import formats
from pubc.cli.main import main
from pubc.errors import DataError
from pubc.formats.core.selection import Selection
from pubc.formats.lerobot import lerobot_cut, lerobot_films
from pubc.formats.lerobot import lerobot_read as lerobot
from pubc.storage import seal, verify
from tests.formats.lerobot_films import CAMERAS, film, pictures, seen, write_with_films
from tests.formats.lerobot_sets import read_listed, write_episodes
from tests.report.build import make_run

pytest.importorskip("av")

OPTIONS = formats.ReadOptions(cache=False)
LENGTHS = [4, 6, 5, 3]


def frames_of(*episodes: int) -> list[list[int]]:
    starts = np.cumsum([0, *LENGTHS])
    return [list(range(starts[n], starts[n + 1])) for n in episodes]


def part(root, target, kept) -> tuple[str, ...]:
    return lerobot.subset(Selection(root, np.array(kept), OPTIONS), target, overwrite=False)


@pytest.mark.parametrize("kept", [[0], [1, 3], [3, 0], [0, 1, 2, 3], [2]])
def test_e1_every_frame_of_a_part_shows_its_own_picture(tmp_path, kept):
    root = write_with_films(tmp_path / "set", [[0, 1, 2], [3]], LENGTHS)
    assert seen(root) == dict.fromkeys(CAMERAS, frames_of(0, 1, 2, 3))
    remarks = part(root, tmp_path / "part", kept)
    assert remarks == ()
    assert seen(tmp_path / "part") == dict.fromkeys(CAMERAS, frames_of(*kept))
    assert formats.read(tmp_path / "part", OPTIONS).lengths.tolist() == [LENGTHS[n] for n in kept]
    assert verify(tmp_path / "part") == []


def test_e1_a_film_holds_no_more_than_the_kept_episodes(tmp_path):
    root = write_with_films(tmp_path / "set", [[0, 1, 2], [3]], LENGTHS)
    part(root, tmp_path / "part", [0, 2])
    films = sorted((tmp_path / "part").glob("videos/*/*/*.mp4"))
    assert len(films) == 2  # one for each camera; the film of episode 3 is not there
    for path in films:
        assert list(pictures(path).values()) == [*frames_of(0)[0], *frames_of(2)[0]]


def test_e1_a_film_that_is_kept_whole_is_copied_byte_by_byte(tmp_path):
    root = write_with_films(tmp_path / "set", [[0, 1], [2, 3]], LENGTHS)
    part(root, tmp_path / "part", [2, 3])
    for path in (tmp_path / "part").glob("videos/*/*/*.mp4"):
        assert path.read_bytes() == (root / path.relative_to(tmp_path / "part")).read_bytes()


def test_e1_without_the_extra_films_are_copied_whole_and_a_sentence_says_so(tmp_path, monkeypatch):
    root = write_with_films(tmp_path / "set", [[0, 1, 2, 3]], LENGTHS)
    monkeypatch.setattr(lerobot_films, "can_cut", lambda: False)
    (remark,) = part(root, tmp_path / "part", [1, 3])
    assert "2 films were copied whole" in remark
    assert "the extra 'video'" in remark
    assert seen(tmp_path / "part") == dict.fromkeys(CAMERAS, frames_of(1, 3))


def test_e1_a_film_without_clean_cuts_is_copied_whole_rather_than_encoded_again(tmp_path):
    root = write_with_films(tmp_path / "set", [[0, 1, 2, 3]], LENGTHS, whole=False)
    (remark,) = part(root, tmp_path / "part", [1, 3])
    assert "do not begin with a whole picture" in remark
    assert seen(tmp_path / "part") == dict.fromkeys(CAMERAS, frames_of(1, 3))


@pytest.mark.parametrize("junk", [b"", b"no film at all" * 99, b"#EXTM3U\nfile:///etc/passwd\n"])
def test_e1_a_film_that_is_none_ends_nothing_but_its_reader(tmp_path, junk):
    (tmp_path / "film.mp4").write_bytes(junk)
    spans = [lerobot_cut.Span(0.0, 0.4, 4)]
    assert lerobot_cut.cut(tmp_path / "film.mp4", tmp_path / "new.mp4", spans) is None
    assert not (tmp_path / "new.mp4").exists()


def test_e1_a_film_that_is_shorter_than_promised_is_not_cut(tmp_path):
    film(tmp_path / "film.mp4", [4, 6], 0, 0)
    spans = [lerobot_cut.Span(0.4, 1.4, 10)]
    assert lerobot_cut.cut(tmp_path / "film.mp4", tmp_path / "new.mp4", spans) is None


def test_e1_missing_films_and_places_are_refused_in_words(tmp_path):
    root = write_with_films(tmp_path / "set", [[0, 1], [2, 3]], LENGTHS)
    path = next(root.glob("videos/*/*/file-001.mp4"))
    path.rename(tmp_path / "away.mp4")
    with pytest.raises(DataError, match="the film is missing"):
        part(root, tmp_path / "part", [2])
    (tmp_path / "away.mp4").rename(path)
    rows = read_listed(root)
    for row in rows:
        row.pop(f"videos/{CAMERAS[1]}/from_timestamp")
    write_episodes(root, rows)
    with pytest.raises(DataError, match="does not say where the film of"):
        part(root, tmp_path / "part", [2])
    assert not (tmp_path / "part").exists()


def test_e1_what_was_kept_is_inspected_converted_and_trained_on(tmp_path, capsys):
    root = write_with_films(tmp_path / "set", [[0, 1], [2, 3]], LENGTHS)
    run = make_run(tmp_path / "run", 12, 1)
    (run / "manifest.json").unlink()  # made again below, with what is put into the run
    part(root, run / "kept.lerobot", [0, 2])
    document = {**json.loads((run / "run.json").read_text()), "kept_path": "kept.lerobot"}
    (run / "run.json").write_text(json.dumps(document))
    seal(run, kind="filter")
    for words in (
        ["inspect", run / "kept.lerobot"],
        ["convert", run / "kept.lerobot", tmp_path / "kept.npz"],
        ["train", run, "--out", tmp_path / "policy", "--epochs", "1"],
    ):
        assert main([str(word) for word in words]) == 0, capsys.readouterr().err


def test_w8_the_printed_line_names_a_policy_and_the_kept_set(tmp_path):
    import shlex

    root = write_with_films(tmp_path / "my set", [[0, 1], [2, 3]], LENGTHS)
    part(root, tmp_path / "run" / "kept.lerobot", [0, 2])
    kept = tmp_path / "run" / "kept.lerobot"
    line = lerobot.train_command(kept, pictures=lerobot.has_pictures(kept))
    command, *flags = shlex.split(line)
    given = dict(flag.split("=", 1) for flag in flags)
    assert command == "lerobot-train"
    assert given["--policy.type"] == "act"
    assert given["--policy.push_to_hub"] == "false"
    assert given["--dataset.root"] == str(kept)
    assert "--dataset.episodes" not in given
    told = lerobot.keep_command(root, [2, 0]).splitlines()
    assert '--dataset.episodes="[0, 2]"' in told[0]
    assert "--policy.type=act" in told[0]
    assert told[1].endswith('--operation.episode_indices "[1, 3]"')


def test_w8_a_set_that_lerobot_cannot_train_on_gets_no_line_that_fails(tmp_path):
    from tests.formats.lerobot_sets import write_v3

    root = write_v3(tmp_path / "set", [(0, 0, [0, 1, 2, 3])], LENGTHS)
    assert not lerobot.has_pictures(root)
    assert lerobot.train_command(root, pictures=False).startswith("# ")
