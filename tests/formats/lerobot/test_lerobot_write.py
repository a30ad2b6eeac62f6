import json
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from pubc import formats, storage
from pubc.cli.main import main
from pubc.errors import MissingExtraError, UsageError
from pubc.formats.core.findings import Findings
from pubc.formats.core.selection import Selection
from pubc.formats.lerobot import lerobot_read as lerobot
from pubc.formats.lerobot import lerobot_write
from pubc.trajectory import Columns, TrajectorySet
from tests.formats.lerobot_sets import write_v3, write_v21
from tests.formats.roundtrip import CASES, assert_aligned, assert_same, trajectory_sets

OPTIONS = formats.ReadOptions(cache=False)
MADE = Path(__file__).parents[1] / "data" / "lerobot_v3"


def small(lengths=(3, 5, 2)) -> TrajectorySet:
    rows = sum(lengths)
    rng = np.random.Generator(np.random.Philox(4))
    terminals, timeouts = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
    terminals[lengths[0] - 1] = timeouts[-1] = True
    return TrajectorySet.from_flat(
        Columns(
            rng.normal(size=(rows, 4)).astype(np.float32),
            rng.normal(size=(rows, 2)),
            rng.normal(size=rows).astype(np.float32),
            terminals,
            timeouts,
            {"speed/x": rng.normal(size=(rows, 1))},
        ),
        lengths,
        ids=["a", "b/c", "0"][: len(lengths)],
        sources=np.array(["expert", "weak", "weak"][: len(lengths)]),
        final_observations=rng.normal(size=(len(lengths), 4)).astype(np.float32),
        has_final=np.array([True, False, True][: len(lengths)]),
        metadata={"robot_type": "arm", "fps": 20},
    )


@pytest.fixture(params=["v3.0", "v2.1"])
def written(request, tmp_path: Path) -> Path:
    lerobot.write(tmp_path / "set", small(), overwrite=False, version=request.param)
    return tmp_path / "set"


@settings(max_examples=25, deadline=None)
@given(before=trajectory_sets(CASES["lerobot"]))
def test_the_old_layout_loses_nothing_either(before):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "set"
        lerobot.write(path, before, overwrite=False, version="v2.1")
        assert list(path.glob("data/chunk-000/episode_000000.parquet"))
        after = formats.read(path, OPTIONS)
    assert_same(before, after)
    assert_aligned(after)


def test_the_layout_is_that_of_a_set_which_lerobot_recorded(tmp_path):
    lerobot.write(tmp_path / "ours", formats.read(MADE, OPTIONS), overwrite=False)
    theirs = {p.relative_to(MADE) for p in MADE.rglob("*") if p.is_file()}
    ours = {p.relative_to(tmp_path / "ours") for p in (tmp_path / "ours").rglob("*")}
    assert theirs <= ours
    info, made = (json.loads((r / "meta/info.json").read_text()) for r in (tmp_path / "ours", MADE))
    assert set(info) == set(made)
    same = set(info) - {"features"}
    assert {k: info[k] for k in same} == {k: made[k] for k in same}
    index = ["timestamp", "frame_index", "episode_index", "index", "task_index"]
    for name in ("action", "next.reward", "next.done", "next.success", *index):
        assert info["features"][name]["dtype"] == made["features"][name]["dtype"]
        assert info["features"][name]["shape"] == made["features"][name]["shape"]


