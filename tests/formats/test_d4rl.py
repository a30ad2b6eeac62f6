from pathlib import Path

import h5py
import numpy as np
import pytest

from pubc import formats
from pubc.errors import DataError
from pubc.formats import ReadOptions
from tests.formats.roundtrip import assert_same, assert_same_bits

ROWS = 23
TERMINAL, TIMEOUT = (6,), (11, 19)


def make(path: Path, **changes: object) -> Path:
    """Trajectories of 7, 5, 8 and an unmarked tail of 3 steps."""
    steps = np.arange(ROWS)
    content: dict[str, object] = {
        "observations": np.stack([steps, steps / 3], 1).astype(np.float32),
        "actions": (-steps[:, None] / 7).astype(np.float32),
        "rewards": (steps * 0.5).astype(np.float32),
        "terminals": np.isin(steps, TERMINAL),
        "timeouts": np.isin(steps, TIMEOUT),
        "infos/qpos": np.stack([steps] * 3, 1) * 0.1,
        "infos/action_log_probs": steps * 1.0,
        "metadata/algorithm": "SAC",
        "metadata/iteration": 7,
        "metadata/policy/fc0/weight": np.zeros((64, 64)),
    }
    with h5py.File(path, "w") as file:
        for name, value in (content | changes).items():
            if isinstance(value, np.ndarray):
                file.create_dataset(name, data=value, compression="gzip")
            elif value is not None:
                file[name] = value
    return path


def test_trajectories_end_at_terminals_or_timeouts_and_the_tail_is_kept(tmp_path: Path):
    mine = formats.read(make(tmp_path / "a.hdf5"))
    assert mine.lengths.tolist() == [7, 5, 8, 3]
    assert mine.ends().tolist() == ["terminal", "timeout", "timeout", "unmarked"]
    assert [t.steps.observations[0, 0] for t in mine] == [0, 7, 12, 20]
    repaired = [p for p in mine.problems if p.outcome == "repaired"]
    assert [(p.code, p.count, p.first) for p in repaired] == [("unmarked_tail", 3, 20)]
    dropped = formats.read(tmp_path / "a.hdf5", ReadOptions(trailing="drop"))
    assert dropped.lengths.tolist() == [7, 5, 8]
    with pytest.raises(DataError) as caught:
        formats.read(tmp_path / "a.hdf5", ReadOptions(trailing="error"))
    assert (caught.value.code, caught.value.index) == ("unmarked_tail", 20)


def test_columns_of_shape_n_1_are_vectors(tmp_path: Path):
    steps = np.arange(ROWS)
    path = make(
        tmp_path / "a.hdf5",
        rewards=steps[:, None] * 0.5,
        terminals=np.isin(steps, TERMINAL)[:, None],
        timeouts=np.isin(steps, TIMEOUT).astype(np.float64)[:, None],
    )
    mine = formats.read(path)
    assert mine.lengths.tolist() == [7, 5, 8, 3]
    assert mine.columns.rewards.shape == (ROWS,)


def test_extra_keys_and_simple_metadata_are_kept_and_the_rest_is_said(tmp_path: Path):
    mine = formats.read(make(tmp_path / "a.hdf5", odd=np.zeros(5)))
    assert set(mine.columns.extras) == {"infos/qpos", "infos/action_log_probs"}
    assert mine[1].steps.extras["infos/action_log_probs"].tolist() == [7, 8, 9, 10, 11]
    assert dict(mine.metadata) == {"algorithm": "SAC", "iteration": 7}
    noticed = {p.field for p in mine.problems if p.code.endswith("left_out")}
    assert noticed == {"odd", "metadata/policy/fc0/weight"}


def test_next_observations_give_the_final_ones(tmp_path: Path):
    steps = np.arange(ROWS)
    following = np.stack([steps + 1, (steps + 1) / 3], 1).astype(np.float32)
    mine = formats.read(make(tmp_path / "a.hdf5", next_observations=following))
    assert mine.has_final.all()
    assert [t.final_observation[0] for t in mine] == [7, 12, 20, 23]
    assert "next_observations" in mine.columns.extras


def test_without_timeouts_the_user_is_warned_and_can_give_the_length(tmp_path: Path):
    path = make(tmp_path / "a.hdf5", timeouts=None)
    mine = formats.read(path)
    assert mine.lengths.tolist() == [7, 16]
    assert "no_timeouts" in [p.code for p in mine.problems]
    fixed = formats.read(path, ReadOptions(episode_length=5))
    assert fixed.lengths.tolist() == [5, 5, 5, 5, 3]


