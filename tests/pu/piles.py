"""Small piles of trajectories whose policies are known."""

from collections.abc import Sequence

import numpy as np

from pubc.pu.judge import Bench, Task
from pubc.pu.pile_statistics import survey
from pubc.streams import Key
from pubc.trajectory import Columns, TrajectorySet


def pile(
    counts: Sequence[int],
    *,
    steps: int = 60,
    states: int = 4,
    actions: int = 2,
    random_seed: int = 0,
    noise: float = 0.05,
    repeat_policy: bool = False,
) -> TrajectorySet:
    """Trajectories of linear policies, as many of each as `counts` says, sources 0, 1, ...

    Policies share their states and differ in their actions only, so nothing but the relation
    of the two tells them apart.
    """
    rng = np.random.default_rng(random_seed)
    policies = np.random.default_rng(99).normal(size=(max(len(counts), 8), states, actions))
    parts, sources = [], []
    for number, count in enumerate(counts):
        policy = policies[0 if repeat_policy else number]
        for _ in range(count):
            walk = _walk(rng, steps, states)
            acted = np.tanh(walk @ policy) + noise * rng.normal(size=(steps, actions))
            parts.append((walk, acted))
            sources.append(str(number))
    total = steps * len(parts)
    ends = np.zeros(total, bool)
    ends[steps - 1 :: steps] = True
    observations = np.concatenate([walk for walk, _ in parts]).astype(np.float32)
    acts = np.concatenate([acted for _, acted in parts]).astype(np.float32)
    rewards = np.repeat([float(s == "0") for s in sources], steps).astype(np.float32)
    return TrajectorySet.from_flat(
        Columns(observations, acts, rewards, np.zeros(total, bool), ends),
        [steps] * len(parts),
        sources=np.asarray(sources),
    )


def _walk(rng: np.random.Generator, steps: int, states: int) -> np.ndarray:
    """States that wander around the origin, so that every trajectory sees the same region."""
    pushes = rng.normal(size=(steps, states)) * np.sqrt(1 - 0.6**2)
    walk = np.empty_like(pushes)
    state = rng.normal(size=states)
    for step, push in enumerate(pushes):
        state = 0.6 * state + push
        walk[step] = state
    return walk


def first_task(mixed: TrajectorySet, seeds: TrajectorySet, **bench) -> Task:
    """What a judge is asked in the first round: the seeds are all that is known."""
    return Task(
        number=1,
        mixed=mixed,
        positives=seeds,
        seed_positives=seeds,
        standing=None,
        facts=survey(mixed),
        key=Key(0),
        bench=Bench(**bench),
    )