def test_the_tables_are_those_of_a_set_which_lerobot_recorded(tmp_path):
    lerobot.write(tmp_path / "ours", formats.read(MADE, OPTIONS), overwrite=False)
    data = "data/chunk-000/file-000.parquet"
    ours, theirs = (pq.read_table(root / data) for root in (tmp_path / "ours", MADE))
    shared = set(theirs.column_names) - {"observation.state", "observation.environment_state"}
    for name in shared:
        assert ours.column(name).type.equals(theirs.column(name).type), name
        assert ours.column(name).to_pylist() == theirs.column(name).to_pylist(), name
    tasks = "meta/tasks.parquet"
    ours, theirs = (pq.read_table(root / tasks) for root in (tmp_path / "ours", MADE))
    assert ours["task_index"].to_pylist() == theirs["task_index"].to_pylist()
    # Their words are an index without a name, which lerobot calls "task" as it loads them.
    for table, name in ((ours, "task"), (theirs, "__index_level_0__")):
        assert json.loads(table.schema.metadata[b"pandas"])["index_columns"] == [name]
        assert table[name].to_pylist() == ["push", "lift"]
    listed = "meta/episodes/chunk-000/file-000.parquet"
    ours, theirs = (pq.read_table(root / listed) for root in (tmp_path / "ours", MADE))
    facts = [n for n in theirs.column_names if not n.startswith("stats/")]
    assert ours.select(facts).to_pylist() == theirs.select(facts).to_pylist()
    stats = {n for n in theirs.column_names if n.startswith("stats/")}
    known = {n for n in stats if not n.startswith("stats/observation")}
    assert known <= set(ours.column_names)


def test_the_statistics_are_those_that_lerobot_computed(tmp_path):
    lerobot.write(tmp_path / "ours", formats.read(MADE, OPTIONS), overwrite=False)
    ours, theirs = (
        json.loads((root / "meta/stats.json").read_text()) for root in (tmp_path / "ours", MADE)
    )
    for name in ("action", "next.reward", "timestamp", "index", "episode_index"):
        assert set(ours[name]) == set(theirs[name])
        for kind in ("min", "max", "mean", "std", "count"):
            np.testing.assert_allclose(ours[name][kind], theirs[name][kind], rtol=1e-5, atol=1e-6)


def test_every_episode_is_a_row_group_and_numbers_start_at_zero(tmp_path):
    lerobot.write(tmp_path / "set", small()[[2, 0]], overwrite=False)
    file = pq.ParquetFile(tmp_path / "set/data/chunk-000/file-000.parquet")
    assert [file.metadata.row_group(i).num_rows for i in range(2)] == [2, 3]
    table = file.read()
    assert table["episode_index"].to_pylist() == [0, 0, 1, 1, 1]
    assert table["index"].to_pylist() == [0, 1, 2, 3, 4]
    assert table["frame_index"].to_pylist() == [0, 1, 0, 1, 2]
    assert table["timestamp"].to_pylist() == pytest.approx([0, 0.05, 0, 0.05, 0.1])
    assert table["next.done"].to_pylist() == [False, True, False, False, True]


def test_full_files_are_followed_by_new_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(lerobot_write, "FILE_BYTES", 300)
    monkeypatch.setattr(lerobot_write, "CHUNK", 2)
    before = small((3, 5, 2))
    lerobot.write(tmp_path / "set", before, overwrite=False)
    files = sorted(p.relative_to(tmp_path / "set") for p in tmp_path.glob("set/data/*/*.parquet"))
    assert [f.as_posix() for f in files] == [
        "data/chunk-000/file-000.parquet",
        "data/chunk-000/file-001.parquet",
        "data/chunk-001/file-000.parquet",
    ]
    assert_same(before, formats.read(tmp_path / "set", OPTIONS))


def test_a_written_set_can_be_verified(written):
    assert storage.verify(written) == []
    (written / "meta/info.json").write_text("{}")
    assert storage.verify(written)


def test_words_that_lerobot_has_a_place_for_go_there(tmp_path):
    before = formats.read(MADE, OPTIONS)
    lerobot.write(tmp_path / "set", before, overwrite=False)
    assert_same(before, formats.read(tmp_path / "set", OPTIONS))
    table = pq.read_table(tmp_path / "set/data/chunk-000/file-000.parquet")
    assert table["task_index"].to_pylist() == [0] * 5 + [1] * 4 + [0] * 6
    assert table.column_names.count("timestamp") == 1


