import json
import re
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pubc import formats
from pubc.errors import DataError
from pubc.formats.lerobot.lerobot_meta import Info
from pubc.formats.lerobot.lerobot_paths import fill
from pubc.formats.opening.detect import detect
from tests.formats.lerobot_sets import (
    episode,
    read_listed,
    write_episodes,
    write_v3,
    write_v21,
)
from tests.formats.roundtrip import assert_aligned, keys_of

OPTIONS = formats.ReadOptions(cache=False)
TRUST = formats.ReadOptions(cache=False, trust="data")
SKIP = formats.ReadOptions(cache=False, skip_bad_files=True)
LENGTHS = [4, 6, 5, 3, 7]
# Out of order, over two chunk folders that both have a file-000.
SHARDS = [(1, 0, [3]), (0, 0, [1, 0]), (0, 1, [2]), (1, 1, [4])]
MADE = Path(__file__).parents[1] / "data" / "lerobot_v3"
"""A dataset that lerobot 0.4.4 itself recorded: three episodes, two tasks."""


@pytest.fixture(params=["v3.0", "v2.1"])
def root(request, tmp_path: Path) -> Path:
    if request.param == "v3.0":
        return write_v3(tmp_path / "set", SHARDS, LENGTHS)
    return write_v21(tmp_path / "set", LENGTHS)


@pytest.fixture
def v3(tmp_path: Path) -> Path:
    return write_v3(tmp_path / "set", SHARDS, LENGTHS)


def change_info(root: Path, **changes) -> None:
    path = root / "meta/info.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_listed(root: Path, number: int, **changes) -> None:
    rows = read_listed(root)
    rows[number] |= changes
    write_episodes(root, rows)


def refusal(root: Path, options: formats.ReadOptions = OPTIONS) -> DataError:
    with pytest.raises(DataError) as caught:
        formats.read(root, options)
    return caught.value


def test_every_shard_of_every_folder_is_read_and_grouped_by_episode(root):
    assert detect(root) == "lerobot"
    read = formats.read(root, OPTIONS)
    assert read.ids.tolist() == ["0", "1", "2", "3", "4"]
    assert read.lengths.tolist() == LENGTHS
    assert read.ends().tolist() == ["terminal"] * 5
    assert read.columns.observations[:, 0].tolist() == list(range(25))
    assert_aligned(read)
    assert read.metadata["tasks"] == ["push", "lift"]
    assert read.metadata["fps"] == 10
    assert set(read.columns.extras) == {"timestamp", "task_index"}
    assert read.columns.extras["task_index"][:5].tolist() == [0, 0, 0, 0, 1]


def test_a_set_that_lerobot_recorded_is_read(tmp_path):
    read = formats.read(MADE, formats.ReadOptions(cache=False, source_key="task"))
    assert read.lengths.tolist() == [5, 4, 6]
    assert keys_of(read) == [
        "observation.state",
        "observation.environment_state",
    ]
    assert read.columns.observations.shape == (15, 4)
    assert read.sources is not None
    assert read.sources.tolist() == ["push", "lift", "push"]
    assert read.columns.rewards is not None
    assert read.columns.rewards[:5].tolist() == [0, 1, 2, 3, 4]
    assert read.columns.extras["next.success"].sum() == 2
    assert_aligned(read)
    assert not read.problems


def test_sources_come_from_the_list_of_episodes(v3):
    read = formats.read(v3, formats.ReadOptions(cache=False, source_key="operator"))
    assert read.sources is not None
    assert read.sources.tolist() == ["o0", "o1", "o2", "o0", "o1"]
    error = refusal(v3, formats.ReadOptions(cache=False, source_key="nobody"))
    assert error.code == "missing_key"
    assert "operator" in str(error)


def test_shuffled_rows_are_put_in_the_order_of_their_frames(v3):
    path = v3 / "data/chunk-000/file-000.parquet"
    table = pq.read_table(path)
    order = np.random.Generator(np.random.Philox(1)).permutation(table.num_rows)
    pq.write_table(table.take(order), path)
    assert_aligned(formats.read(v3, OPTIONS))


def test_an_episode_split_over_two_files_is_put_together(tmp_path):
    root = write_v3(tmp_path / "set", [(0, 0, [0, 1])], [4, 6])
    whole = pq.read_table(root / "data/chunk-000/file-000.parquet")
    pq.write_table(whole.slice(0, 7), root / "data/chunk-000/file-000.parquet")
    pq.write_table(whole.slice(7), root / "data/chunk-000/file-001.parquet")
    assert refusal(root).field == "data/file_index"
    read = formats.read(root, TRUST)
    assert read.lengths.tolist() == [4, 6]
    assert_aligned(read)