def test_without_any_mark_the_file_is_refused_with_the_flag_that_helps(tmp_path: Path):
    path = make(tmp_path / "a.hdf5", timeouts=None, terminals=None)
    with pytest.raises(DataError, match="--episode-length") as caught:
        formats.read(path, ReadOptions(format="d4rl"))
    assert caught.value.code == "no_ends"
    assert len(formats.read(path, ReadOptions(format="d4rl", episode_length=23))) == 1


def test_keys_can_be_named(tmp_path: Path):
    path = make(tmp_path / "a.hdf5")
    options = ReadOptions(
        observation_keys=("infos/qpos", "observations"),
        action_key="infos/action_log_probs",
        reward_key="infos/action_log_probs",
    )
    mine = formats.read(path, options)
    assert mine.observation_size == 5
    assert mine.action_size == 1
    assert mine[1].steps.rewards.tolist() == [7, 8, 9, 10, 11]
    for wrong in (
        ReadOptions(observation_keys=("nothing",)),
        ReadOptions(action_key="nothing"),
        ReadOptions(reward_key="nothing"),
    ):
        with pytest.raises(DataError, match="The file holds: actions") as caught:
            formats.read(path, wrong)
        assert (caught.value.code, caught.value.field) == ("missing_key", "nothing")


def test_final_observations_go_with_the_observation_they_were_written_for(tmp_path: Path):
    steps = np.arange(ROWS)
    following = np.stack([steps + 1, (steps + 1) / 3], 1).astype(np.float32)
    before = formats.read(make(tmp_path / "a.hdf5", next_observations=following))
    formats.save(tmp_path / "b.hdf5", before)
    assert formats.read(tmp_path / "b.hdf5").has_final.all()
    other = formats.read(tmp_path / "b.hdf5", ReadOptions(observation_keys=("infos/qpos",)))
    assert other.observation_size == 3
    assert other.final_observations is None
    assert other.ids.tolist() == before.ids.tolist()


@pytest.mark.parametrize("first", [True, False])
def test_a_subset_is_bit_equal_to_the_rows_of_its_source(tmp_path: Path, first: bool):
    path = make(tmp_path / "a.hdf5")
    before = formats.read(path)
    kept = np.array([3, 1]) if first else np.array([0, 2])
    target = tmp_path / "b.hdf5"
    formats.save_subset(path, target, before, kept, ReadOptions())
    rows = before[kept].rows()
    with h5py.File(path, "r") as old, h5py.File(target, "r") as new:
        for name in ("observations", "actions", "terminals", "infos/qpos"):
            assert_same_bits(old[name][:][rows], new[name][:], name)
            assert new[name].compression == "gzip"
        assert_same_bits(
            old["metadata/policy/fc0/weight"][:], new["metadata/policy/fc0/weight"][:], "w"
        )
    after = formats.read(target)
    assert_same(before[kept], after)
    formats.save_subset(target, tmp_path / "c.hdf5", after, np.array([1]), ReadOptions())
    assert_same(before[kept[[1]]], formats.read(tmp_path / "c.hdf5"))


def test_a_written_file_is_what_d4rl_expects(tmp_path: Path):
    before = formats.read(make(tmp_path / "a.hdf5"))
    formats.save(tmp_path / "b.hdf5", before)
    with h5py.File(tmp_path / "b.hdf5", "r") as file:
        for name in ("observations", "actions", "rewards", "terminals", "timeouts"):
            assert len(file[name]) == ROWS
            assert file[name].compression == "gzip"
        assert file["rewards"].ndim == file["terminals"].ndim == 1
        assert file["terminals"].dtype == file["timeouts"].dtype == bool
        assert file["infos/qpos"].shape == (ROWS, 3)


def test_a_group_that_no_longer_fits_the_file_is_passed_over_and_said(tmp_path: Path):
    path = tmp_path / "b.hdf5"
    formats.save(path, formats.read(make(tmp_path / "a.hdf5")))
    with h5py.File(path, "a") as file:
        for name in ("observations", "actions", "rewards", "terminals", "timeouts"):
            values = file[name][:12]
            del file[name]
            file[name] = values
    mine = formats.read(path)
    assert mine.lengths.tolist() == [7, 5]
    assert "stale_group" in [p.code for p in mine.problems]


@pytest.mark.parametrize("words", [b"{", b"[1]", b'{"ids": 3}', b"\xff\xfe"])
def test_a_damaged_group_is_passed_over_and_said(tmp_path: Path, words: bytes):
    path = tmp_path / "b.hdf5"
    formats.save(path, formats.read(make(tmp_path / "a.hdf5")))
    with h5py.File(path, "a") as file:
        del file["pubc/about"]
        file["pubc/about"] = np.frombuffer(words, np.uint8)
    assert "stale_group" in [p.code for p in formats.read(path).problems]