def test_notes_are_not_believed_once_another_tool_changed_the_set(tmp_path):
    lerobot.write(tmp_path / "set", small(), overwrite=False)
    root = tmp_path / "set"
    table = pq.read_table(root / "meta/pubc.parquet")
    place = table.column_names.index("length")
    changed = table.set_column(place, "length", pa.array([5, 3, 2]))
    pq.write_table(changed, root / "meta/pubc.parquet")
    read = formats.read(root, OPTIONS)
    assert read.ids.tolist() == ["0", "1", "2"]
    assert read.sources is None
    assert read.ends().tolist() == ["terminal", "unmarked", "timeout"]
    assert "stale_notes" in {p.code for p in read.problems}


@pytest.mark.parametrize(
    "junk",
    [
        {},
        {"columns": {"observations": {"feature": "action", "dtype": "O", "shape": [1]}}},
        {"columns": {"observations": {"feature": "action", "dtype": "<f4", "shape": [-1]}}},
        {"columns": [], "metadata": {}},
    ],
)
def test_notes_that_are_none_are_passed_over(tmp_path, junk):
    lerobot.write(tmp_path / "set", small(), overwrite=False)
    (tmp_path / "set/meta/pubc.json").write_text(json.dumps({"metadata": {}, **junk}))
    read = formats.read(tmp_path / "set", OPTIONS)
    assert read.ids.tolist() == ["0", "1", "2"]


def test_numbers_that_do_not_fit_are_refused_and_nothing_is_left(tmp_path):
    before = small()
    wide = replace(before.columns, actions=before.columns.actions.astype(np.longdouble))
    with pytest.raises(UsageError, match=r"longdouble|float128"):
        lerobot.write(tmp_path / "set", replace(before, columns=wide), overwrite=False)
    assert not list(tmp_path.iterdir())
    with pytest.raises(UsageError, match=r"v3\.0 or v2\.1"):
        lerobot.write(tmp_path / "set", before, overwrite=False, version="v9")


@pytest.mark.parametrize(("flags", "version"), [((), "v3.0"), (("--version", "v2.1"), "v2.1")])
def test_a_command_writes_the_version_it_is_asked_for(tmp_path, flags, version):
    source, target = tmp_path / "set.npz", tmp_path / "set"
    formats.save(source, small())
    assert main(["convert", str(source), str(target), "--to", "lerobot", *flags]) == 0
    assert json.loads((target / "meta/info.json").read_text())["codebase_version"] == version
    assert_same(small(), formats.read(target, OPTIONS))


@pytest.mark.parametrize(
    ("words", "told"),
    [(["lerobot", "--version", "v9"], "pubc writes v3.0 and v2.1"),
     (["d4rl", "--version", "2"], "it has only one")],
)  # fmt: skip
def test_a_version_that_is_not_written_is_a_matter_of_usage(tmp_path, capsys, words, told):
    source = tmp_path / "set.npz"
    formats.save(source, small())
    assert main(["convert", str(source), str(tmp_path / "new"), "--to", *words]) == 2
    assert told in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_a_subset_of_what_pubc_wrote_keeps_all_notes(written, tmp_path):
    kept = np.array([2, 0])
    lerobot.subset(Selection(written, kept, OPTIONS), tmp_path / "part", overwrite=False)
    assert_same(small()[kept], formats.read(tmp_path / "part", OPTIONS))
    versions = [
        json.loads((root / "meta/info.json").read_text())["codebase_version"]
        for root in (written, tmp_path / "part")
    ]
    assert versions[0] == versions[1]


@pytest.fixture(params=["v3.0", "v2.1"])
def foreign(request, tmp_path: Path) -> Path:
    """A stranger's set with words and embedded images beside the numbers."""
    root = tmp_path / "set"
    if request.param == "v3.0":
        write_v3(root, [(0, 0, [1, 0]), (1, 0, [2])], [4, 6, 5])
    else:
        write_v21(root, [4, 6, 5])
    for file in root.glob("data/*/*.parquet"):
        table = pq.read_table(file)
        notes = [f"n{i}" for i in table["index"].to_pylist()]
        images = [{"bytes": note.encode(), "path": None} for note in notes]
        table = table.append_column("note", pa.array(notes))
        pq.write_table(table.append_column("observation.image", pa.array(images)), file)
    return root