def test_other_keys_can_be_the_observation_and_the_action(v3):
    keys = formats.ReadOptions(
        cache=False,
        observation_keys=("timestamp", "observation.state"),
        action_key="next.reward",
        reward_key="timestamp",
    )
    with pytest.raises(DataError, match="all actions are equal"):
        formats.read(v3, keys)
    keys = formats.ReadOptions(cache=False, observation_keys=("timestamp", "observation.state"))
    read = formats.read(v3, keys)
    assert read.columns.observations.shape == (25, 4)
    assert read.columns.observations[:, 1].tolist() == list(range(25))
    wrong = refusal(v3, formats.ReadOptions(cache=False, observation_keys=("embedding",)))
    assert wrong.code == "missing_key"
    assert "observation.state" in str(wrong)


def test_images_and_words_are_left_out_with_a_notice(tmp_path):
    root = write_v21(tmp_path / "set", [4, 5])
    for file in root.glob("data/*/*.parquet"):
        table = pq.read_table(file)
        words = pa.array(["x"] * table.num_rows)
        image = pa.array([{"bytes": b"PNG", "path": "x"}] * table.num_rows)
        table = table.append_column("note", words).append_column("observation.image", image)
        pq.write_table(table, file)
    document = json.loads((root / "meta/info.json").read_text())
    document["features"]["observation.image"] = {"dtype": "image", "shape": [8, 8, 3]}
    document["features"]["observation.video"] = {"dtype": "video", "shape": [8, 8, 3]}
    change_info(root, features=document["features"])
    read = formats.read(root, OPTIONS)
    told = {(p.code, p.field) for p in read.problems}
    assert told == {
        ("image_left_out", "observation.image"),
        ("image_left_out", "observation.video"),
        ("column_left_out", "note"),
    }


def test_a_set_without_a_state_observes_its_other_vectors(tmp_path):
    root = write_v21(tmp_path / "set", [4, 5])
    document = json.loads((root / "meta/info.json").read_text())
    features = document["features"]
    features["observations.effort"] = features.pop("observation.state")
    features["actions"] = features.pop("action")
    change_info(root, features=features)
    names = {"observation.state": "observations.effort", "action": "actions"}
    for file in root.glob("data/*/*.parquet"):
        table = pq.read_table(file)
        table = table.rename_columns([names.get(n, n) for n in table.column_names])
        pq.write_table(table, file)
    read = formats.read(root, OPTIONS)
    assert keys_of(read) == ["observations.effort"]
    assert read.metadata["action_key"] == "actions"
    assert_aligned(read)
    assert "observation_keys" in {p.code for p in read.problems}


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("total_frames", {"total_frames": 24}),
        ("total_frames", {"total_frames": 26}),
        ("total_frames", {"total_frames": None}),
        ("total_episodes", {"total_episodes": 6}),
        ("total_episodes", {"total_episodes": 4}),
    ],
)
def test_totals_that_lie_are_refused_or_rebuilt(root, field, changes):
    change_info(root, **changes)
    error = refusal(root)
    assert (error.code, error.field) == ("meta_conflict", field)
    assert "--trust data" in str(error)
    read = formats.read(root, TRUST)
    assert read.lengths.tolist() == LENGTHS
    (problem,) = [p for p in read.problems if p.code == "meta_conflict"]
    assert (problem.outcome, problem.field) == ("repaired", field)


@pytest.mark.parametrize(
    ("field", "changes"),
    [
        ("length", {"length": 8}),
        ("data/file_index", {"data/file_index": 0}),
        ("data/file_index", {"data/chunk_index": 1}),
        ("dataset_from_index", {"dataset_from_index": 3}),
        ("dataset_to_index", {"dataset_to_index": 30}),
    ],
)
def test_stale_entries_of_the_episode_list_are_refused_or_rebuilt(v3, field, changes):
    change_listed(v3, 2, **changes)
    error = refusal(v3)
    assert (error.code, error.field, error.index) == ("meta_conflict", field, 2)
    read = formats.read(v3, TRUST)
    assert read.lengths.tolist() == LENGTHS
    assert_aligned(read)
    assert [p.field for p in read.problems if p.code == "meta_conflict"] == [field]


