"""Two actors explain better than one what two acted, and nothing else."""

import numpy as np
import pytest
import torch

from pubc.pu.judge import Bench
from pubc.pu.second_opinion.closer_look import LOOKS_AGREE, SURE
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings, open_views, rows_of
from pubc.pu.second_opinion.splits import two_actors
from pubc.pu.second_opinion.splits.two_actors import part_in_two
from pubc.streams import Key
from pubc.trajectory import Columns, TrajectorySet
from tests.pu.piles import pile

BENCH = Bench(workers=1, device="cpu")
SEEDS = torch.arange(4)


def looks(mixed, count=2):
    settings = OpinionSettings(updates=150, features=64, looks=count)
    rows = rows_of(mixed, None, settings, torch.device("cpu"))
    return open_views(rows, settings, Key(0), BENCH.map)


def with_gain(mixed, which, gain):
    """The same pile, in which some act more strongly."""
    flat = mixed.flat()
    stronger = np.repeat(which, mixed.lengths)[:, None]
    return TrajectorySet.from_flat(
        Columns(
            flat.observations,
            np.where(stronger, gain * flat.actions, flat.actions).astype(np.float32),
            flat.rewards,
            flat.terminals,
            flat.timeouts,
        ),
        mixed.lengths,
    )


@pytest.fixture(scope="module")
def alike():
    """Forty trajectories, of which every third is a little stronger; the seeds are not."""
    stronger = np.arange(40) % 3 == 2
    stronger[:4] = False
    return with_gain(pile([40]), stronger, 1.1), stronger


def test_somebody_a_little_stronger_is_told_from_the_seeds(alike):
    mixed, stronger = alike
    parts = part_in_two(looks(mixed), SEEDS, BENCH)
    assert (parts.ours.numpy() == ~stronger).mean() >= 0.95
    assert parts.gain > SURE
    assert parts.agree >= LOOKS_AGREE
    assert (parts.odds[:, :4] > 0).all(), "seeds are found again, each judged by the others"


@pytest.mark.parametrize("random_seed", range(3))
def test_one_actor_in_two_parts_gains_nothing(random_seed):
    parts = part_in_two(looks(pile([40], random_seed=random_seed)), SEEDS, BENCH)
    assert parts is None or parts.gain < SURE


def test_the_seeds_stay_where_they_are(alike):
    mixed, stronger = alike
    seeds = torch.from_numpy(np.flatnonzero(stronger)[:2])
    parts = part_in_two(looks(mixed, 1), torch.cat([SEEDS, seeds]), BENCH)
    assert parts.ours[seeds].all()
    assert (parts.odds[0, seeds] < 0).all(), "what speaks against them is not hidden"


def test_every_look_must_see_the_gain(alike, monkeypatch):
    mixed, _ = alike
    true, calls = two_actors._gains, []

    def gains(explained, ours):
        found, odds = true(explained, ours)
        calls.append(explained)
        return (found if explained is calls[0] else torch.zeros_like(found)), odds

    monkeypatch.setattr(two_actors, "_gains", gains)
    assert part_in_two(looks(mixed), SEEDS, BENCH).gain == pytest.approx(0)


def test_too_few_others_are_no_part():
    mixed = with_gain(pile([12]), np.arange(12) == 11, -1.0)
    parts = part_in_two(looks(mixed, 1), SEEDS, BENCH)
    assert parts is None or int((~parts.ours).sum()) >= 3