def test_a_subset_copies_every_column_and_renumbers(foreign, tmp_path):
    lerobot.subset(
        Selection(foreign, np.array([2, 0]), OPTIONS), tmp_path / "part", overwrite=False
    )
    read = formats.read(tmp_path / "part", OPTIONS)
    assert read.lengths.tolist() == [5, 4]
    assert read.columns.observations[:, 0].tolist() == [*range(10, 15), *range(4)]
    assert_aligned(read)
    files = sorted((tmp_path / "part").glob("data/*/*.parquet"))
    table = pa.concat_tables([pq.read_table(file) for file in files])
    assert table["note"].to_pylist() == [f"n{i}" for i in [*range(10, 15), *range(4)]]
    assert table["observation.image"].to_pylist()[0]["bytes"] == b"n10"
    assert table["index"].to_pylist() == list(range(9))
    assert table["task_index"].to_pylist() == [0] * 9
    assert read.metadata["tasks"] == ["push", "lift"]


def test_a_subset_keeps_facts_of_episodes_and_new_statistics(tmp_path):
    root = write_v3(tmp_path / "set", [(0, 0, [0, 1, 2])], [4, 6, 5])
    lerobot.subset(Selection(root, np.array([1]), OPTIONS), tmp_path / "part", overwrite=False)
    table = pq.read_table(tmp_path / "part/meta/episodes/chunk-000/file-000.parquet")
    (row,) = table.to_pylist()
    assert (row["operator"], row["tasks"], row["length"]) == ("o1", ["lift"], 6)
    assert (row["dataset_from_index"], row["dataset_to_index"]) == (0, 6)
    stats = json.loads((tmp_path / "part/meta/stats.json").read_text())
    assert stats["observation.state"]["min"][0] == 4
    assert stats["observation.state"]["max"][0] == 9
    assert stats["index"]["max"] == [5]


def test_a_subset_reads_what_was_read_with_trust(tmp_path):
    root = write_v3(tmp_path / "set", [(0, 0, [0, 1, 2])], [4, 6, 5], total_frames=99)
    trust = formats.ReadOptions(cache=False, trust="data")
    lerobot.subset(Selection(root, np.array([0, 2]), trust), tmp_path / "part", overwrite=False)
    assert formats.read(tmp_path / "part", OPTIONS).lengths.tolist() == [4, 5]


def with_video(root: Path, template: str) -> Path:
    info = json.loads((root / "meta/info.json").read_text())
    info["features"]["observation.images.top"] = {"dtype": "video", "shape": [8, 8, 3]}
    info["video_path"] = template
    (root / "meta/info.json").write_text(json.dumps(info))
    return root


def test_old_videos_are_copied_one_by_one(tmp_path):
    root = write_v21(tmp_path / "set", [4, 6, 5, 3])
    template = "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4"
    with_video(root, template)
    for number in range(4):
        path = root / f"videos/chunk-{number // 3:03d}/observation.images.top"
        path.mkdir(parents=True, exist_ok=True)
        (path / f"episode_{number:06d}.mp4").write_bytes(b"film %d" % number)
    lerobot.subset(Selection(root, np.array([1, 3]), OPTIONS), tmp_path / "part", overwrite=False)
    films = sorted((tmp_path / "part").glob("videos/*/*/*.mp4"))
    assert [f.name for f in films] == ["episode_000000.mp4", "episode_000001.mp4"]
    assert [f.read_bytes() for f in films] == [b"film 1", b"film 3"]
    info = json.loads((tmp_path / "part/meta/info.json").read_text())
    assert (info["total_videos"], info["total_episodes"]) == (2, 2)


def test_without_pyarrow_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match="the extra 'lerobot'"):
        lerobot.read(MADE, OPTIONS, Findings(MADE))


def test_ids_lead_back_to_the_numbers_of_episodes(written, tmp_path):
    assert lerobot.numbers_of(written, ["b/c", "0"]) == [1, 2]
    foreign = write_v3(tmp_path / "foreign", [(0, 0, [0, 1, 2])], [4, 6, 5])
    assert lerobot.numbers_of(foreign, ["2", "0"]) == [2, 0]