def test_a_list_that_names_an_episode_twice_or_not_at_all_is_refused(v3):
    rows = read_listed(v3)
    write_episodes(v3, [*rows[:-1], rows[0]])
    error = refusal(v3)
    assert (error.code, error.index) == ("meta_conflict", 0)
    write_episodes(v3, rows[:-1])
    error = refusal(v3)
    assert (error.code, error.field, error.index) == ("meta_conflict", "length", 4)
    assert formats.read(v3, TRUST).lengths.tolist() == LENGTHS


def test_a_set_without_its_list_of_episodes_is_refused_or_rebuilt(root):
    shutil.rmtree(root / "meta/episodes", ignore_errors=True)
    (root / "meta/episodes.jsonl").unlink(missing_ok=True)
    assert refusal(root).code == "meta_conflict"
    read = formats.read(root, TRUST)
    assert read.lengths.tolist() == LENGTHS
    assert_aligned(read)


def test_missing_files_are_listed(root):
    gone = sorted(root.glob("data/chunk-001/*.parquet"))[-1]
    gone.unlink()
    error = refusal(root)
    assert (error.code, error.index) == ("missing_file", 4)
    assert gone.relative_to(root).as_posix() in str(error)
    for options in (SKIP, TRUST):
        read = formats.read(root, options)
        assert read.lengths.tolist() == LENGTHS[:-1]
        assert "missing_file" in {p.code for p in read.problems}


@pytest.mark.parametrize("damage", ["footer", "middle", "empty", "junk"])
def test_an_unreadable_file_names_the_episodes_it_should_hold(root, damage):
    path = sorted(root.glob("data/chunk-000/*.parquet"))[0]
    whole = path.read_bytes()
    path.write_bytes(
        {
            "footer": whole[:-100],
            "middle": whole[:-8] + b"\xff\xff\xff\x7fPAR1",
            "empty": b"",
            "junk": b"hello",
        }[damage]
    )
    error = refusal(root)
    assert error.code in ("truncated", "bad_file")
    assert path.name in str(error)
    assert "should hold episodes 0" in str(error)
    read = formats.read(root, SKIP)
    first = 2 if (root / "meta/tasks.parquet").exists() else 1
    assert read.ids.tolist() == ["0", "1", "2", "3", "4"][first:]


def test_a_file_copied_in_twice_is_refused(v3):
    shutil.copy(v3 / "data/chunk-000/file-001.parquet", v3 / "data/chunk-000/file-007.parquet")
    error = refusal(v3)
    assert (error.code, error.index) == ("duplicate_frames", (2, 0))
    assert refusal(v3, TRUST).code == "duplicate_frames"


def rewrite(path: Path, table: pa.Table, name: str, values) -> None:
    place = table.column_names.index(name)
    pq.write_table(table.set_column(place, name, pa.array(values)), path)


def test_gaps_in_the_running_numbers_are_refused_or_repaired(v3):
    path = v3 / "data/chunk-001/file-001.parquet"
    table = pq.read_table(path)
    rewrite(path, table, "frame_index", [0, 1, 2, 5, 6, 7, 8])
    error = refusal(v3)
    assert (error.code, error.field, error.index) == ("meta_conflict", "frame_index", 4)
    assert_aligned(formats.read(v3, TRUST))
    rewrite(path, table, "index", [18, 19, 20, 22, 23, 24, 25])
    error = refusal(v3)
    assert (error.code, error.index) == ("meta_conflict", 4)


@pytest.mark.parametrize(
    ("name", "numbers", "count"),
    [
        ("frame_index", [1, 2, 3, 4, 5, 6, 7], 7),
        ("frame_index", [-1, 1, 2, 3, 4, 5, 6], 1),
        ("frame_index", [0, 1, 2, 3, 4, 5, 7], 1),
        ("index", [18, 20, 19, 21, 22, 23, 24], 3),
        ("index", [18, 19, 19, 21, 22, 23, 24], 2),
        ("index", [18.0, 19.0, 19.5, 21.0, 22.0, 23.0, 24.0], 2),
    ],
)
def test_every_running_number_counts_by_one(v3, name, numbers, count):
    path = v3 / "data/chunk-001/file-001.parquet"
    rewrite(path, pq.read_table(path), name, numbers)
    error = refusal(v3)
    found = (error.code, error.field, error.index, error.count)
    assert found == ("meta_conflict", name, 4, count)


def test_an_empty_episode_is_dropped_and_the_others_keep_their_numbers(tmp_path):
    root = write_v3(tmp_path / "set", [(0, 0, [0, 2])], [4, 0, 6])
    read = formats.read(root, OPTIONS)
    assert read.ids.tolist() == ["0", "2"]
    assert "zero_length" in {p.code for p in read.problems}


