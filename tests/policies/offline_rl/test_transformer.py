"""The Decision Transformer from a folder: what it says of its sizes is what its arrays have."""

import numpy as np
import pytest
import torch

from pubc.errors import DataError
from pubc.nets import Normaliser
from pubc.policies.offline_rl import transformer
from pubc.policies.offline_rl.d3rlpy_learners import HYPERPARAMETERS, create, library, torch_seed
from pubc.policies.offline_rl.transformer import TransformerPolicy
from pubc.policies.training_rows import ActionRange

pytest.importorskip("d3rlpy")


@pytest.fixture(scope="module")
def policy() -> TransformerPolicy:
    chosen = {**HYPERPARAMETERS["dt"], "max_timestep": 30, "context_size": 4}
    with library() as d3, torch_seed(0):
        made = create(d3, "dt", chosen, (3, 1), torch.device("cpu"))
    low = np.array([-1], np.float32)
    seen = Normaliser(np.zeros(3, np.float32), np.ones(3, np.float32))
    return TransformerPolicy(seen, ActionRange(low, -low), made, chosen, 5.0, 1.0)


@pytest.fixture
def unmade(monkeypatch: pytest.MonkeyPatch) -> None:
    """No network may be made."""

    def made(*given):
        raise AssertionError("a network was made")

    monkeypatch.setattr(transformer, "create", made)


def test_it_comes_back_as_it_was(policy: TransformerPolicy):
    again = TransformerPolicy.build(policy.config(), policy.tensors())
    for name, array in policy.tensors().items():
        assert np.array_equal(array, again.tensors()[name])


@pytest.mark.usefixtures("unmade")
@pytest.mark.parametrize("change", [{"max_timestep": 10**7}, {"context_size": 10**4}])
def test_a_size_that_is_only_said_makes_no_network(policy: TransformerPolicy, change: dict):
    config = policy.config()
    config["transformer"].update(change)
    with pytest.raises(DataError, match="of another size than described"):
        TransformerPolicy.build(config, policy.tensors())


@pytest.mark.usefixtures("unmade")
@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"observation.mean": np.zeros(9), "observation.scale": np.ones(9)}, "another size"),
        ({"action.low": np.zeros(9), "action.high": np.ones(9)}, "another size"),
        ({"observation.scale": np.ones(1)}, "one scale above zero"),
        ({"transformer._action_embed.weight": np.array(1.0)}, "another size"),
    ],
)
def test_arrays_that_do_not_fit_one_another_make_no_network(policy, change, told):
    with pytest.raises(DataError, match=told):
        TransformerPolicy.build(policy.config(), {**policy.tensors(), **change})


def test_a_return_beyond_all_floats_is_refused(policy: TransformerPolicy):
    with pytest.raises(DataError, match="do not fit"):
        TransformerPolicy.build({**policy.config(), "target_return": 10**400}, policy.tensors())
