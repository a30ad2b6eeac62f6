"""What stands still goes only where the seeds moved on and never stood still."""

import numpy as np

from pubc.pu.steps.idle_steps import learn_idle_rule
from pubc.trajectory import Columns, TrajectorySet


def line(*stops: tuple[int, int], steps: int = 40) -> np.ndarray:
    """A walk along a line, one unit a step, that stands still at some places for some steps."""
    places: list[float] = []
    for place in range(steps):
        places += [float(place)] * (1 + dict(stops).get(place, 0))
    return np.stack([places, np.zeros(len(places))], 1).astype(np.float32)


def seeds(*walks: np.ndarray) -> TrajectorySet:
    flat = np.concatenate(walks)
    flags = np.zeros(len(flat), dtype=bool)
    return TrajectorySet.from_flat(
        Columns(flat, np.zeros((len(flat), 1), np.float32), None, flags, flags),
        [len(walk) for walk in walks],
    )


def rule(*walks: np.ndarray):
    made = learn_idle_rule(seeds(*walks), np.random.default_rng(0))
    assert made is not None
    return made


def test_a_pause_where_the_seeds_moved_on_is_idle():
    found = rule(line(), line()).idle(line((10, 12)))
    assert found.sum() == 12
    assert found[10:22].all()


def test_a_phase_that_the_seeds_contain_is_not():
    assert not rule(line((10, 12)), line((10, 9))).idle(line((10, 20))).any()


def test_a_place_that_no_seed_visited_is_not():
    assert not rule(line(steps=20), line(steps=20)).idle(line((35, 12))).any()


def test_a_short_pause_is_not():
    assert not rule(line(), line()).idle(line((10, 3))).any()


def test_waiting_for_most_of_a_trajectory_is_the_task():
    assert not rule(line(), line()).idle(line((10, 100))).any()


def test_seeds_that_never_move_imply_no_rule():
    still = np.ones((20, 2), dtype=np.float32)
    assert learn_idle_rule(seeds(still, still), np.random.default_rng(0)) is None


def test_one_seed_suffices():
    assert rule(line()).idle(line((10, 12))).sum() == 12