def test_a_kind_that_info_does_not_declare_is_refused(v3):
    document = json.loads((v3 / "meta/info.json").read_text())
    document["features"]["action"]["dtype"] = "int64"
    change_info(v3, features=document["features"])
    error = refusal(v3)
    assert (error.code, error.field) == ("meta_conflict", "action")
    assert formats.read(v3, TRUST).action_size == 2


def test_a_width_that_info_does_not_declare_is_refused(v3):
    document = json.loads((v3 / "meta/info.json").read_text())
    document["features"]["action"]["shape"] = [7]
    change_info(v3, features=document["features"])
    error = refusal(v3)
    assert (error.code, error.field) == ("meta_conflict", "action")
    assert formats.read(v3, TRUST).action_size == 2


def test_missing_values_and_ragged_vectors_are_refused(v3):
    path = v3 / "data/chunk-001/file-000.parquet"
    table = pq.read_table(path)
    rewrite(path, table, "action", [[1.0, 2.0], [3.0], [4.0, 5.0]])
    assert refusal(v3).code == "bad_shape"
    rewrite(path, table, "action", [[1.0, None], [3.0, 1.0], [4.0, 5.0]])
    assert refusal(v3).code == "nulls"
    rewrite(path, table, "action", [[1.0, 2.0], None, [4.0, 5.0]])
    assert refusal(v3).code == "nulls"


def test_a_column_that_one_file_lacks_is_refused(v3):
    path = v3 / "data/chunk-001/file-000.parquet"
    pq.write_table(pq.read_table(path).drop_columns(["next.reward"]), path)
    error = refusal(v3)
    assert (error.code, error.field) == ("missing_key", "next.reward")


@pytest.mark.parametrize(
    "template",
    [
        "/etc/{chunk_index:03d}.parquet",
        "../{chunk_index:03d}.parquet",
        "data/../../{chunk_index:03d}",
        "data/{chunk_index.__class__}",
        "data/{chunk_index!r}",
        "data/{0}",
        "data/{home}/x.parquet",
        "data/{chunk_index:>9999999999d}",
        "data/**/*.parquet",
    ],
)
def test_a_path_template_can_only_place_numbers(v3, template):
    change_info(v3, data_path=template)
    error = refusal(v3)
    assert (error.code, error.field) == ("bad_template", "data_path")


def test_a_template_is_filled_like_lerobot_fills_it():
    template = "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
    values = {"video_key": "observation.images.top", "chunk_index": 2, "file_index": 1234}
    assert fill(template, values) == template.format(**values)
    with pytest.raises(DataError):
        fill("videos/{video_key}/x", {"video_key": "../../etc"})


def test_a_link_out_of_the_dataset_is_refused(v3, tmp_path):
    path = v3 / "data/chunk-001/file-000.parquet"
    path.rename(tmp_path / "elsewhere.parquet")
    path.symlink_to(tmp_path / "elsewhere.parquet")
    assert refusal(v3).code == "outside"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"codebase_version": "v1.6"}, "unknown_version"),
        ({"features": None}, "bad_metadata"),
        ({"features": {"a": 3}}, "bad_metadata"),
    ],
)
def test_an_info_file_that_says_nothing_is_refused(v3, changes, code):
    change_info(v3, **changes)
    assert refusal(v3).code == code


def test_a_hundred_small_files_of_the_old_layout(tmp_path):
    root = write_v21(tmp_path / "set", [3] * 100)
    read = formats.read(root, OPTIONS)
    assert len(read) == 100
    assert_aligned(read)


def test_an_old_set_whose_file_holds_another_episode_is_refused(tmp_path):
    root = write_v21(tmp_path / "set", [4, 4])
    one, other = (root / f"data/chunk-000/episode_00000{n}.parquet" for n in (0, 1))
    pq.write_table(episode(1, 4, 4), one)
    pq.write_table(episode(0, 0, 4), other)
    error = refusal(root)
    assert (error.code, error.field) == ("meta_conflict", "data/file_index")
    assert_aligned(formats.read(root, TRUST))


def test_a_number_that_is_no_place_in_a_path_names_the_dataset(tmp_path):
    there = Info(tmp_path, "v2.1", {}, {}, "data/chunk-{episode_chunk:03d}/x.parquet")
    with pytest.raises(DataError, match=re.escape(str(tmp_path))):
        there.data_file(episode_chunk=-1)
