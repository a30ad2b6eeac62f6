"""Who acts almost like the expert is told from it once the others are away."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pubc.pu.judge import Bench
from pubc.pu.second_opinion.closer_look import FEWEST, SURE, look_closer
from pubc.pu.second_opinion.looks.pile_views import OpinionSettings
from pubc.pu.second_opinion.splits.best_split import Best
from pubc.pu.second_opinion.splits.pile_split import Split
from pubc.runs.soundness import ANOTHER
from pubc.streams import Key
from tests.pu.piles import pile

SETTINGS = OpinionSettings(updates=150, features=64)


def splitting(kept):
    """A split that keeps these, with all votes behind it."""
    belief = torch.from_numpy(np.asarray(kept, dtype=np.float32))
    votes = (belief > 0.5).repeat(8, 1)
    falls = torch.zeros(len(belief), dtype=torch.int64)
    return Best(Split(votes, belief, falls, 9.0, False, votes.clone()), "many", 1.0)


def closer(mixed, kept, seeds=range(4), strangers=None):
    best = splitting(kept)
    found = look_closer(
        best,
        mixed,
        strangers,
        torch.as_tensor(list(seeds)),
        SETTINGS,
        Key(0),
        Bench(workers=1, device="cpu"),
    )
    return best, found


def sources(mixed):
    return np.asarray(mixed.sources)


def stays(best, found):
    """Whether the closer look changed nothing, and saw nobody else."""
    return torch.equal(found.split.belief, best.split.belief) and found.another < ANOTHER


def test_what_is_kept_falls_into_two_and_the_part_with_the_seeds_stays():
    mixed = pile([24, 24, 12])
    best, found = closer(mixed, sources(mixed) != "2")
    kept = (found.split.belief > 0.5).numpy()
    assert (kept == (sources(mixed) == "0")).mean() >= 0.97
    assert found.dropped_closer == 48 - kept.sum()
    assert found.split.support <= best.split.support
    assert torch.equal(found.split.votes.float().mean(0) > 0.5, found.split.belief > 0.5)
    assert not (best.split.belief < 0.5)[:48].any(), "the first split stays as it was"


def test_one_policy_stays_together():
    mixed = pile([40, 12])
    best, found = closer(mixed, sources(mixed) == "0")
    assert stays(best, found)


@pytest.mark.parametrize("counts", [[FEWEST - 17, 16, 12], [24, 24, 0]])
def test_few_and_whole_piles_are_not_looked_at_again(counts):
    mixed = pile(counts)
    best, found = closer(mixed, sources(mixed) != "2")
    assert found is best


def test_two_seeds_do_not_say_enough():
    mixed = pile([24, 24, 12])
    best, found = closer(mixed, sources(mixed) != "2", seeds=range(2))
    assert found is best


def test_parts_that_start_in_different_places_may_be_two_tasks():
    mixed = pile([24, 24, 12])
    flat = mixed.flat()
    moved = flat.observations.copy()
    moved[mixed.offsets[:-1][sources(mixed) == "1"]] += 8
    other = type(mixed).from_flat(
        replace(flat, observations=moved), mixed.lengths, sources=mixed.sources
    )
    best, found = closer(other, sources(mixed) != "2")
    assert stays(best, found)


def test_parts_of_different_length_may_be_two_outcomes():
    mixed = pile([24, 24, 12])
    short = sources(mixed) == "1"
    lengths = np.where(short, 40, 60)
    steps = np.concatenate(
        [np.arange(at, at + n) for at, n in zip(mixed.offsets[:-1], lengths, strict=True)]
    )
    flat = mixed.flat()
    ends = np.zeros(len(steps), bool)
    ends[np.cumsum(lengths) - 1] = True
    cut = replace(
        flat,
        observations=flat.observations[steps],
        actions=flat.actions[steps],
        rewards=flat.rewards[steps],
        terminals=flat.terminals[steps],
        timeouts=ends,
    )
    other = type(mixed).from_flat(cut, lengths, sources=mixed.sources)
    best, found = closer(other, sources(mixed) != "2")
    assert stays(best, found)


def test_seeds_from_elsewhere_count():
    whole = pile([28, 24, 12])
    mixed, outside = whole[4:], whole[[0, 1, 2, 3]]
    kept = np.concatenate([sources(mixed) != "2", np.ones(4, bool)])
    _, found = closer(mixed, kept, seeds=range(60, 64), strangers=outside)
    assert ((found.split.belief[:60] > 0.5).numpy() == (sources(mixed) == "0")).mean() >= 0.97


def test_how_clearly_somebody_else_acted_is_told_and_forgotten_once_they_are_dropped():
    mixed = pile([24, 24, 12])
    _, found = closer(mixed, sources(mixed) != "2")
    assert found.dropped_closer
    assert found.another < SURE, "those who stay are one actor"


def test_two_actors_of_whom_little_is_known_stay_and_are_told_of(monkeypatch):
    monkeypatch.setattr("pubc.pu.second_opinion.closer_look.SURE", 1e9)
    monkeypatch.setattr("pubc.pu.second_opinion.closer_look.FAR", 1e9)
    mixed = pile([24, 24, 12])
    best, found = closer(mixed, sources(mixed) != "2")
    assert torch.equal(found.split.belief, best.split.belief)
    assert found.another > 5 > best.another


def test_where_looks_differ_nothing_is_told(monkeypatch):
    monkeypatch.setattr("pubc.pu.second_opinion.closer_look.LOOKS_AGREE", 1.1)
    monkeypatch.setattr("pubc.pu.second_opinion.closer_look.FAR", 1e9)
    mixed = pile([24, 24, 12])
    _, found = closer(mixed, sources(mixed) != "2")
    assert found.another == 0
    assert not found.dropped_closer
