"""DWBC's two losses by hand, and what they are for."""

import numpy as np
import pytest
import torch

from pubc.policies import trainer
from pubc.policies.cloning.dwbc import ALPHA, ETA, discriminator_loss, policy_weights
from pubc.policies.train_options import TrainOptions
from pubc.trajectory import Columns, TrajectorySet, concatenate


def test_the_discriminators_risk_is_the_papers():
    expert, mixed = torch.tensor([0.3, 2.0]), torch.tensor([-1.0, 0.5, 0.1])
    sure, other = torch.sigmoid(expert), torch.sigmoid(mixed)
    wanted = -ETA * sure.log().mean() - (1 - other).log().mean() + ETA * (1 - sure).log().mean()
    assert float(discriminator_loss(expert, mixed)) == pytest.approx(float(wanted), rel=1e-5)


def test_weights_are_the_papers_with_the_discriminator_cut_off():
    expert, mixed = policy_weights(torch.tensor([0.0, 99.0]), torch.tensor([0.0, -99.0, 99.0]))
    assert expert.tolist() == pytest.approx([ALPHA - ETA / 0.25, ALPHA - ETA / 0.09])
    assert mixed.tolist() == pytest.approx([2.0, 1 / 0.9, 10.0])


def test_dwbc_follows_the_seeds_where_the_mixture_disagrees():
    rng = np.random.default_rng(0)

    def policy(sign: float, count: int) -> TrajectorySet:
        seen = rng.normal(size=(count * 20, 3)).astype(np.float32)
        acted = sign * np.tanh(seen[:, :1])
        ends = np.zeros(count * 20, dtype=np.bool_)
        ends[19::20] = True
        columns = Columns(seen, acted, None, np.zeros_like(ends), ends)
        return TrajectorySet.from_flat(columns, [20] * count)

    expert, other = policy(1.0, 20), policy(-1.0, 40)
    run = trainer(
        "dwbc-paper",
        concatenate([expert, other]),
        TrainOptions(updates=600, learning_rate=2e-3, hidden=(32, 32), batch_size=64),
        positives=expert[:5],
    )
    for epoch in range(run.epochs):
        run.advance(epoch)
    fresh = rng.normal(size=(500, 3)).astype(np.float32)
    did = run.policy().act(fresh)
    assert np.corrcoef(did[:, 0], np.tanh(fresh[:, 0]))[0, 1] > 0.9
