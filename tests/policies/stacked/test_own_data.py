"""Members of a stack with data of their own: each is the training alone, up to rounding."""

import numpy as np
import pytest
import torch

from pubc.errors import UsageError
from pubc.policies import stack_members, stack_shape, trainer
from pubc.policies.offline_rl import reinforce
from pubc.policies.stacked import stacked_offline, stacked_rows
from pubc.policies.stacked.many_policies import Many
from pubc.policies.stacked.stacked_bc import StackedBC
from pubc.policies.stacked.stacked_rows import Member
from pubc.policies.train_options import TrainOptions
from pubc.threads import threads
from tests.policies.sets import tiny
from tests.policies.stacked.test_stacked_offline import both_ends

CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def one_thread():
    """Threads that wait for one another are slow beside other tests."""
    with threads(1):
        yield


def members() -> list[Member]:
    """Two share a set, one has a part of it, one another set that is larger."""
    first, other = both_ends(), both_ends(trajectories=14)
    sure = [first[:2], other[3:6]]
    return [
        Member(first, 0, sure[0]),
        Member(first, 3, sure[0]),
        Member(first[2:5], 0, sure[0]),
        Member(other, 3, sure[1]),
    ]


def plain(ours: list[Member]) -> list[Member]:
    return [Member(one.trajectories, one.random_seed) for one in ours]


def differences(name, ours, found, options) -> float:
    worst = 0.0
    for one, policy in zip(ours, found, strict=True):
        alone = trainer(
            name,
            one.trajectories,
            options,
            random_seed=one.random_seed,
            device="cpu",
            positives=one.positives,
        )
        for epoch in range(alone.epochs):
            alone.advance(epoch)
        theirs = alone.policy().tensors()
        for key, array in theirs.items():
            worst = max(worst, float(np.abs(policy.tensors()[key] - array).max()))
    return worst


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("name", ["iql", "crr", "td3bc", "plas", "dwbc"])
def test_learners_of_a_fixed_number_of_updates(name, held, monkeypatch):
    if name != "dwbc":
        pytest.importorskip("d3rlpy")
    if not held:
        monkeypatch.setattr(stacked_rows, "_HOST", 0)
    for module in (reinforce, stacked_offline):
        monkeypatch.setattr(module, "PER_EPOCH", 20)
    options = TrainOptions(updates=40, batch_size=16)
    ours = members() if name == "dwbc" else plain(members())
    stack = stack_members(name, ours, options, device="cpu")
    for epoch in range(stack.epochs):
        stack.advance(epoch)
    assert differences(name, ours, stack.policies(), options) < 2e-5


@pytest.mark.parametrize(
    "options",
    [
        TrainOptions(recipe="paper", epochs=5, batch_size=16, hidden=(16,)),
        TrainOptions(recipe="paper", updates=50, batch_size=16, hidden=(16,)),
        TrainOptions(epochs=14, batch_size=16, hidden=(16,), held_out=0.2),
    ],
)
def test_cloning_has_the_epochs_of_each_members_own_data(options):
    ours = plain(members())
    stack = StackedBC(ours, options, device=CPU)
    assert len({clock.per_epoch for clock in stack._clocks}) == 3
    assert len({clock.total for clock in stack._clocks}) > 1
    for epoch in range(stack.epochs):
        stack.advance(epoch)
    assert differences("bc", ours, stack.policies(), options) < 2e-5
    assert stack.about(3) != stack.about(2)
    made = [stack.epochs_of(member, stack.epochs) for member in range(4)]
    turns = stack_members("bc", ours, options, device="cpu")
    for epoch in range(turns.epochs):
        turns.advance(epoch)
    assert differences("bc", ours, turns.policies(), options) == 0.0
    assert [turns.epochs_of(member, turns.epochs) for member in range(4)] == made


def test_a_stack_of_different_data_goes_on_to_the_same_bytes():
    options = TrainOptions(epochs=6, batch_size=16, hidden=(16,), held_out=0.2)
    whole, first, second = (StackedBC(plain(members()), options, device=CPU) for _ in range(3))
    for epoch in range(whole.epochs):
        whole.advance(epoch)
        (first if epoch < 3 else second).advance(epoch)
        if epoch == 2:
            second.restore(*first.state())
    assert whole.state()[1] == second.state()[1]
    for key, array in whole.state()[0].items():
        assert np.array_equal(array, second.state()[0][key]), key


def test_data_that_members_share_is_read_once_and_tells_stacks_apart():
    ours = plain(members())
    assert len(StackedBC(ours, TrainOptions(batch_size=16), device=CPU)._rows._feeds) == 3
    prints = {
        StackedBC(some, TrainOptions(batch_size=16), device=CPU).fingerprint
        for some in (ours[:1], ours[:2], ours[2:], ours)
    }
    assert len(prints) == 3


def test_members_of_a_stack_have_one_shape():
    options = TrainOptions()
    small, large = tiny(trajectories=4, length=40), tiny(trajectories=60, length=200)
    shapes = [stack_shape("bc", part, options) for part in (small, large)]
    assert shapes[0][0] != shapes[1][0]
    with pytest.raises(UsageError, match="batches of one size"):
        StackedBC([Member(small, 0), Member(large, 0)], options, device=CPU)
    assert stack_shape("dwbc", small, TrainOptions(updates=7)) == ((5, 2), 7)
    assert stack_shape("iql", small, TrainOptions(updates=9)) == ((5, 2), 9)
    assert stack_shape("dt", small, options) is None


def test_a_member_whose_loss_is_no_number_does_not_stop_the_others():
    class Broken:
        random_seeds, epochs, fingerprint = (4, 4), 1, ""

        def advance(self, epoch: int):
            return {"loss": torch.tensor([1.0, float("nan")])}

    found = Many(Broken(), ["0", "1"], go_on=True).advance(0)
    assert found == {"loss": 1.0, "loss@0": 1.0}
