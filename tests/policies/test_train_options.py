"""Options of training that no learner can use, refused in the same words by all."""

import pytest

from pubc.errors import UsageError
from pubc.policies import stacked_trainer, trainer
from pubc.policies.train_options import TrainOptions, check_rate
from tests.policies.sets import tiny

FAST = TrainOptions(learning_rate=1e308, updates=2)
TOLD = "above zero and below 1,000"


@pytest.mark.parametrize("rate", [0.0, -1.0, 1000.0, 1e308, float("inf"), float("nan")])
def test_a_learning_rate_beyond_all_use_is_refused(rate: float):
    with pytest.raises(UsageError, match=TOLD):
        check_rate(TrainOptions(learning_rate=rate))


@pytest.mark.parametrize("rate", [None, 1e-9, 3e-4, 999.0])
def test_any_other_is_taken(rate: float | None):
    check_rate(TrainOptions(learning_rate=rate))


@pytest.mark.parametrize("name", ["bc", "dwbc", "iql"])
def test_every_learner_looks_at_it(name: str):
    given = {"device": "cpu", "positives": tiny(seed=1) if name == "dwbc" else None}
    with pytest.raises(UsageError, match=TOLD):
        trainer(name, tiny(), FAST, random_seed=0, **given)
    with pytest.raises(UsageError, match=TOLD):
        stacked_trainer(name, tiny(), FAST, random_seeds=[0, 1], **given)
