"""The odds that an actor is one who was met, on actors that are made up."""

import torch

from pubc.pu.second_opinion.looks.rows import Rows
from pubc.pu.second_opinion.looks.same_actor import learn_same_actor

STEPS = 40


def met(slopes, seed=0):
    """Trajectories of actors that answer the state with a slope, and what the odds need."""
    drawn = torch.Generator().manual_seed(seed)
    count = len(slopes)
    states = torch.randn(count * STEPS, 2, generator=drawn)
    slope = torch.tensor(slopes).repeat_interleave(STEPS)[:, None]
    actions = slope * states + 0.05 * torch.randn(states.shape, generator=drawn)
    breaks = torch.zeros(len(states), dtype=torch.bool)
    breaks[::STEPS] = True
    rows = Rows(states, actions, torch.full((count,), STEPS), breaks, scale=None)
    features = torch.cat([states, torch.ones(len(states), 1)], 1)
    noise = torch.full((2,), 0.05**2)
    return rows, learn_same_actor(rows, features, torch.zeros_like(actions), noise)


def test_who_acts_alike_has_the_odds_for_it():
    rows, odds = met([1.0] * 6 + [-1.0] * 6)
    found = rows.mean(odds.log_odds(torch.tensor([0, 1])).mean(1))
    assert found[2:6].min() > 0
    assert found[6:].max() < -5


def test_a_positive_is_met_through_the_others():
    """Its odds are those of a fit that never saw it."""
    rows, odds = met([1.0, 1.0, 1.0, -1.0])
    among = odds.log_odds(torch.tensor([0, 1, 2]))[rows.of(0)]
    without = odds.log_odds(torch.tensor([1, 2]))[rows.of(0)]
    assert torch.allclose(among, without, atol=0.02)


def test_an_odd_one_among_the_positives_is_a_stranger_to_them():
    rows, odds = met([1.0, 1.0, 1.0, -1.0])
    found = rows.mean(odds.log_odds(torch.tensor([0, 1, 2, 3])).mean(1))
    assert found[3] < found[:3].min() - 1


def test_odds_are_even_where_nobody_was_met():
    """The third trajectory goes where the state is something that the others never saw."""
    rows, odds = met([1.0, 1.0, 1.0, -1.0])
    features = torch.cat([odds.features, torch.zeros(len(odds.features), 1)], 1)
    features[rows.of(2)] = torch.tensor([0.0, 0.0, 0.0, 1.5])
    fresh = learn_same_actor(rows, features, rows.actions - odds.own, odds.noise)
    found = fresh.log_odds(torch.tensor([0, 1]))
    assert found[rows.of(2)].abs().max() < 0.05
    assert rows.mean(found.mean(1))[3] < -1
