"""One property for every format that is written: what comes back is what went in.

A format joins by one line in CASES. The first observation dimension counts the steps of the
whole set and the first action dimension is a function of it, so a shift by one row, a
swapped trajectory or a final observation in the wrong place cannot go unseen.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from pubc import formats
from pubc.formats.opening.detect import detect
from pubc.trajectory import Columns, TrajectorySet

DTYPES = ("f2", "f4", "f8", "i4", "i8")
ENDS = ("terminal", "timeout", "unmarked", "both")
METADATA = (
    {},
    {"robot": "arm", "rate": 50, "nested": {"a": [1, 2.5, None, True], "ü": "ß"}},
)
IDS = ("0", "17", "demo_3", "episode 9", "größe", "a/b", "x.y", "-1")


@dataclass(frozen=True)
class Case:
    """How a format takes part in the property."""

    file: str
    """Name of the file or folder to write."""
    extras: tuple[str, ...] = ("speed", "infos/qpos", "camera.depth", "flag")
    """Names to give to extra columns, in the order they are drawn."""
    extra_shapes: tuple[tuple[int, ...], ...] = ((), (1,), (3,), (2, 2))
    """Shapes of one row of an extra column."""


CASES = {
    "npz": Case("set.npz"),
    "store": Case("set.store"),
    "lerobot": Case("set"),
    "d4rl": Case("set.hdf5"),
    "minari": Case("set"),
    "robomimic": Case("set.hdf5"),
    "d3rlpy": Case("set.h5"),
}


def marker(count: np.ndarray) -> np.ndarray:
    """The action that belongs to a step number."""
    return (7 * count + 3) % 97


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Values of a dtype that a careless conversion would change."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return rng.integers(0, 2, shape).astype(kind)
    if kind.kind in "iu":
        low = 0 if kind.kind == "u" else -(2**30)
        high = min(2**30, int(np.iinfo(kind).max))
        return rng.integers(low, high, shape).astype(kind)
    values = rng.normal(size=shape).astype(kind)
    special = np.array([-0.0, np.finfo(kind).tiny / 4, np.finfo(kind).eps], dtype=kind)
    chosen = rng.random(shape) < 0.1
    values[chosen] = rng.choice(special, int(chosen.sum()))
    return values


@st.composite
def trajectory_sets(draw: Callable, case: Case = CASES["npz"]) -> TrajectorySet:
    """Sets over dtypes, lengths, ends, and everything optional present or not."""
    rng = np.random.Generator(np.random.Philox(draw(st.integers(0, 2**32))))
    lengths = np.array(draw(st.lists(st.integers(1, 7), min_size=1, max_size=6)))
    lengths[0] = max(lengths[0], 2)
    rows, count = int(lengths.sum()), len(lengths)
    observation = draw(st.sampled_from(DTYPES))
    action = draw(st.sampled_from(DTYPES))
    # Each trajectory numbers one step more than it has: the one after its last action.
    numbered = np.arange(rows + count)
    final_places = np.cumsum(lengths + 1) - 1
    steps = np.delete(numbered, final_places)
    every = numbers(rng, (rows + count, draw(st.integers(1, 4))), observation)
    every[:, 0] = numbered
    actions = numbers(rng, (rows, draw(st.integers(1, 3))), action)
    actions[:, 0] = marker(steps)
    has_final = np.array([draw(st.booleans()) for _ in range(count)])
    finals = has_final.any()
    terminals, timeouts = ends(draw, lengths)
    reward = draw(st.sampled_from([None, *DTYPES, "nan"]))
    trajectories = TrajectorySet.from_flat(
        Columns(
            observations=np.delete(every, final_places, axis=0),
            actions=actions,
            rewards=rewards(rng, rows, reward),
            terminals=terminals,
            timeouts=timeouts,
            extras={
                name: numbers(
                    rng,
                    (rows, *draw(st.sampled_from(case.extra_shapes))),
                    draw(st.sampled_from([*DTYPES, "u1", "?"])),
                )
                for name in case.extras[: draw(st.integers(0, len(case.extras)))]
            },
        ),
        lengths,
        ids=draw(st.permutations(IDS))[:count] if draw(st.booleans()) else None,
        sources=np.array([draw(st.sampled_from(["expert", "weak", "schräg"])) for _ in lengths])
        if draw(st.booleans())
        else None,
        final_observations=every[final_places] if finals else None,
        has_final=has_final if finals else None,
        metadata=draw(st.sampled_from(METADATA)),
    )
    if draw(st.booleans()):
        trajectories = trajectories[np.array(draw(st.permutations(range(count))))]
    return trajectories


def ends(draw: Callable, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """End marks on last steps only, each trajectory in its own way."""
    rows = int(lengths.sum())
    terminals, timeouts = np.zeros(rows, dtype=bool), np.zeros(rows, dtype=bool)
    for last in np.cumsum(lengths) - 1:
        end = draw(st.sampled_from(ENDS))
        terminals[last] = end in ("terminal", "both")
        timeouts[last] = end in ("timeout", "both")
    return terminals, timeouts


def rewards(rng: np.random.Generator, rows: int, dtype: str | None) -> np.ndarray | None:
    """Rewards of a dtype, none, or some that are NaN."""
    if dtype is None:
        return None
    if dtype == "nan":
        values = rng.normal(size=rows)
        values[rng.integers(rows)] = np.nan
        return values
    return numbers(rng, (rows,), dtype)


def assert_same_bits(before: np.ndarray, after: np.ndarray, name: str) -> None:
    """Equal dtype, shape and bytes; NaN equals NaN, and -0.0 differs from 0.0."""
    assert after.dtype == before.dtype, f"{name}: {before.dtype} became {after.dtype}"
    assert after.shape == before.shape, f"{name}: {before.shape} became {after.shape}"
    assert np.asarray(after).tobytes() == np.asarray(before).tobytes(), f"{name} changed"


def assert_same(before: TrajectorySet, after: TrajectorySet) -> None:
    """Every fact of a set is the same in another."""
    assert after.lengths.tolist() == before.lengths.tolist()
    assert after.ids.tolist() == before.ids.tolist()
    assert words(after.sources) == words(before.sources)
    columns, others = dict(before.flat().named()), dict(after.flat().named())
    assert sorted(others) == sorted(columns)
    for name in columns:
        assert_same_bits(columns[name], others[name], name)
    has = final_flags(before)
    assert final_flags(after).tolist() == has.tolist()
    if has.any():
        assert before.final_observations is not None
        assert after.final_observations is not None
        assert_same_bits(before.final_observations[has], after.final_observations[has], "finals")
    assert dict(after.metadata) == dict(before.metadata)


def words(values: np.ndarray | None) -> list[str] | None:
    return None if values is None else values.tolist()


def final_flags(trajectories: TrajectorySet) -> np.ndarray:
    has = trajectories.has_final
    return np.zeros(len(trajectories), dtype=bool) if has is None else np.asarray(has)


def assert_aligned(trajectories: TrajectorySet) -> None:
    """Every action is the marker of its own observation, and finals come after the last."""
    for trajectory in trajectories:
        counts = trajectory.steps.observations[:, 0].astype(np.int64)
        assert (np.diff(counts) == 1).all()
        assert trajectory.steps.actions[:, 0].tolist() == marker(counts).tolist()
        if trajectory.final_observation is not None:
            assert int(trajectory.final_observation[0]) == counts[-1] + 1


def keys_of(trajectories: TrajectorySet, record: str = "observation_parts") -> list[str]:
    """Names that were joined into one vector, in order."""
    return [part["key"] for part in trajectories.metadata[record]]


def check_round_trip(name: str, trajectories: TrajectorySet) -> None:
    """Write, recognise, read and compare."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / CASES[name].file
        formats.save(path, trajectories, format=name)
        assert detect(path) == name
        after = formats.read(path, formats.ReadOptions(cache=False))
        assert_same(trajectories, after)
        assert_aligned(after)
