"""Checks that need more than one fault in a file to be seen."""

from pathlib import Path

import numpy as np
import pytest

import pubc
from pubc.errors import DataError
from pubc.formats.core.assemble import Raw, assemble
from pubc.formats.core.checks import Ranges
from pubc.formats.core.findings import Findings, plural
from pubc.formats.core.motion import check_motion, likely_length
from pubc.formats.core.options import ReadOptions
from pubc.storage import read_manifest, seal
from pubc.storage.manifest import sidecar
from pubc.trajectory import Columns, TrajectorySet
from tests.reliability.samples import LENGTHS, ROWS, flat


def build(bounds=None, options: ReadOptions | None = None, **changes) -> TrajectorySet:
    arrays = flat() | changes
    raw = Raw(*(arrays[n] for n in ("observations", "actions", "rewards", "terminals", "timeouts")))
    raw.action_bounds = bounds
    for name in ("metadata", "lengths"):
        if name in changes:
            setattr(raw, name, changes[name])
    return assemble(raw, options or ReadOptions(), Findings(Path("x")))


def codes(trajectories: TrajectorySet) -> list[str]:
    return [problem.code for problem in trajectories.problems]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i4", "i8", "u1", "u2", "?"])
def test_every_plain_number_is_accepted_in_its_own_dtype(dtype: str):
    rng = np.random.Generator(np.random.Philox(0))
    actions = rng.integers(0, 2, (ROWS, 2)).astype(dtype)
    actions[0], actions[1] = 0, 1
    made = build(actions=actions)
    assert made.columns.actions.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(made.columns.actions, actions)


@pytest.mark.parametrize("dtype", ["c8", "O", "U3", "S3", "M8[s]"])
def test_everything_else_is_refused(dtype: str):
    with pytest.raises(DataError) as caught:
        build(actions=np.zeros((ROWS, 2)).astype(dtype))
    assert (caught.value.code, caught.value.field) == ("bad_dtype", "actions")


def test_the_callers_arrays_are_never_changed():
    arrays = flat()
    arrays["timeouts"][4] = True
    before = {name: values.copy() for name, values in arrays.items()}
    build(**arrays)
    for name, values in arrays.items():
        np.testing.assert_array_equal(values, before[name])
        assert values.flags.writeable


def test_actions_outside_known_bounds_are_counted_and_kept():
    actions = flat()["actions"]
    actions[[3, 9]] = 5.0
    made = build((np.array([-1.0, -1.0]), np.array([1.0, 1.0])), actions=actions)
    problem = next(p for p in made.problems if p.code == "action_bounds")
    assert (problem.outcome, problem.count, problem.first) == ("warned", 2, 3)
    assert made.columns.actions.max() == 5.0
    assert codes(build((np.array(-1.0), np.array(1.0)))) == []
    assert codes(build((np.array(-np.inf), np.array(np.inf)), actions=actions)) == []


def test_all_bad_places_are_counted_and_the_first_few_named():
    observations = flat()["observations"]
    observations[[0, 6, 14], 1] = np.nan
    with pytest.raises(DataError, match="3 trajectories of 3 with NaN") as caught:
        build(observations=observations, options=ReadOptions(nonfinite="drop-episode"))
    assert (caught.value.index, caught.value.count) == ((0, 0, 1), 3)


