"""The seven kinds: right sources, right shares, never a recorded pair."""

import numpy as np
import pytest

from pubc.errors import DataError, UsageError
from pubc.pu.paper.negatives import KINDS, Pairs, make_negatives, share_out, take_pairs
from pubc.pu.pile_statistics import survey
from pubc.trajectory import Columns
from tests.pu.piles import pile


def pools(count: int = 40):
    rng = np.random.default_rng(0)
    positives = Pairs(
        rng.uniform(0, 1, (count, 3)).astype(np.float32),
        rng.uniform(0, 1, (count, 2)).astype(np.float32),
    )
    mixed = Pairs(
        rng.uniform(2, 3, (count, 3)).astype(np.float32),
        rng.uniform(2, 3, (count, 2)).astype(np.float32),
    )
    return positives, mixed


def ranges():
    """Uniform draws far from both pools, so that the origin of every value shows."""
    facts = survey(pile([2], states=3, actions=2))
    outside = type(facts.observations)
    return (
        outside(np.full(3, 10.0), np.full(3, 11.0), np.zeros(3), np.ones(3)),
        outside(np.full(2, 20.0), np.full(2, 21.0), np.zeros(2), np.ones(2)),
    )


def origin(rows: np.ndarray, uniform: float) -> list[str]:
    first = rows[:, 0]
    return ["~" if v >= uniform else "mix" if v >= 2 else "+" for v in first]


def test_every_kind_comes_from_where_it_says():
    positives, mixed = pools()
    made = make_negatives(positives, mixed, 70, ranges=ranges(), rng=np.random.default_rng(1))
    found = list(zip(origin(made.observations, 10.0), origin(made.actions, 20.0), strict=True))
    assert found == [kind for kind in KINDS for _ in range(10)]


@pytest.mark.parametrize("count", [1, 6, 7, 8, 100, 1000])
def test_equal_shares_differ_by_at_most_one(count: int):
    counts = share_out(count, (1,) * 7)
    assert sum(counts) == count
    assert max(counts) - min(counts) <= 1


def test_shares_are_kept():
    assert share_out(100, (3, 1, 0, 0, 0, 0, 0)) == [75, 25, 0, 0, 0, 0, 0]
    for wrong in [(1, 1), (0,) * 7, (1, 1, 1, 1, 1, 1, -1)]:
        with pytest.raises(UsageError, match="n1 to n7"):
            share_out(10, wrong)


def test_no_negative_is_a_recorded_pair_even_where_states_repeat():
    rng = np.random.default_rng(2)
    # Few distinct states and actions: half of all random pairings are recorded ones.
    states = rng.integers(0, 2, (64, 1)).astype(np.float32)
    actions = rng.integers(0, 4, (64, 1)).astype(np.float32)
    keep = (actions[:, 0] < 2) | (states[:, 0] == 0)
    pairs = Pairs(states[keep], actions[keep])
    recorded = set(zip(pairs.observations[:, 0], pairs.actions[:, 0], strict=True))
    made = make_negatives(
        pairs, pairs, 200, ranges=ranges_of(pairs), rng=rng, shares=(1, 0, 1, 0, 0, 0, 0)
    )
    found = set(zip(made.observations[:, 0], made.actions[:, 0], strict=True))
    assert len(made) == 200
    assert not recorded & found


def test_no_negative_is_recorded_anywhere_in_the_raw_dataset():
    """The pools hold every second pair only; the others are known from the stream alone."""
    states = np.repeat(np.arange(8, dtype=np.float32), 8)[:, None]
    actions = np.tile(np.arange(8, dtype=np.float32), 8)[:, None]
    kept = (states[:, 0] + actions[:, 0]) % 8 != 0
    dataset = Pairs(states[kept], actions[kept])
    pool = dataset.rows(np.arange(0, len(dataset), 2))
    made = {}
    for name, recorded in (("pool", tuple), ("dataset", lambda: [block_of(dataset)])):
        made[name] = make_negatives(
            pool,
            pool,
            300,
            ranges=ranges_of(pool),
            rng=np.random.default_rng(0),
            shares=(1, 0, 1, 0, 0, 0, 0),
            recorded=recorded,
        )
    wrong = {
        name: np.isin(pairs.observations[:, 0] * 8 + pairs.actions[:, 0],
                      dataset.observations[:, 0] * 8 + dataset.actions[:, 0]).sum()
        for name, pairs in made.items()
    }  # fmt: skip
    assert wrong["pool"] > 100
    assert wrong["dataset"] == 0


def block_of(pairs: Pairs) -> Columns:
    ends = np.zeros(len(pairs), dtype=np.bool_)
    return Columns(pairs.observations, pairs.actions, None, ends, ends)


def ranges_of(pairs: Pairs):
    facts = survey(pile([1], states=1, actions=1))
    kind = type(facts.observations)
    return tuple(
        kind(rows.min(0).astype(float), rows.max(0).astype(float), rows.mean(0), rows.std(0))
        for rows in (pairs.observations, pairs.actions)
    )


def test_equal_actions_end_in_a_sentence_not_in_a_loop():
    same = Pairs(np.zeros((8, 2), np.float32), np.ones((8, 1), np.float32))
    with pytest.raises(DataError, match="cannot be mismatched") as caught:
        make_negatives(same, same, 70, ranges=ranges_of(same), rng=np.random.default_rng(0))
    assert caught.value.code == "no_negatives"


def test_uniform_draws_stay_in_the_range_of_each_dimension():
    mixed = pile([4])
    facts = survey(mixed)
    pairs = take_pairs(mixed, np.arange(mixed.steps))
    made = make_negatives(
        pairs,
        pairs,
        700,
        ranges=(facts.observations, facts.actions),
        rng=np.random.default_rng(0),
        shares=(0, 0, 0, 0, 0, 0, 1),
    )
    for rows, span in ((made.observations, facts.observations), (made.actions, facts.actions)):
        assert (rows >= span.low.astype(np.float32)).all()
        assert (rows <= span.high.astype(np.float32)).all()
        assert (rows.max(0) - rows.min(0) > 0.9 * (span.high - span.low)).all()


def test_pairs_are_taken_in_file_order_from_any_selection():
    mixed = pile([5], steps=3000)
    part = mixed[[3, 1]]
    positions = np.array([5000, 2, 3001])
    taken = take_pairs(part, positions)
    assert np.array_equal(taken.observations, part.flat().observations[[2, 3001, 5000]])
