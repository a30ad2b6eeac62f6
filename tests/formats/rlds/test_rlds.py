import numpy as np
import pytest

from pubc import formats
from pubc.errors import DataError
from pubc.formats.opening.detect import detect
from pubc.formats.rlds.tfrecords import parse_example, read_records
from tests.formats.rlds_sets import ACTION, SCALAR, episode, example, features, framed, write_rlds
from tests.formats.roundtrip import assert_aligned, keys_of

OPTIONS = formats.ReadOptions(cache=False)


def shards() -> list[list[dict]]:
    return [
        [episode(0, 4, terminal=True), episode(5, 6, terminal=False, operator="ben")],
        [episode(12, 3, terminal=True)],
    ]


def shard(path, number: int = 0):
    return sorted(path.glob("*.tfrecord*"))[number]


def test_a_dataset_is_read_from_all_shards_and_aligned(tmp_path):
    path = write_rlds(tmp_path / "1.0.0", shards())
    assert detect(path) == "rlds"
    read = formats.read(path, OPTIONS)
    assert read.lengths.tolist() == [4, 6, 3]
    assert read.ids.tolist() == ["train/0", "train/1", "train/2"]
    assert read.ends().tolist() == ["terminal", "timeout", "terminal"]
    assert read.columns.observations.shape == (13, 4)
    assert read.columns.observations.dtype == np.float32
    assert keys_of(read) == ["state", "gripper"]
    assert read.columns.rewards is not None
    assert read.columns.rewards.tolist()[:4] == [0, 1, 2, 3]
    assert_aligned(read)
    left_out = {p.field for p in read.problems if p.code == "image_left_out"}
    assert left_out == {"steps/observation/image", "steps/language_instruction"}


def test_the_last_step_can_become_the_final_observation(tmp_path):
    path = write_rlds(tmp_path / "1.0.0", shards())
    read = formats.read(path, formats.ReadOptions(cache=False, last_step="drop"))
    assert read.lengths.tolist() == [3, 5, 2]
    assert read.ends().tolist() == ["terminal", "timeout", "terminal"]
    assert [t.final_observation[0] for t in read] == [3, 10, 14]
    assert_aligned(read)


def test_nested_actions_are_concatenated_in_the_order_of_the_file(tmp_path):
    about = features({"featuresDict": {"features": {"world": ACTION, "close": SCALAR}}})
    one = episode(0, 5, terminal=True)
    one["steps/action/world"] = one.pop("steps/action")
    one["steps/action/close"] = np.ones(5, dtype=np.float32)
    read = formats.read(write_rlds(tmp_path / "1.0.0", [[one]], about), OPTIONS)
    assert keys_of(read, "action_parts") == ["action/world", "action/close"]
    assert read.columns.actions.shape == (5, 3)
    assert read.columns.actions[:, 2].tolist() == [1] * 5
    assert_aligned(read)


def test_the_operator_can_be_the_source(tmp_path):
    path = write_rlds(tmp_path / "1.0.0", shards())
    read = formats.read(path, formats.ReadOptions(cache=False, source_key="operator"))
    assert read.sources is not None
    assert read.sources.tolist() == ["anna", "ben", "anna"]


def test_named_observations_come_in_the_named_order(tmp_path):
    path = write_rlds(tmp_path / "1.0.0", shards())
    keys = formats.ReadOptions(cache=False, observation_keys=("gripper", "state"))
    read = formats.read(path, keys)
    assert read.columns.observations[:, 1].tolist() == [0, 1, 2, 3, *range(5, 11), 12, 13, 14]
    with pytest.raises(DataError, match="steps/nonsense: no vector"):
        formats.read(path, formats.ReadOptions(cache=False, observation_keys=("nonsense",)))


def test_negative_and_large_integers_survive(tmp_path):
    values = np.array([0, 1, -1, 2**62, -(2**63), 300], dtype=np.int64)
    (tmp_path / "x").write_bytes(framed([example({"n": values})]))
    (record,) = read_records(tmp_path / "x")
    assert parse_example(record)["n"].numbers().tolist() == values.tolist()


