"""CPU and GPU decide differently about borderline trajectories alone (goal R9).

What sets a GPU apart is the order in which it adds: the last bits of every product differ. CI has
no GPU, so there every sum of a network's products runs backwards instead; where there is a CUDA
device, `pytest -m gpu` holds the same against it.
"""

import numpy as np
import pytest
import torch

import pubc
from pubc.nets import Classifier, FoldedClassifier, Normaliser, initialise
from pubc.pu.judge import Bench
from pubc.pu.paper.scoring import Scorer, score_trajectories
from tests.pu.piles import pile

CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def backwards(product):
    """A product whose inner sums run from the last term to the first."""

    def other(added, left, right, **more):
        return product(added, left.flip(-1), right.flip(-2), **more)

    return other


@pytest.fixture(params=["backwards", pytest.param("cuda", marks=[pytest.mark.gpu, CUDA])])
def elsewhere(request, monkeypatch):
    """Turns this process into another device, and gives the name to ask for."""

    def leave() -> str:
        if request.param == "cuda":
            return "cuda"
        for name in ("addmm", "baddbmm"):
            monkeypatch.setattr(torch, name, backwards(getattr(torch, name)))
        return "cpu"

    return leave


def scores(mixed: pubc.TrajectorySet, device: str) -> np.ndarray:
    """Confidences of one classifier of the paper, the same weights whatever the device."""
    network = Classifier(mixed.observation_size, mixed.action_size)
    initialise(network, np.random.default_rng(0))
    network.eval()
    plain = [
        Normaliser(np.zeros(size, np.float32), np.ones(size, np.float32))
        for size in (mixed.observation_size, mixed.action_size)
    ]
    scorer = Scorer(FoldedClassifier(network.to(device)), *plain, torch.device(device))
    return score_trajectories([scorer], mixed, Bench(device=device))


def test_the_same_weights_give_the_same_scores_up_to_rounding(elsewhere):
    mixed = pile([10, 10], states=17, actions=6)
    here = scores(mixed, "cpu")
    there = scores(mixed, elsewhere())
    assert np.abs(here - there).max() <= 1e-5
    assert np.any(here != there), "the other device must round otherwise"


@pytest.mark.parametrize(
    "noise", [pytest.param(0.05, marks=pytest.mark.slow), 0.6], ids=["clear", "blurred"]
)
def test_the_same_seed_decides_differently_about_borderline_trajectories_alone(noise, elsewhere):
    mixed = pile([24, 16, 8], noise=noise)
    here = pubc.find_expert(mixed, [0, 1], device="cpu")
    there = pubc.find_expert(mixed, [0, 1], device=elsewhere())
    apart = here.mask != there.mask
    assert not np.any(apart & ~(here.quality.borderline | there.quality.borderline))
    either, both = (here.mask | there.mask).sum(), (here.mask & there.mask).sum()
    assert both >= 0.99 * either
    assert np.any(here.confidence != there.confidence), "the other device must round otherwise"
