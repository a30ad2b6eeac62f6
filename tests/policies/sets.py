"""Small sets whose answer is known: the action is a smooth function of the observation."""

import itertools

import numpy as np

from pubc.nets import Normaliser
from pubc.policies.networks import NetworkPolicy
from pubc.policies.training_rows import ActionRange
from pubc.trajectory import Columns, TrajectorySet


def tiny(
    trajectories: int = 20,
    length: int = 30,
    observations: int = 5,
    actions: int = 2,
    seed: int = 0,
    rewards: bool = True,
) -> TrajectorySet:
    rng = np.random.default_rng(seed)
    rows = trajectories * length
    seen = rng.normal(size=(rows, observations)).astype(np.float32)
    acted = np.tanh(seen[:, :actions] - 0.5 * seen[:, -1:]).astype(np.float32)
    ends = np.zeros(rows, dtype=np.bool_)
    ends[length - 1 :: length] = True
    earned = rng.normal(size=rows).astype(np.float32) if rewards else None
    columns = Columns(seen, acted, earned, np.zeros_like(ends), ends)
    return TrajectorySet.from_flat(columns, [length] * trajectories)


def random_policy(
    observations: int = 5,
    actions: int = 2,
    *,
    gaussian: bool = False,
    latent: bool = False,
    seed: int = 0,
) -> NetworkPolicy:
    rng = np.random.default_rng(seed)

    def layers(*sizes):
        return tuple(
            (
                (rng.normal(size=(a, b)) / np.sqrt(a)).astype(np.float32),
                rng.normal(size=b).astype(np.float32),
            )
            for a, b in itertools.pairwise(sizes)
        )

    outputs = actions * (2 if gaussian else 1)
    first = layers(observations, 16, 16, 2 * actions if latent else outputs)
    return NetworkPolicy(
        Normaliser(
            rng.normal(size=observations).astype(np.float32),
            rng.uniform(0.5, 2, size=observations).astype(np.float32),
        ),
        ActionRange(np.full(actions, -0.4, np.float32), np.full(actions, 0.7, np.float32)),
        first,
        layers(observations + 2 * actions, 16, actions) if latent else (),
        gaussian=gaussian,
    )


def acts(policy, observations: int = 5, steps: int = 4) -> np.ndarray:
    """What a policy does with some observations, one after another."""
    rng = np.random.default_rng(3)
    actor = policy.begin(np.random.default_rng(0))
    rows = rng.normal(size=(steps, observations)).astype(np.float32)
    return np.stack([np.array(actor(row, 1.0)) for row in rows])