def test_a_missing_shard_is_listed(tmp_path):
    path = write_rlds(tmp_path / "1.0.0", shards())
    shard(path, 1).unlink()
    with pytest.raises(DataError, match="00001-of-00002") as caught:
        formats.read(path, OPTIONS)
    assert caught.value.code == "missing_file"
    read = formats.read(path, formats.ReadOptions(cache=False, skip_bad_files=True))
    assert read.lengths.tolist() == [4, 6]
    assert "missing_file" in {p.code for p in read.problems}


@pytest.mark.parametrize("cut", [3, 14, 200, -1])
def test_a_file_that_breaks_off_is_refused(tmp_path, cut):
    path = write_rlds(tmp_path / "1.0.0", shards())
    whole = shard(path, 1).read_bytes()
    shard(path, 1).write_bytes(whole[:cut])
    with pytest.raises(DataError, match="record 0 breaks off") as caught:
        formats.read(path, OPTIONS)
    assert caught.value.code == "truncated"
    assert caught.value.index == 0
    read = formats.read(path, formats.ReadOptions(cache=False, skip_bad_files=True))
    assert read.lengths.tolist() == [4, 6]


def test_every_flipped_bit_is_found_by_the_checksums(tmp_path):
    path = write_rlds(tmp_path / "1.0.0", [[episode(0, 4, terminal=True)]])
    whole = shard(path).read_bytes()
    rng = np.random.Generator(np.random.Philox(5))
    for place in rng.integers(0, len(whole), 60):
        data = bytearray(whole)
        data[place] ^= 1 << int(rng.integers(8))
        shard(path).write_bytes(data)
        with pytest.raises(DataError) as caught:
            formats.read(path, OPTIONS)
        assert caught.value.code in ("truncated", "checksum")


def test_a_record_that_is_no_example_is_refused(tmp_path):
    path = write_rlds(tmp_path / "1.0.0", [[episode(0, 4, terminal=True)]])
    for junk in (b"\x0a\xff\xff\xff\xff\x0f", b"\x0f", b"\xff" * 20, b""):
        shard(path).write_bytes(framed([junk]))
        with pytest.raises(DataError) as caught:
            formats.read(path, OPTIONS)
        assert caught.value.code in ("bad_file", "missing_key")


def test_records_that_disagree_with_the_metadata_are_refused(tmp_path):
    path = write_rlds(tmp_path / "1.0.0", shards())
    records = [example(columns) for columns in shards()[0][:1]]
    shard(path).write_bytes(framed(records))
    with pytest.raises(DataError, match=r"dataset_info.json says 2 records .* there are 1"):
        formats.read(path, OPTIONS)
    read = formats.read(path, formats.ReadOptions(cache=False, trust="data"))
    assert read.lengths.tolist() == [4, 3]


@pytest.mark.parametrize(
    ("name", "values", "code"),
    [
        ("steps/action", np.zeros(7, dtype=np.float32), "bad_shape"),
        ("steps/action", np.zeros((3, 2), dtype=np.float32), "unequal_lengths"),
        ("steps/is_first", np.array([1, 0, 1, 0]), "meta_conflict"),
        ("steps/is_last", np.array([0, 1, 0, 1]), "meta_conflict"),
        ("steps/is_terminal", np.array([0, 0, 0, 2]), "not_boolean"),
        ("steps/reward", None, "missing_key"),
    ],
)
def test_faults_in_a_record_are_refused(tmp_path, name, values, code):
    one = episode(0, 4, terminal=True)
    if values is None:
        del one[name]
    else:
        one[name] = values
    with pytest.raises(DataError) as caught:
        formats.read(write_rlds(tmp_path / "1.0.0", [[one]]), OPTIONS)
    assert caught.value.code == code


def test_a_features_file_without_steps_is_refused(tmp_path):
    about = {"featuresDict": {"features": {"image": {"image": {}}}}}
    with pytest.raises(DataError, match="no steps"):
        formats.read(write_rlds(tmp_path / "1.0.0", shards(), about), OPTIONS)
