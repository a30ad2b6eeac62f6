"""What learners see: normalised steps, the same from memory and from disk."""

import numpy as np
import pytest
import torch

from pubc.errors import DataError
from pubc.policies.training_rows import MARGIN, TrainingRows, facts_of
from pubc.trajectory import Columns, TrajectorySet
from tests.policies.sets import tiny


def gather(feed: TrainingRows, positions) -> tuple[torch.Tensor, torch.Tensor]:
    inputs, targets = torch.empty(len(positions), 6), torch.empty(len(positions), 2)
    feed.gather(np.asarray(positions), inputs, targets)
    return inputs, targets


def test_disk_and_memory_give_the_same_rows():
    data = tiny()[[3, 1, 7]]
    facts = facts_of(data)
    order = np.random.default_rng(0).permutation(data.steps)
    held, read = (
        gather(TrainingRows(data, facts), order),
        gather(TrainingRows(data, facts, memory=0), order),
    )
    assert torch.equal(held[0], read[0])
    assert torch.equal(held[1], read[1])
    assert (held[0][:, -1] == 1).all()


def test_rows_are_those_of_the_trajectories_asked_for():
    data = tiny()[[3, 1]]
    facts = facts_of(data)
    inputs, targets = gather(TrainingRows(data, facts), [0, 30])
    first = [data[0].steps, data[1].steps]
    wanted = np.stack([facts.normaliser(s.observations[:1])[0] for s in first])
    assert np.array_equal(inputs[:, :-1], wanted)
    wanted = np.stack([facts.actions.to_unit(s.actions[:1])[0] for s in first])
    assert np.array_equal(targets, wanted)


def test_actions_come_back_and_stay_within_the_range():
    data = tiny()
    span = facts_of(data).actions
    units = span.to_unit(data.columns.actions)
    assert np.abs(units).max() <= 1 / MARGIN + 1e-6
    assert np.allclose(span.from_unit(units), data.columns.actions, atol=1e-6)
    assert (span.from_unit(np.full((1, 2), 9.0)) == span.high).all()


def test_a_constant_dimension_is_shifted_but_not_scaled():
    data = tiny()
    seen, acted = np.array(data.columns.observations), np.array(data.columns.actions)
    seen[:, 2], acted[:, 1] = 7.0, 0.25
    columns = Columns(seen, acted, None, data.columns.terminals, data.columns.timeouts)
    facts = facts_of(TrajectorySet.from_flat(columns, data.lengths))
    assert facts.normaliser.scale[2] == 1
    assert (facts.normaliser(seen)[:, 2] == 0).all()
    assert (facts.actions.to_unit(acted)[:, 1] == 0).all()
    assert facts.actions.from_unit(np.array([0.3, 0.3], np.float32))[1] == np.float32(0.25)


@pytest.mark.parametrize("name", ["observations", "actions"])
def test_a_value_that_is_not_finite_is_refused(name: str):
    data = tiny()
    arrays = {n: np.array(getattr(data.columns, n)) for n in ("observations", "actions")}
    arrays[name][5, 1] = np.nan
    columns = Columns(**arrays, rewards=None, terminals=data.columns.terminals,
                      timeouts=data.columns.timeouts)  # fmt: skip
    with pytest.raises(DataError, match=f"{name} hold values that are not finite in dimension 1"):
        facts_of(TrajectorySet.from_flat(columns, data.lengths))


def test_an_empty_set_is_refused():
    with pytest.raises(DataError, match="no trajectories to learn from"):
        facts_of(tiny()[:0])


def test_several_sets_are_surveyed_as_one():
    data = tiny()
    whole, parts = facts_of(data), facts_of(data[:7], data[7:])
    assert np.allclose(whole.normaliser.mean, parts.normaliser.mean, atol=1e-6)
    assert np.allclose(whole.normaliser.scale, parts.normaliser.scale, atol=1e-6)
    assert np.array_equal(whole.actions.high, parts.actions.high)


def test_the_fingerprint_follows_the_content():
    data = tiny()
    assert facts_of(data).fingerprint == facts_of(data[:]).fingerprint
    assert facts_of(data).fingerprint != facts_of(data[::-1][:19]).fingerprint
    assert facts_of(data).fingerprint != facts_of(tiny(seed=1)).fingerprint
