"""Our way through an update of a d3rlpy learner is d3rlpy's own, without its waits."""

import numpy as np
import pytest
import torch

from pubc.policies.offline_rl.d3rlpy_learners import (
    HYPERPARAMETERS,
    create,
    library,
    torch_seed,
    update,
    way,
)
from pubc.policies.offline_rl.transitions import Sequences, Transitions
from pubc.policies.training_rows import facts_of
from tests.policies.sets import tiny

pytest.importorskip("d3rlpy")

CPU = torch.device("cpu")
SHORT = {"plas": {"warmup_steps": 3}, "crr": {"target_update_interval": 3}}
"""So that a few updates take every way."""


def numbers(modules) -> list[torch.Tensor]:
    parts = [part for part in vars(modules).values() if isinstance(part, torch.nn.Module)]
    return [value.clone() for part in parts for value in part.state_dict().values()]


@pytest.mark.parametrize("name", HYPERPARAMETERS)
def test_an_update_is_the_one_of_d3rlpy(name: str):
    data = tiny()
    facts = facts_of(data)
    sizes = (data.observation_size, data.action_size)
    source = Sequences(data, facts, 20) if name == "dt" else Transitions(data, facts)
    rng = np.random.default_rng(0)
    seen = set()
    with library() as d3:
        pack = d3.torch_utility.TorchTrajectoryMiniBatch if name == "dt" else d3.TorchMiniBatch
        chosen = {**HYPERPARAMETERS[name], **SHORT.get(name, {})}
        learners = []
        for _ in range(2):
            with torch_seed(1):
                learners.append(create(d3, name, chosen, sizes, CPU).impl)
        ours, theirs = learners
        for number in range(6):
            drawn = {key: torch.from_numpy(rows) for key, rows in source.draw(8, rng).items()}
            batch = pack(**drawn, device="cpu")
            taken = way(ours, name, number)
            seen.add(taken)
            with torch_seed(number):
                ours.modules.set_train()
                losses = update(ours, name, batch, taken)
            with torch_seed(number):
                expected = theirs.update(batch, number)
            assert {key: float(value) for key, value in losses.items()} == expected
            for a, b in zip(numbers(ours.modules), numbers(theirs.modules), strict=True):
                assert torch.equal(a, b)
    assert len(seen) == (2 if name in {"td3bc", "crr", "plas"} else 1)


def test_distributions_look_at_their_parameters_again_afterwards():
    with library():
        torch.distributions.Normal(torch.tensor(np.nan), 1.0)
    with pytest.raises(ValueError, match="loc"):
        torch.distributions.Normal(torch.tensor(np.nan), 1.0)