@pytest.mark.parametrize("width", [1, 3, 1000, 1024, 1500])
@pytest.mark.parametrize("rows", [1, 2, 1023, 2049])
def test_ranges_hold_every_value_however_rows_are_folded(width: int, rows: int):
    rng = np.random.Generator(np.random.Philox([width, rows]))
    values = rng.normal(size=(rows, width)).astype(np.float32)
    seen = Ranges.start(width)
    for start in range(0, rows, 700):
        seen.add(values[start : start + 700])
    np.testing.assert_array_equal(seen.low, values.min(axis=0))
    np.testing.assert_array_equal(seen.high, values.max(axis=0))
    for row, wrong in ((0, np.nan), (rows // 2, np.inf), (rows - 1, -np.inf)):
        spoiled = values.copy()
        spoiled[row, width - 1] = wrong
        seen = Ranges.start(width)
        seen.add(spoiled)
        assert not seen.finite


@pytest.mark.parametrize("changed", [None, "length", "first", "last", "middle"])
def test_only_trajectories_that_repeat_another_whole_are_duplicates(changed: str | None):
    rng = np.random.Generator(np.random.Philox(3))
    observations, actions = rng.normal(size=(30, 3)), rng.normal(size=(30, 2))
    observations[10:20], actions[10:20] = observations[:10], actions[:10]
    lengths = [10, 10, 10]
    if changed == "length":
        lengths = [10, 9, 11]
    elif changed in ("first", "middle"):
        observations[10 if changed == "first" else 15, 2] += 1
    elif changed == "last":
        actions[19, 1] += 1
    flags = np.zeros(30, bool)
    raw = Raw(observations, actions, None, flags, flags, lengths=np.array(lengths))
    problems = assemble(raw, ReadOptions(), Findings(Path("x"))).problems
    found = [(p.first, p.count) for p in problems if p.code == "duplicates"]
    assert found == ([(1, 1)] if changed is None else [])


def test_metadata_becomes_plain_json():
    made = build(metadata={"a": float("nan"), "b": np.float32(2), "c": Path("/x"), "d": (1, 2)})
    assert made.metadata == {"a": "NaN", "b": "2.0", "c": "/x", "d": [1, 2]}


def test_many_alike_trajectories_are_compared_in_a_breath():
    count = 5000
    observations = np.zeros((count * 2, 2), np.float32)
    observations[1::2, 0] = np.arange(count)  # alike at their start and in their last action
    actions = np.tile(np.float32([[0.0], [1.0]]), (count, 1))
    ends = np.tile([False, True], count)
    made = build(
        observations=observations,
        actions=actions,
        rewards=np.zeros(count * 2),
        terminals=ends,
        timeouts=~ends & ends,
    )
    assert "duplicates" not in codes(made)


def walk(lengths: list[int], seed: int = 0) -> TrajectorySet:
    """Smooth motions, each from a new start."""
    rng = np.random.Generator(np.random.Philox(seed))
    parts = [
        rng.normal(size=(1, 6)) * 3 + np.cumsum(rng.normal(size=(n, 6)) * 0.05, axis=0)
        for n in lengths
    ]
    observations = np.concatenate(parts).astype(np.float32)
    rows = len(observations)
    flags = np.zeros(rows, bool)
    columns = Columns(observations, observations[:, :2], None, flags, flags)
    return TrajectorySet.from_flat(columns, lengths)


def motion_codes(trajectories: TrajectorySet) -> list[str]:
    findings = Findings(Path("x"))
    check_motion(trajectories, findings)
    return [problem.code for problem in findings.problems]


def test_ends_in_the_right_place_are_not_complained_about():
    assert motion_codes(walk([100] * 20)) == []


def test_ends_in_the_wrong_place_are_seen_from_both_sides():
    right = walk([100] * 20)
    wrong = TrajectorySet.from_flat(right.columns, [70] * 28 + [40])
    assert motion_codes(wrong) == ["jump_inside", "smooth_ends"]


def test_noise_says_nothing_about_where_it_ends():
    rng = np.random.Generator(np.random.Philox(1))
    noise = rng.normal(size=(2000, 6)).astype(np.float32)
    flags = np.zeros(2000, bool)
    columns = Columns(noise, noise[:, :2], None, flags, flags)
    assert motion_codes(TrajectorySet.from_flat(columns, [100] * 20)) == []


def test_trajectories_longer_than_the_metadata_allows_are_told():
    made = build(metadata={"max_episode_steps": 5})
    findings = Findings(Path("x"))
    check_motion(made, findings)
    assert [(p.code, p.count, p.first) for p in findings.problems] == [("beyond_limit", 1, 2)]


def test_a_file_without_ends_gets_a_hint_where_it_jumps_evenly():
    flat_rows = walk([80] * 12).columns
    assert likely_length(flat_rows.observations) == 80
    assert likely_length(walk([70, 90, 80, 85, 60]).columns.observations) is None
    raw = Raw(flat_rows.observations, flat_rows.actions, None, None, None)
    with pytest.raises(DataError, match="jump every 80 steps"):
        assemble(raw, ReadOptions(), Findings(Path("x")))
    cut = assemble(raw, ReadOptions(episode_length=80), Findings(Path("x")))
    assert cut.lengths.tolist() == [80] * 12


def test_lengths_are_counted_in_words():
    assert [plural(n, "trajectory") for n in (1, 2, 1000)] == [
        "1 trajectory",
        "2 trajectories",
        "1,000 trajectories",
    ]
    assert sum(LENGTHS) == ROWS


@pytest.mark.parametrize("field", ["ids", "sources"])
@pytest.mark.parametrize("suffix", [".npz", ".store"])
def test_half_a_character_in_a_name_is_refused_at_the_door(tmp_path, capsys, field, suffix):
    from tests.cli.calling import run
    from tests.pu.piles import pile

    mixed = pile([3, 3], steps=20, states=2)
    path = tmp_path / f"set{suffix}"
    pubc.save(path, mixed)
    words = np.array(["fine", "half \ud800", "c", "d", "e", "f"])
    if suffix == ".npz":
        with np.load(path) as archive:
            arrays = {**archive, field: words}
        np.savez(path, **arrays)
        sidecar(path).unlink()
    else:
        np.save(path / f"{field}.npy", words)
        about = {k: v for k, v in read_manifest(path).items() if k not in ("kind", "files", "seal")}
        seal(path, kind="store", about=about)
    for command in (("inspect",), ("filter", "--out", tmp_path / "run", "--seed-top", "0.3")):
        code, _, err = run(capsys, command[0], path, *command[1:], "--isolate", "off")
        assert code == 3, err
        assert f"{field}: 'half \\ud800' at position 1 holds half a character" in err
    assert not (tmp_path / "run").exists()
