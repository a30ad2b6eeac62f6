"""An imitator trusts itself less the farther a situation lies from those that it knows."""

import torch

from pubc.pu.steps.step_imitators import Imitator


def test_the_same_error_says_less_far_from_what_is_known():
    imitator = Imitator(
        weights=torch.zeros(1, 2, 1),
        distance=torch.eye(2)[None],
        usual=1.0,
        reach=torch.tensor([0.1]),
        slope=0.5,
    )
    situations, actions = torch.tensor([[0.0, 0.0], [3.0, 0.0]]), torch.full((2, 1), 0.8)
    told, known = imitator.log_likelihood(situations, actions, 0, unknown=0.001)
    assert told[1, 0] > told[0, 0] + 1
    assert known[0] == 1 > known[1]
