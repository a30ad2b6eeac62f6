"""Small piles whose trajectories are one policy's, with stretches of another."""

import numpy as np

from pubc.trajectory import Columns, TrajectorySet

FAULT = slice(20, 45)


def lapsing(
    count: int, *, clean: int = 0, steps: int = 80, random_seed: int = 0
) -> tuple[TrajectorySet, np.ndarray]:
    """Trajectories of a linear policy, and which steps are its own.

    The first `clean` of them have no fault; the others have a stretch of another policy that
    begins somewhere between steps 5 and 40 and lasts 25 steps.
    """
    rng = np.random.default_rng(random_seed)
    own_policy, other = np.random.default_rng(7).normal(size=(2, 4, 2))
    observations, actions, own = [], [], []
    for number in range(count):
        state, flags = rng.normal(size=4), np.ones(steps, dtype=bool)
        if number >= clean:
            first = int(rng.integers(5, 40))
            flags[first : first + 25] = False
        for step in range(steps):
            policy = own_policy if flags[step] else other
            observations.append(state)
            actions.append(np.tanh(state @ policy) + 0.05 * rng.normal(size=2))
            state = 0.8 * state + 0.6 * rng.normal(size=4)
        own.append(flags)
    ends = np.zeros(count * steps, dtype=bool)
    ends[steps - 1 :: steps] = True
    columns = Columns(
        np.asarray(observations, dtype=np.float32),
        np.asarray(actions, dtype=np.float32),
        None,
        np.zeros(len(ends), dtype=bool),
        ends,
    )
    return TrajectorySet.from_flat(columns, [steps] * count), np.concatenate(own)
